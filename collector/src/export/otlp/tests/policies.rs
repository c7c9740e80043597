//! Tests what each policy lets out: content, names, paths and secrets.

use super::*;

#[test]
fn off_withholds_names_paths_and_content() {
    let span = encoded(&encoding(ContentPolicy::Off), &tool());
    assert_eq!(span.name, "execute_tool Shell");
    for key in ["file.path", "process.executable.name", "gen_ai.tool.call.arguments"] {
        lacks(&span, key);
    }
    has(&span, "process.exit.code=101");
    let request = request(&encoding(ContentPolicy::Off), &[tool()]);
    let bytes = String::from_utf8_lossy(&request.encode_to_vec()).into_owned();
    for secret in ["acme", "laptop", "cargo"] {
        assert!(!bytes.contains(secret), "{secret} left at off");
    }
}

#[test]
fn off_hashes_names_of_tools_agents_and_extensions() {
    let mut span = tool();
    span.name = "execute_tool acme_deploy acme-reviewer".to_owned();
    span.plain_name = Cow::Borrowed("execute_tool acme_deploy acme-reviewer");
    let named = ["cursor.subagent.type", "file.extension", "gen_ai.agent.name", "gen_ai.tool.name"];
    let names = ["acme-reviewer", "acmedoc", "acme-reviewer", "acme_deploy"];
    span.attributes = named
        .iter()
        .zip(names)
        .map(|(key, name)| attribute(key, text(name), Class::Plain))
        .collect();
    span.events = Vec::new();
    let request = request(&encoding(ContentPolicy::Off), &[span.clone()]);
    let bytes = String::from_utf8_lossy(&request.encode_to_vec()).into_owned();
    assert!(!bytes.contains("acme"), "{bytes}");
    let off = encoded(&encoding(ContentPolicy::Off), &span);
    assert_eq!(off.name.matches("custom-").count(), 2, "{}", off.name);
    has(&encoded(&encoding(ContentPolicy::Metadata), &span), "gen_ai.tool.name=acme_deploy");
}

#[test]
fn off_calls_every_mcp_tool_mcp() {
    let mut span = tool();
    span.attributes = vec![attribute("gen_ai.tool.name", text("pay_invoice"), Class::Detail)];
    has(&encoded(&encoding(ContentPolicy::Off), &span), "gen_ai.tool.name=mcp");
    has(&encoded(&encoding(ContentPolicy::Metadata), &span), "gen_ai.tool.name=pay_invoice");
}

#[test]
fn metadata_reads_no_content() {
    let mut reads = 0;
    let span = encoding(ContentPolicy::Metadata).bytes(&tool(), &mut |_| {
        reads += 1;
        None
    });
    let span = message(&span);
    assert_eq!(reads, 0);
    lacks(&span, "gen_ai.tool.call.result");
    has(&span, "process.executable.name=cargo");
}

#[test]
fn paths_are_written_as_the_policy_says() {
    let with = |paths, path: &str| {
        let encoding = Encoding { paths, ..encoding(ContentPolicy::Metadata) };
        let mut span = tool();
        span.attributes = vec![attribute("file.path", text(path), Class::Path)];
        let span = encoded(&encoding, &span);
        lines(&span).into_iter().find_map(|line| line.strip_prefix("file.path=").map(str::to_owned))
    };
    let relative = |path| with(PathPolicy::Relative, path).unwrap();
    assert_eq!(relative("/home/me/acme/src/a.rs"), "src/a.rs");
    assert_eq!(relative("/home/me/acme"), ".");
    assert_eq!(relative("/home/me/acme-two/a.rs"), "a.rs");
    assert_eq!(relative("/etc/passwd"), "passwd");
    assert_eq!(relative("src/a.rs"), "src/a.rs");
    assert_eq!(relative("../other/a.rs"), "a.rs");
    assert_eq!(relative("C:\\Users\\me\\a.rs"), "a.rs");
    assert_eq!(with(PathPolicy::Full, "/etc/passwd").unwrap(), "/etc/passwd");
    assert_eq!(with(PathPolicy::Off, "/etc/passwd"), None);
    let hash = with(PathPolicy::Hash, "/etc/passwd").unwrap();
    assert!(hash.starts_with("sha256:") && hash.len() == 23, "{hash}");
}

const SECRET: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

/// [`tool`] with a secret in each of its strings.
fn tool_full_of_secrets() -> Span {
    let mut span = tool();
    let with = |place: &str| format!("{place} {SECRET}");
    span.name = with("execute_tool");
    span.plain_name = Cow::Owned(with("plain"));
    span.workspace = Some(format!("/home/me/{SECRET}").into());
    span.cursor_version = Some(with("3").as_str().into());
    span.status = Status::Error { kind: ErrorType::ExitCode, message: with("exit") };
    span.attributes.extend([
        attribute("a.plain", text(&with("a")), Class::Plain),
        attribute("a.detail", text(&with("b")), Class::Detail),
        attribute("a.path", text(&format!("/tmp/{SECRET}")), Class::Path),
        attribute("a.long", text(&format!("{}{}", "x ".repeat(1_010), with("c"))), Class::Plain),
        attribute("a.list", Value::StrList(vec![with("d").as_str().into()]), Class::Plain),
    ]);
    span.events[0].name = Cow::Owned(with("event"));
    span.events[0].attributes.push(attribute("a.event", text(&with("e")), Class::Plain));
    span
}

#[test]
fn no_string_of_a_span_lets_a_secret_out_at_any_policy() {
    let span = tool_full_of_secrets();
    let holds = |bytes: &[u8], text: &str| String::from_utf8_lossy(bytes).contains(text);
    for content in [ContentPolicy::Off, ContentPolicy::Metadata, ContentPolicy::Full] {
        let encoding = encoding(content);
        let mut request = Request::new(&encoding);
        // The content is cut within the secret.
        let long = format!("{}{SECRET}", "y ".repeat(16 * 1_024 - 6));
        let mut read = |_: &ContentRef| Some(Content { text: long.clone(), json: false });
        request.push(&span, &encoding.bytes(&span, &mut read), usize::MAX);
        let bytes = request.finish();
        assert!(!holds(&bytes, &SECRET[..10]), "{content:?}");
        assert!(holds(&bytes, "[redacted:github-token:"), "{content:?}");
        let open = Encoding { redaction: None, ..encoding.clone() };
        let bytes = open.bytes(&span, &mut |_: &ContentRef| None);
        assert!(holds(&bytes, SECRET), "{content:?}: the secrets are not planted");
    }
}

#[test]
fn a_span_without_a_secret_keeps_its_bytes() {
    let span = tool();
    let redacted = encoding(ContentPolicy::Metadata);
    let open = Encoding { redaction: None, ..redacted.clone() };
    assert_eq!(encoded(&redacted, &span), encoded(&open, &span));
}
