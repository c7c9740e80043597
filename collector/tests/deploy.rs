//! Checks docker-compose.yml and the files that it mounts, as far as that is possible without a container engine.

#![expect(clippy::unwrap_used, reason = "helpers of tests, which fail by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use saphyr::{LoadableYamlNode as _, Yaml};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Parses a file that contains one document. The text is leaked, so that the result borrows nothing.
fn document(path: &Path) -> Yaml<'static> {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let text: &'static str = Box::leak(text.into_boxed_str());
    let mut documents =
        Yaml::load_from_str(text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert_eq!(documents.len(), 1, "{}", path.display());
    documents.remove(0)
}

fn compose() -> Yaml<'static> {
    document(&root().join("docker-compose.yml"))
}

/// Name and content of every service.
fn services(compose: &Yaml<'static>) -> Vec<(String, Yaml<'static>)> {
    let services = compose["services"].as_mapping().unwrap();
    services.iter().map(|(name, body)| (name.as_str().unwrap().to_owned(), body.clone())).collect()
}

/// The strings of a list; empty if there is no such list.
fn strings(body: &Yaml<'static>, key: &str) -> Vec<String> {
    let items = body.as_mapping_get(key).and_then(|list| list.as_sequence());
    items
        .map(|items| items.iter().map(|item| item.as_str().unwrap().to_owned()).collect())
        .unwrap_or_default()
}

fn text<'a>(body: &'a Yaml<'static>, key: &str) -> Option<&'a str> {
    body.as_mapping_get(key)?.as_str()
}

#[test]
fn every_image_is_pinned() {
    for (name, body) in services(&compose()) {
        let image = text(&body, "image").unwrap_or_else(|| panic!("{name} has no image"));
        let (_, tag) =
            image.rsplit_once(':').unwrap_or_else(|| panic!("{name}: {image} has no tag"));
        assert!(tag != "latest" && tag.contains(|c: char| c.is_ascii_digit()), "{name}: {image}");
    }
    let own = services(&compose()).into_iter().find(|(name, _)| name == "hookspan").unwrap().1;
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(text(&own, "image"), Some(format!("hookspan:{version}").as_str()));
}

#[test]
fn the_dockerfile_is_pinned_and_ends_as_an_ordinary_user() {
    let text = fs::read_to_string(root().join("Dockerfile")).unwrap();
    let with = |word: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(word));
        lines.map(|rest| rest.trim().to_owned()).collect()
    };
    let stages = with("FROM ");
    assert_eq!(stages.len(), 2, "{stages:?}");
    assert!(stages.iter().all(|stage| stage.contains(':') && !stage.contains("latest")));
    let user = with("USER ").pop().expect("a user");
    assert!(!user.starts_with("0") && !user.starts_with("root"), "{user}");
    assert!(text.find("USER ") < text.find("ENTRYPOINT "));
}

#[test]
fn every_port_is_published_on_loopback_and_none_twice() {
    let mut taken = BTreeSet::new();
    for (name, body) in services(&compose()) {
        for port in strings(&body, "ports") {
            let parts: Vec<&str> = port.split(':').collect();
            let [address, host, inside] = parts[..] else { panic!("{name}: {port}") };
            assert_eq!(address, "127.0.0.1", "{name}: {port}");
            assert!(host.parse::<u16>().is_ok() && inside.parse::<u16>().is_ok(), "{name}: {port}");
            assert!(taken.insert(host.to_owned()), "{name}: {port} is published already");
        }
    }
}

#[test]
fn every_mounted_file_exists_and_is_read_only_and_every_volume_is_declared() {
    let compose = compose();
    let declared: BTreeSet<String> = compose["volumes"]
        .as_mapping()
        .unwrap()
        .keys()
        .map(|name| name.as_str().unwrap().to_owned())
        .collect();
    let mut used = BTreeSet::new();
    for (name, body) in services(&compose) {
        for volume in strings(&body, "volumes") {
            if let Some(rest) = volume.strip_prefix("./") {
                let (path, _) = rest.split_once(':').unwrap();
                assert!(root().join(path).exists(), "{name} mounts {path}");
                assert!(volume.ends_with(":ro"), "{name}: {volume} can be written");
            } else if !volume.starts_with("${") {
                used.insert(volume.split(':').next().unwrap().to_owned());
            }
        }
    }
    assert_eq!(used, declared);
}

#[test]
fn every_service_says_how_it_is_checked_and_names_only_services_that_exist() {
    let compose = compose();
    let names: BTreeSet<String> = services(&compose).into_iter().map(|(name, _)| name).collect();
    for (name, body) in services(&compose) {
        assert!(body.as_mapping_get("healthcheck").is_some(), "{name} has no health check");
        let mut needed = strings(&body, "depends_on");
        if let Some(map) = body.as_mapping_get("depends_on").and_then(|node| node.as_mapping()) {
            needed.extend(map.keys().map(|key| key.as_str().unwrap().to_owned()));
        }
        assert!(needed.iter().all(|other| names.contains(other)), "{name} needs {needed:?}");
    }
}

#[test]
fn only_hookspan_and_jaeger_start_without_a_profile() {
    let always: Vec<String> = services(&compose())
        .into_iter()
        .filter(|(_, body)| strings(body, "profiles").is_empty())
        .map(|(name, _)| name)
        .collect();
    assert_eq!(always, ["hookspan", "jaeger"]);
    let profiles: BTreeSet<String> =
        services(&compose()).iter().flat_map(|(_, body)| strings(body, "profiles")).collect();
    let expected = ["collector", "datadog", "grafana", "phoenix"];
    assert!(profiles.iter().map(String::as_str).eq(expected), "{profiles:?}");
}

#[test]
fn secrets_come_from_the_environment_and_must_be_set() {
    for (name, body) in services(&compose()) {
        let Some(environment) = body.as_mapping_get("environment").and_then(|e| e.as_mapping())
        else {
            continue;
        };
        for (key, value) in environment {
            let (key, value) = (key.as_str().unwrap(), value.as_str().unwrap_or_default());
            let secret =
                ["KEY", "TOKEN", "SECRET", "PASSWORD"].iter().any(|word| key.contains(word));
            assert!(!secret || value.starts_with("${") && value.contains(":?"), "{name}: {key}");
        }
    }
}

#[test]
fn every_deployment_file_parses() {
    for file in [
        "deploy/jaeger/config.yaml",
        "deploy/otel-collector/config.yaml",
        "deploy/tempo/tempo.yaml",
        "deploy/grafana/provisioning/datasources/tempo.yaml",
    ] {
        assert!(document(&root().join(file)).is_mapping(), "{file}");
    }
}

#[test]
fn every_component_of_a_pipeline_is_defined() {
    for file in ["deploy/jaeger/config.yaml", "deploy/otel-collector/config.yaml"] {
        let config = document(&root().join(file));
        let pipelines = config["service"]["pipelines"].as_mapping().unwrap();
        for (_, pipeline) in pipelines {
            for kind in ["receivers", "processors", "exporters"] {
                for name in strings(pipeline, kind) {
                    assert!(config[kind].as_mapping_get(&name).is_some(), "{file}: {kind}/{name}");
                }
            }
        }
        for name in strings(&config["service"], "extensions") {
            assert!(config["extensions"].as_mapping_get(&name).is_some(), "{file}: {name}");
        }
    }
}

#[test]
fn the_collectors_own_configuration_is_one_it_accepts() {
    use hookspan::parts::{Config, Dashboard, Environment};
    let file = root().join("deploy/hookspan/config.toml");
    let config = Config::load(Some(&file), true, &Environment::of(&[], "/")).unwrap();
    assert_eq!(config.dashboard.allow_hosts, ["127.0.0.1:4329", "localhost:4329"]);
    let listen = vec!["0.0.0.0:4329".parse().unwrap()];
    Dashboard { listen, ..config.dashboard }.check().unwrap();
}
