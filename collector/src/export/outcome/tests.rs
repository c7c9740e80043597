use opentelemetry_proto::tonic::collector::trace::v1::ExportTracePartialSuccess;
use prost::Message as _;
use tonic_types::ErrorDetails;

use super::*;

const NOW: Timestamp = Timestamp(1_800_000_000_000_000_000);

const PROTOBUF: &str = "application/x-protobuf";

/// The outcome in one word, for tables.
fn word(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Ok => "ok".to_owned(),
        Outcome::Partial { rejected, .. } => format!("partial {rejected}"),
        Outcome::Retry { after: None, .. } => "retry".to_owned(),
        Outcome::Retry { after: Some(after), .. } => format!("retry {}", after.as_secs()),
        Outcome::Permanent { class, .. } => format!("{class:?}"),
    }
}

fn trouble(outcome: Outcome) -> Trouble {
    match outcome {
        Outcome::Retry { trouble, .. } | Outcome::Permanent { trouble, .. } => trouble,
        outcome => panic!("no trouble: {outcome:?}"),
    }
}

fn answer(status: u16, content_type: &str, body: &[u8]) -> HttpAnswer {
    HttpAnswer {
        status,
        content_type: content_type.to_owned(),
        body: body.to_vec(),
        ..HttpAnswer::default()
    }
}

fn http(status: u16, content_type: &str, body: &[u8]) -> Outcome {
    from_http(&answer(status, content_type, body), NOW)
}

#[test]
fn every_http_status_has_its_outcome() {
    let table = [
        (200, "ok"),
        (202, "ok"),
        (204, "ok"),
        (301, "Config"),
        (302, "Config"),
        (307, "Config"),
        (308, "Config"),
        (400, "Rejected"),
        (401, "Auth"),
        (403, "Auth"),
        (404, "Config"),
        (405, "Config"),
        (407, "Auth"),
        (408, "retry"),
        (410, "Config"),
        (413, "TooLarge"),
        (415, "Config"),
        (422, "Rejected"),
        (425, "retry"),
        (426, "Config"),
        (429, "retry"),
        (500, "Faulty"),
        (501, "Config"),
        (502, "retry"),
        (503, "retry"),
        (504, "retry"),
        (599, "Faulty"),
        (600, "Config"),
    ];
    for (status, expected) in table {
        assert_eq!(word(&http(status, "", b"")), expected, "HTTP {status}");
    }
}

/// Answers of real receivers, and answers on ports without a receiver. Grafana Cloud answers 204; New Relic and
/// Prometheus an empty body; Langfuse `{}` or nothing, with the content type of JSON; ddapm-test-agent, MLflow, Phoenix
/// and Jaeger protobuf.
#[test]
fn delivered_means_that_an_otlp_answer_came() {
    let table: [(u16, &str, &[u8], &str); 25] = [
        (200, PROTOBUF, b"", "ok"),
        (200, "application/protobuf; charset=x", b"", "ok"),
        (200, "application/json; charset=utf-8", b"{}", "ok"),
        (200, "application/json", b"", "ok"),
        (200, "application/json", b"null", "ok"),
        (202, "application/json", b"{\"status\":\"ok\"}", "ok"),
        (200, "application/json", b"{\"partialSuccess\":{}}", "ok"),
        (200, "", b"", "ok"),
        (204, "text/plain", b"", "ok"),
        (200, "text/plain; charset=utf-8", b"200: OK", "ok"),
        (202, "text/plain", b"Accepted\n", "ok"),
        (200, "application/octet-stream", b"", "ok"),
        (200, "text/html", b"<!doctype html><title>Jaeger UI</title>", "Config"),
        (200, "text/html; charset=utf-8", b"", "Config"),
        (200, "", b"<html>", "Config"),
        (200, "application/xml", b"<ok/>", "Config"),
        (200, PROTOBUF, b"{\"ok\":true}", "Config"),
        (200, PROTOBUF, b"<html>", "Config"),
        (200, PROTOBUF, b"xxxxxxxxxxxxxxxx", "Config"),
        (200, "application/json", b"[1]", "Config"),
        (200, "application/json", b"{\"error\":\"no such project\"}", "Config"),
        (200, "application/json", b"{\"errors\":[{\"message\":\"x\"}]}", "Config"),
        (200, "application/json", b"{broken", "Config"),
        (200, "text/plain", b"Welcome to the metrics port, see /metrics", "Config"),
        (200, "image/png", b"\x89PNG\r\n", "Config"),
    ];
    for (status, kind, body, expected) in table {
        let outcome = http(status, kind, body);
        assert_eq!(word(&outcome), expected, "{status} {kind} {:?}", String::from_utf8_lossy(body));
    }
    let cut = HttpAnswer { is_cut: true, ..answer(200, "", b"") };
    assert_eq!(word(&from_http(&cut, NOW)), "Config");
    let page = trouble(http(200, "text/html", b"<html><title>Jaeger UI</title>"));
    assert_eq!(page.cause, Cause::NotOtlp);
    assert_eq!(
        page.detail,
        "HTTP 200, but no OTLP answer came: text/html: a web page titled \"Jaeger UI\""
    );
}

#[test]
fn partial_success_is_read_in_protobuf_and_in_json() {
    let protobuf = |rejected_spans, error_message: &str| {
        let part =
            ExportTracePartialSuccess { rejected_spans, error_message: error_message.into() };
        let body = ExportTraceServiceResponse { partial_success: Some(part) }.encode_to_vec();
        word(&http(200, PROTOBUF, &body))
    };
    assert_eq!(protobuf(0, ""), "ok");
    assert_eq!(protobuf(3, ""), "partial 3");
    assert_eq!(protobuf(0, "slow down"), "partial 0");
    assert_eq!(protobuf(-5, "odd"), "partial 0");
    for body in [
        "{\"partialSuccess\":{\"rejectedSpans\":\"3\",\"errorMessage\":\"too old\"}}",
        "{\"partialSuccess\":{\"rejectedSpans\":3,\"errorMessage\":\"too old\"}}",
        "{\"partial_success\":{\"rejected_spans\":3,\"error_message\":\"too old\"},\"x\":1}",
    ] {
        let expected = Outcome::Partial { rejected: 3, message: "too old".to_owned() };
        assert_eq!(http(200, "application/json", body.as_bytes()), expected, "{body}");
    }
}

#[test]
fn a_redirect_tells_where_it_leads_without_its_secrets() {
    let to = |location: &str| {
        let answer = HttpAnswer {
            status: 302,
            location: Some(location.to_owned()),
            ..HttpAnswer::default()
        };
        trouble(from_http(&answer, NOW)).detail
    };
    assert_eq!(to("https://h/v1/traces"), "HTTP 302: redirects to https://h/v1/traces");
    assert_eq!(to("https://me:pw@h/login?token=s3cret"), "HTTP 302: redirects to https://h/login");
    assert_eq!(to("/login#x"), "HTTP 302: redirects to /login");
    assert_eq!(to(""), "HTTP 302: redirects to nowhere");
}

#[test]
fn plain_text_to_a_tls_port_and_pages_of_proxies_are_told_apart_from_refusals() {
    let go = http(400, "text/plain", b"Client sent an HTTP request to an HTTPS server.\n");
    assert_eq!(trouble(go).cause, Cause::WantsTls);
    let nginx = b"<html><title>400 The plain HTTP request was sent to HTTPS port</title></html>";
    assert_eq!(trouble(http(400, "text/html", nginx)).cause, Cause::WantsTls);
    assert_eq!(trouble(http(400, "text/html", b"<html>blocked</html>")).cause, Cause::NotOtlp);
    assert_eq!(trouble(http(413, "text/html", b"<html>")).cause, Cause::TooLarge);
    assert_eq!(word(&http(503, "text/html", b"<html>")), "retry");
}

#[test]
fn every_grpc_code_has_its_outcome() {
    let table = [
        (Code::Cancelled, "retry"),
        (Code::Unknown, "Faulty"),
        (Code::InvalidArgument, "Rejected"),
        (Code::DeadlineExceeded, "retry"),
        (Code::NotFound, "Rejected"),
        (Code::AlreadyExists, "Rejected"),
        (Code::PermissionDenied, "Auth"),
        (Code::ResourceExhausted, "retry"),
        (Code::FailedPrecondition, "Rejected"),
        (Code::Aborted, "retry"),
        (Code::OutOfRange, "Rejected"),
        (Code::Unimplemented, "Config"),
        (Code::Internal, "Faulty"),
        (Code::Unavailable, "retry"),
        (Code::DataLoss, "retry"),
        (Code::Unauthenticated, "Auth"),
    ];
    for (code, expected) in table {
        let status = tonic::Status::new(code, "");
        assert_eq!(word(&from_grpc(&status)), expected, "{code:?}");
    }
    let details = ErrorDetails::with_retry_info(Some(Duration::from_secs(5)));
    let status = tonic::Status::with_error_details(Code::ResourceExhausted, "", details);
    assert_eq!(word(&from_grpc(&status)), "retry 5");
}

/// One code can mean a size, a quota or too little memory. The message's words tell which.
#[test]
fn a_size_that_is_refused_over_grpc_is_known_by_its_words() {
    for words in [
        "grpc: received message larger than max (5000000 vs. 4194304)",
        "grpc: received message after decompression larger than max 4194304",
        "gRPC message exceeds maximum size 4194304: 5000000",
        "Received message exceeds the maximum configured message size.",
        "Error, decoded message length too large: found 5000000 bytes, the limit is: 4194304 bytes",
    ] {
        for code in [Code::ResourceExhausted, Code::OutOfRange] {
            assert_eq!(word(&from_grpc(&tonic::Status::new(code, words))), "TooLarge", "{words}");
        }
    }
    for words in [
        "RATE_LIMITED: ingestion rate limit (local: 15000000 bytes) exceeded while adding 137994 bytes",
        "data refused due to high memory usage",
        "quota exhausted",
    ] {
        let status = tonic::Status::new(Code::ResourceExhausted, words);
        assert_eq!(word(&from_grpc(&status)), "retry", "{words}");
    }
}

#[test]
fn a_delay_is_seconds_or_a_date_and_at_most_an_hour() {
    let after = |text: &str| {
        let retry_after = Some(text.to_owned());
        word(&from_http(&HttpAnswer { status: 429, retry_after, ..HttpAnswer::default() }, NOW))
    };
    assert_eq!(after("7"), "retry 7");
    assert_eq!(after("86400"), "retry 3600");
    assert_eq!(after("Fri, 15 Jan 2027 08:01:00 GMT"), "retry 60");
    assert_eq!(after("Fri, 15 Jan 2027 07:00:00 GMT"), "retry 0");
    assert_eq!(after("soon"), "retry");
}

#[test]
fn an_error_of_the_connection_says_nothing_about_the_batch() {
    let cause = |error: std::io::Error| {
        let outcome = from_transport(&error);
        (word(&outcome), trouble(outcome).cause)
    };
    let tls = |error: rustls::Error| std::io::Error::other(error);
    let expired = rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
    assert_eq!(cause(tls(expired)), ("Config".to_owned(), Cause::Certificate));
    let wanted = rustls::Error::AlertReceived(rustls::AlertDescription::CertificateRequired);
    assert_eq!(cause(tls(wanted)), ("Config".to_owned(), Cause::ClientCertificate));
    let plain = rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType);
    assert_eq!(cause(tls(plain)), ("retry".to_owned(), Cause::NotTls));
    let words = |text: &str| cause(std::io::Error::other(text.to_owned()));
    for (text, expected) in [
        ("dns error: failed to lookup address information", Cause::Dns),
        ("operation timed out", Cause::Timeout),
        ("http2 error: connection error detected: frame with invalid size", Cause::NotHttp2),
        ("invalid HTTP version parsed", Cause::NotHttp1),
        ("connection closed before message completed", Cause::Broken),
        ("something nobody knows", Cause::Broken),
    ] {
        assert_eq!(words(text), ("retry".to_owned(), expected), "{text}");
    }
    let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
    assert_eq!(cause(refused), ("retry".to_owned(), Cause::Refused));
}

#[test]
fn a_servers_words_are_one_short_line() {
    let body = "bad\n\u{1b}[31m\u{202e}".repeat(300);
    let detail = trouble(http(400, "text/plain", body.as_bytes())).detail;
    assert!(detail.len() < 300 && !detail.contains(['\n', '\u{1b}', '\u{202e}']), "{detail}");
}
