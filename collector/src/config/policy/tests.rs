use super::*;
use crate::config::{Environment, destination};

fn policy(text: &str) -> Result<Policy, Misuse> {
    Policy::parse(Path::new("/etc/hookspan/policy.toml"), text)
}

/// The destinations of a user's configuration under a policy.
fn under(rules: &str, own: &str) -> Vec<Destination> {
    let env = Environment::of(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://elsewhere:4318")], "/");
    let mut config = Config::of_text(Path::new("config.toml"), own, &env).unwrap();
    policy(rules).unwrap().restrict(&mut config);
    destination::all(&config, &env).unwrap()
}

const OWN: &str = "[[destination]]\nname = 'a'\nendpoint = 'https://a.example/v1/traces'\ncontent = 'full'\n\
                   paths = 'full'\nredact = false\nmetrics = true\nlogs = true\n";

fn named<'a>(all: &'a [Destination], name: &str) -> &'a Destination {
    all.iter().find(|one| one.name == name).unwrap()
}

#[test]
fn the_narrower_of_policy_and_configuration_holds() {
    let all = under(
        "content = 'metadata'\npaths = 'hash'\nredact = true\nmetrics = false\nlogs = false\n",
        OWN,
    );
    let one = named(&all, "a");
    assert_eq!(
        (one.content, one.paths, one.redact),
        (ContentPolicy::Metadata, PathPolicy::Hash, true)
    );
    assert!(one.metrics.is_none() && one.unready.is_none());
    assert_eq!(one.by_policy.len(), 4, "{:?}", one.by_policy);
    assert!(all.iter().all(|one| one.name != "a:logs"), "no log records leave");
    let own = "[[destination]]\nname = 'a'\nendpoint = 'https://a.example'\ncontent = 'off'\npaths = 'off'\n";
    let all = under("content = 'full'\npaths = 'full'\n", own);
    let one = named(&all, "a");
    assert_eq!(
        (one.content, one.paths),
        (ContentPolicy::Off, PathPolicy::Off),
        "a policy widens nothing"
    );
    assert!(one.by_policy.is_empty());
}

#[test]
fn an_empty_policy_changes_nothing() {
    let one = &under("", OWN)[0];
    assert_eq!(
        (one.content, one.paths, one.redact),
        (ContentPolicy::Full, PathPolicy::Full, false)
    );
    assert!(one.metrics.is_some() && one.by_policy.is_empty());
}

#[test]
fn only_named_receivers_get_anything_and_the_environment_adds_none() {
    let all = under("receivers = ['https://A.example']\n", OWN);
    assert_eq!(named(&all, "a").unready, None, "the default port is the same port");
    let env = named(&all, "env").unready.as_deref().unwrap();
    assert!(env.contains("by policy") && env.contains("elsewhere"), "{env}");
    for other in ["https://a.example:8443", "http://a.example", "https://a.example.evil"] {
        let all = under(&format!("receivers = ['{other}']\n"), OWN);
        assert!(named(&all, "a").unready.is_some(), "{other}");
        assert!(named(&all, "a:logs").unready.is_some(), "{other}");
    }
    assert!(under("receivers = []\n", OWN).iter().all(|one| one.unready.is_some()));
}

#[test]
fn the_machines_destinations_replace_a_users_of_the_same_name() {
    let rules = "[[destination]]\nname = 'a'\nendpoint = 'https://corp.example'\n\
                 [[destination]]\nname = 'b'\nendpoint = 'https://corp.example'\n";
    let all = under(rules, OWN);
    assert_eq!(named(&all, "a").endpoint_host(), "corp.example");
    assert_eq!(named(&all, "a").content, ContentPolicy::Metadata);
    let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "env"]);
}

#[test]
fn exceptions_sandbox_and_retention_are_the_machines() {
    let env = Environment::of(&[], "/");
    let own = "[redact]\nallow = ['x']\n[sandbox]\nenabled = false\n";
    let mut config = Config::of_text(Path::new("config.toml"), own, &env).unwrap();
    assert!(!config.sandbox && !config.redact.allow.is_empty());
    policy("redact = true\nsandbox = true\nretention = '30d'\n").unwrap().restrict(&mut config);
    assert!(config.sandbox && config.redact.allow.is_empty());
    let day = 86_400_000_000_000;
    assert_eq!(config.retention.max_age_ns, 30 * day);
    config.retention.max_age_ns = 7 * day;
    policy("retention = '30d'\n").unwrap().restrict(&mut config);
    assert_eq!(config.retention.max_age_ns, 7 * day, "shorter stays");
}

#[test]
fn a_mistake_in_a_policy_is_told_with_its_place() {
    for (text, expected) in [
        ("content = 'metdata'\n", ":1:11: "),
        ("\nforbid = true\n", ":2:1: "),
        ("receivers = ['otel.example']\n", "receivers: "),
        ("retention = 'ages'\n", "retention: "),
        ("[[destination]]\nnome = 'a'\n", "nome"),
    ] {
        let error = policy(text).unwrap_err().to_string();
        assert!(
            error.starts_with("/etc/hookspan/policy.toml") && error.contains(expected),
            "{error}"
        );
    }
}

#[cfg(unix)]
#[test]
fn a_policy_that_others_can_write_is_refused() {
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("hookspan");
    std::fs::create_dir(&folder).unwrap();
    let file = folder.join("policy.toml");
    let load = || Policy::load(&file).map_err(|error| error.to_string());
    assert!(load().unwrap().is_none(), "none there");
    std::fs::write(&file, "content = 'off'\n").unwrap();
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(&folder, 0o755);
    mode(&file, 0o644);
    if rustix::process::geteuid().is_root() {
        assert_eq!(load().unwrap().unwrap().words(), ["content at most off"]);
        mode(&file, 0o664);
        assert!(load().unwrap_err().contains("chmod go-w"), "{:?}", load());
        mode(&file, 0o644);
        mode(&folder, 0o777);
        assert!(load().unwrap_err().contains("others than root"), "{:?}", load());
        mode(&folder, 0o755);
        chown(&file, Some(4_711), None).unwrap();
    }
    assert!(load().unwrap_err().contains("not to root"), "{:?}", load());
    std::fs::remove_file(&file).unwrap();
    symlink("/etc/hosts", &file).unwrap();
    assert!(load().unwrap_err().contains("not a regular file"), "{:?}", load());
}
