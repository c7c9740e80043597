use std::fs;

use super::*;
use crate::config::Semconv;

fn env(variables: &[(&str, &str)]) -> Environment {
    Environment::of(variables, "/")
}

fn form(text: &str) -> DestinationForm {
    toml::from_str(text).expect("a form")
}

#[track_caller]
fn resolved(text: &str, variables: &[(&str, &str)]) -> Destination {
    form(text).build(&env(variables), Semconv::default()).expect("a destination")
}

#[track_caller]
fn refused(text: &str, variables: &[(&str, &str)], expected: &str) {
    let error = form(text).build(&env(variables), Semconv::default()).expect_err("a refusal");
    assert!(error.to_string().contains(expected), "{error}");
}

#[track_caller]
fn unready(text: &str, variables: &[(&str, &str)], expected: &str) {
    let problem = resolved(text, variables).unready.expect("something is missing");
    assert!(problem.contains(expected), "{problem}");
}

#[track_caller]
fn from(variables: &[(&str, &str)]) -> Destination {
    from_env(&env(variables), Semconv::default()).expect("valid").expect("a destination")
}

#[track_caller]
fn env_refused(variables: &[(&str, &str)], expected: &str) {
    let error = from_env(&env(variables), Semconv::default()).expect_err("a refusal");
    assert!(error.to_string().contains(expected), "{error}");
}

fn header<'a>(destination: &'a Destination, name: &str) -> Option<&'a str> {
    let headers = &destination.connection.headers;
    headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.0.as_str())
}

#[test]
fn a_preset_fills_only_what_is_unset() {
    let jaeger = resolved("name = 'j'\npreset = 'jaeger'", &[]);
    assert_eq!(jaeger.connection.endpoint, "http://127.0.0.1:4317");
    assert_eq!(jaeger.connection.protocol, Protocol::Grpc);
    assert_eq!(
        jaeger.link.as_deref(),
        Some("http://127.0.0.1:16686/trace/{trace_id}?uiFind={span_id}")
    );
    let other = resolved(
        "name = 'j'\npreset = 'jaeger'\nendpoint = 'http://tracing:4318/v1/traces'\nvalues = { ui = 'http://tracing' }",
        &[],
    );
    assert_eq!(other.connection.protocol, Protocol::Http);
    assert!(other.connection.gzip, "not loopback");
    assert!(other.link.is_some_and(|link| link.starts_with("http://tracing/trace/")));
}

#[test]
fn an_http_endpoint_without_a_path_gets_the_usual_one() {
    let bare = resolved("name = 'a'\nendpoint = 'http://127.0.0.1:4318'", &[]);
    assert_eq!(bare.connection.endpoint, "http://127.0.0.1:4318/v1/traces");
    let own = resolved("name = 'a'\nendpoint = 'http://127.0.0.1:4318/in'", &[]);
    assert_eq!(own.connection.endpoint, "http://127.0.0.1:4318/in");
}

#[test]
fn every_preset_resolves_with_the_keys_its_vendor_documents() {
    let variables = [
        ("DD_API_KEY", "k"),
        ("HONEYCOMB_API_KEY", "k"),
        ("LANGFUSE_PUBLIC_KEY", "pk"),
        ("LANGFUSE_SECRET_KEY", "sk"),
        ("GC", "Zm9v"),
    ];
    for preset in [
        "jaeger",
        "tempo",
        "datadog-agent",
        "datadog",
        "datadog-llmobs",
        "honeycomb",
        "langfuse",
        "phoenix",
        "mlflow",
    ] {
        resolved(&format!("name = 'd'\npreset = '{preset}'"), &variables);
    }
    let cloud = "name = 'd'\npreset = 'grafana-cloud'\nvalues = { zone = 'prod-eu-west-0' }\nheaders = { authorization = 'Basic env:GC' }";
    let cloud = resolved(cloud, &variables);
    assert_eq!(
        cloud.connection.endpoint,
        "https://otlp-gateway-prod-eu-west-0.grafana.net/otlp/v1/traces"
    );
    assert_eq!(header(&cloud, "authorization"), Some("Basic Zm9v"));
    let langfuse = resolved("name = 'd'\npreset = 'langfuse'", &variables);
    assert_eq!(header(&langfuse, "authorization"), Some("Basic cGs6c2s="));
}

#[test]
fn what_a_preset_lacks_is_named() {
    unready("name = 'd'\npreset = 'datadog'", &[], "set DD_API_KEY");
    refused("name = 'd'\npreset = 'otlp'", &[], "endpoint: is missing");
    refused(
        "name = 'd'\npreset = 'grafana-cloud'\nheaders = { authorization = 'Basic env:A' }",
        &[("A", "x")],
        "values.zone",
    );
    refused("name = 'd'\npreset = 'mlflow'\nprotocol = 'grpc'", &[], "http/protobuf only");
}

#[test]
fn secrets_come_by_reference_and_are_never_shown() {
    let text = "name = 'd'\nendpoint = 'https://h/x'\nheaders = { X-Key = 'env:KEY' }";
    let destination = resolved(text, &[("KEY", "s3cret")]);
    assert_eq!(header(&destination, "x-key"), Some("s3cret"));
    assert!(!format!("{destination:?}").contains("s3cret"));
    unready(text, &[], "headers.x-key: the variable KEY is not set");
    let literal = "name = 'd'\nendpoint = 'https://h/x'\nheaders = { X-Key = 's3cret' }";
    refused(literal, &[], "write env:NAME or file:PATH");
    let file = "name = 'd'\nendpoint = 'https://h/x'\nheaders = { X-Key = 'file:/does/not/exist' }";
    unready(file, &[], "cannot be read");
    let bad = form(text).build(&env(&[("KEY", "a\nb")]), Semconv::default()).expect_err("refused");
    assert!(!bad.to_string().contains("a\nb"), "{bad}");
    let plain = "name = 'd'\nendpoint = 'https://h/x'\nheaders = { X-Scope-OrgID = 'team' }";
    assert_eq!(header(&resolved(plain, &[]), "x-scope-orgid"), Some("team"));
}

#[test]
fn values_that_cannot_be_used_are_refused_by_key() {
    let with = |line: &str| format!("name = 'd'\nendpoint = 'http://h/x'\n{line}");
    refused(&with("protocol = 'http/json'"), &[], "http/json is not supported");
    refused(&with("compression = 'zstd'"), &[], "compression");
    refused(&with("sample = 1.5"), &[], "sample: 1.5");
    refused(&with("timeout_ms = 0"), &[], "timeout_ms");
    refused(&with("max_span_age = 'soon'"), &[], "max_span_age");
    unready(&with("certificate = '/does/not/exist'"), &[], "certificate: /does/not/exist");
    unready(&with("client_certificate = '/x'\nclient_key = '/x'"), &[], "client_certificate: /x");
    refused(&with("link = 'javascript:alert(1)'"), &[], "link: must start with http");
    refused(&with("link = 'https://h/{team}'"), &[], "values.team");
    refused("name = 'a b'\nendpoint = 'http://h'", &[], "name: must have");
    refused("name = 'd'\nendpoint = 'ftp://h'", &[], "scheme");
    refused("name = 'd'\nendpoint = 'http://me:pw@h'", &[], "user name or a password");
    refused("name = 'd'\nendpoint = 'nonsense'", &[], "endpoint");
}

#[test]
fn an_unknown_key_is_refused() {
    let error =
        toml::from_str::<DestinationForm>("name = 'd'\nendpont = 'x'").expect_err("refused");
    assert!(error.to_string().contains("endpont"), "{error}");
}

#[test]
fn ages_are_read_in_usual_units() {
    let with = |age: &str| {
        let text = format!("name = 'd'\nendpoint = 'http://h'\nmax_span_age = '{age}'");
        resolved(&text, &[]).max_span_age.map(|age| age.as_secs())
    };
    assert_eq!(with("55m"), Some(3_300));
    assert_eq!(with("7d"), Some(604_800));
}

#[test]
fn the_general_endpoint_gets_the_path_and_the_traces_endpoint_does_not() {
    let general = from(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:4318/")]);
    assert_eq!(general.connection.endpoint, "http://h:4318/v1/traces");
    assert_eq!(general.name, "env");
    let own = from(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://other:4318"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://h:4318/custom"),
    ]);
    assert_eq!(own.connection.endpoint, "http://h:4318/custom");
    assert!(from_env(&env(&[]), Semconv::default()).expect("valid").is_none());
    let empty = [("OTEL_EXPORTER_OTLP_ENDPOINT", "")];
    assert!(from_env(&env(&empty), Semconv::default()).expect("valid").is_none());
}

#[test]
fn grpc_without_a_scheme_is_encrypted_unless_told_otherwise() {
    let grpc = ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    let bare = ("OTEL_EXPORTER_OTLP_ENDPOINT", "h:4317");
    assert_eq!(from(&[grpc, bare]).connection.endpoint, "https://h:4317");
    let insecure = ("OTEL_EXPORTER_OTLP_INSECURE", "true");
    assert_eq!(from(&[grpc, bare, insecure]).connection.endpoint, "http://h:4317");
    env_refused(&[grpc, bare, ("OTEL_EXPORTER_OTLP_INSECURE", "maybe")], "INSECURE");
}

#[test]
fn the_variable_for_traces_beats_the_general_one() {
    let destination = from(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:4318"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=general"),
        ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "A=b%20c,d=%3D, e = f "),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "5000"),
        ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "7000"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "none"),
    ]);
    assert_eq!(header(&destination, "a"), Some("b c"));
    assert_eq!(header(&destination, "d"), Some("="));
    assert_eq!(header(&destination, "e"), Some("f"));
    assert_eq!(destination.connection.timeout, Duration::from_secs(7));
    assert!(!destination.connection.gzip);
}

#[test]
fn variables_that_cannot_be_used_are_refused_by_name() {
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:4318");
    env_refused(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "h:4318")], "OTEL_EXPORTER_OTLP_ENDPOINT");
    env_refused(&[endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")], "PROTOCOL: http/json");
    env_refused(&[endpoint, ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon")], "TIMEOUT");
    env_refused(&[endpoint, ("OTEL_EXPORTER_OTLP_COMPRESSION", "br")], "COMPRESSION");
    env_refused(&[endpoint, ("OTEL_EXPORTER_OTLP_HEADERS", "novalue")], "HEADERS");
    let content = ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "perhaps");
    env_refused(&[endpoint, content], "CAPTURE_MESSAGE_CONTENT");
}

#[test]
fn the_genai_variable_sets_content_only_where_it_is_unset() {
    let capture =
        |value: &'static str| [("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", value)];
    let bare = "name = 'd'\nendpoint = 'https://h'";
    assert_eq!(resolved(bare, &[]).content, ContentPolicy::Metadata);
    for (word, policy) in [
        ("true", ContentPolicy::Full),
        ("span_only", ContentPolicy::Full),
        ("SPAN_AND_EVENT", ContentPolicy::Full),
        ("false", ContentPolicy::Metadata),
        ("EVENT_ONLY", ContentPolicy::Metadata),
    ] {
        assert_eq!(resolved(bare, &capture(word)).content, policy, "{word}");
    }
    let off = format!("{bare}\ncontent = 'off'");
    assert_eq!(resolved(&off, &capture("true")).content, ContentPolicy::Off);
}

#[test]
fn loopback_is_recognised() {
    for url in ["http://127.0.0.1:4318", "http://localhost:1", "http://[::1]:4317"] {
        assert!(is_loopback(url), "{url}");
    }
    for url in ["http://10.0.0.1:4318", "http://localhost.example.com"] {
        assert!(!is_loopback(url), "{url}");
    }
}

#[test]
fn only_host_and_port_of_an_endpoint_are_shown() {
    let destination = resolved("name = 'd'\nendpoint = 'https://h.example:8443/a/b?key=x'", &[]);
    assert_eq!(destination.endpoint_host(), "h.example:8443");
}

#[test]
fn a_destination_of_the_file_takes_the_place_of_the_environments() {
    let table = |text: &str| toml::from_str::<toml::Table>(text).expect("a table");
    let variables = env(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:4318")]);
    let mut config = Config {
        destinations: vec![table("name = 'a'\nendpoint = 'http://a'")],
        ..Config::default()
    };
    let names = |config: &Config| {
        let all = all(config, &variables).expect("valid");
        all.into_iter().map(|d| (d.name, d.connection.endpoint)).collect::<Vec<_>>()
    };
    assert_eq!(names(&config).len(), 2);
    config.destinations.push(table("name = 'env'\nendpoint = 'http://mine/x'"));
    assert_eq!(names(&config)[1], ("env".to_owned(), "http://mine/x".to_owned()));
    config.destinations.push(table("name = 'a'\nendpoint = 'http://b'"));
    assert!(
        all(&config, &variables)
            .expect_err("twice")
            .to_string()
            .contains("name of another destination")
    );
}

#[test]
fn an_error_names_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    let text = "\n[[destination]]\nname = \"a\"\nendpoint = \"http://h\"\n\n[[destination]]\nname = \"b\"\n\
                endpoint = \"https://h\"\nheaders = { x-key = \"env:KEY\" }\nsample = 1.0\n";
    let load = |text: &str| {
        fs::write(&file, text).unwrap();
        all(&Config::load(Some(&file), true, &env(&[])).unwrap(), &env(&[]))
    };
    let found = load(text).unwrap();
    let place = |line: u32, column: u32| format!("{}:{line}:{column}: ", file.display());
    assert_eq!(found[0].unready, None);
    let missing = format!("{}headers.x-key: the variable KEY is not set", place(9, 13));
    assert_eq!(found[1].unready.as_ref(), Some(&missing));
    let wrong = load(&text.replace("sample = 1.0", "sample = 3.0")).unwrap_err().to_string();
    let expected = format!("{}destination \"b\": sample: 3 is not between 0 and 1", place(10, 1));
    assert_eq!(wrong, expected);
    let taken = load(&text.replace("\"b\"", "\"a\"")).unwrap_err().to_string();
    assert!(
        taken.starts_with(&place(7, 1)) && taken.ends_with("choose a different one"),
        "{taken}"
    );
}

#[test]
fn another_receiver_is_another_identity_and_another_key_is_not() {
    let of = |more: &str, key: &str| {
        let text = format!("name = 'd'\nendpoint = 'https://h/x'\n{more}");
        resolved(&text, &[("KEY", key)]).identity()
    };
    let key = "headers = { x-key = 'env:KEY' }";
    assert_eq!(of(key, "a"), of(key, "b"));
    assert_ne!(of(key, "a"), of("", "a"));
    let experiment = |id: &str| of(&format!("headers = {{ x-mlflow-experiment-id = '{id}' }}"), "");
    assert_ne!(experiment("1"), experiment("2"));
    assert_ne!(of("protocol = 'grpc'", ""), of("", ""));
}

#[test]
fn secrets_are_left_in_only_where_everything_leaves_and_by_name() {
    let with = |more: &str| format!("name = 'a'\nendpoint = 'http://127.0.0.1:4318'\n{more}");
    assert!(resolved(&with("content = 'full'"), &[]).redact);
    assert!(!resolved(&with("content = 'full'\nredact = false"), &[]).redact);
    let form: DestinationForm = toml::from_str(&with("redact = false")).unwrap();
    let error = form.build(&Environment::of(&[], "/"), Semconv::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "redact: false needs content = \"full\": with less content, secrets never leave"
    );
}

#[test]
fn content_does_not_leave_this_machine_without_tls() {
    let form = |endpoint: &str, more: &str| -> DestinationForm {
        toml::from_str(&format!("name = 'a'\nendpoint = '{endpoint}'\n{more}")).unwrap()
    };
    let resolve = |form: DestinationForm| {
        form.build(&Environment::of(&[], "/"), Semconv::default()).map(drop)
    };
    let full = "content = 'full'";
    for remote in
        ["http://10.1.2.3:4318", "HTTP://traces.acme.dev", "http://127.0.0.1.acme.dev:4317"]
    {
        let error = resolve(form(remote, full)).unwrap_err().to_string();
        assert!(
            error.starts_with("content: \"full\" would send") && error.contains("TLS"),
            "{error}"
        );
        assert!(resolve(form(remote, "content = 'metadata'")).is_ok());
        assert!(resolve(form(remote, &format!("{full}\nallow_plain_http = true"))).is_ok());
    }
    for fine in [
        "https://traces.acme.dev",
        "http://127.0.0.1:4318",
        "http://[::1]:4318",
        "http://localhost:1",
    ] {
        assert!(resolve(form(fine, full)).is_ok(), "{fine}");
    }
    let env = Environment::of(
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://traces.acme.dev:4318"),
            ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true"),
        ],
        "/",
    );
    assert!(from_env(&env, Semconv::default()).is_err());
}

#[test]
fn metrics_are_sent_only_where_they_are_asked_for() {
    let of = |text: &str| resolved(&format!("name = 'm'\n{text}"), &[]).metrics;
    assert!(of("endpoint = 'http://h:4318'").is_none());
    assert!(of("endpoint = 'http://h:4318'\nmetrics = false\nmetrics_interval = '5s'").is_none());
    let on = of("endpoint = 'http://h:4318'\nmetrics = true").unwrap();
    assert_eq!(on.connection.endpoint, "http://h:4318/v1/metrics");
    assert_eq!((on.temporality, on.interval.as_secs()), (Temporality::Cumulative, 60));
    let grpc = of("endpoint = 'http://h:4317'\nprotocol = 'grpc'\nmetrics = true").unwrap();
    assert_eq!(grpc.connection.endpoint, "http://h:4317");
    let own = of(
        "endpoint = 'http://h:4318'\nmetrics = true\nmetrics_endpoint = 'http://p:9090/api/v1/otlp/v1/metrics'\n\
         metrics_temporality = 'delta'\nmetrics_interval = '5m'",
    )
    .unwrap();
    assert_eq!(own.connection.endpoint, "http://p:9090/api/v1/otlp/v1/metrics");
    assert_eq!((own.temporality, own.interval.as_secs()), (Temporality::Delta, 300));
}

#[test]
fn a_preset_knows_which_sums_its_backend_takes() {
    let datadog = "name = 'd'\npreset = 'datadog-agent'\nmetrics = true";
    let metrics = resolved(datadog, &[]).metrics.unwrap();
    assert_eq!(metrics.temporality, Temporality::Delta);
    assert_eq!(metrics.connection.endpoint, "http://127.0.0.1:4318/v1/metrics");
    let key = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE";
    let plain = "name = 'o'\nendpoint = 'http://h:4318'\nmetrics = true";
    let with = |word| resolved(plain, &[(key, word)]).metrics.unwrap().temporality;
    assert_eq!((with("LowMemory"), with("delta")), (Temporality::Delta, Temporality::Delta));
    assert_eq!((with("Cumulative"), with("")), (Temporality::Cumulative, Temporality::Cumulative));
    refused(plain, &[(key, "sometimes")], key);
    for preset in ["jaeger", "tempo", "phoenix", "mlflow", "langfuse"] {
        let text = format!("name = 'p'\npreset = '{preset}'\nmetrics = true");
        refused(&text, &[], "takes traces only");
    }
}

#[test]
fn keys_of_metrics_that_would_do_nothing_are_refused() {
    let with = |more: &str| format!("name = 'm'\nendpoint = 'http://h:1/otlp'\n{more}");
    refused(&with("metrics_interval = '5s'"), &[], "metrics = true");
    refused(&with("metrics_endpoint = 'http://h:1'"), &[], "metrics = true");
    refused(&with("metrics = true"), &[], "does not end in /v1/traces");
    for bad in ["0s", "2d", "often", "100ms"] {
        let more =
            format!("metrics = true\nmetrics_endpoint = 'http://h:1'\nmetrics_interval = '{bad}'");
        refused(&with(&more), &[], "60s");
    }
    refused(&with("metrics = true\nmetrics_endpoint = 'ftp://h'"), &[], "metrics_endpoint");
}
