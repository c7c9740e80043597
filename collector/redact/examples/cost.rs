//! Measures the redactor's cost in microseconds per kilobyte: `cargo run --release -p hookspan-redact --example cost`.
#![expect(clippy::print_stdout, reason = "the figures are the purpose")]

use std::hint::black_box;
use std::time::Instant;

use hookspan_redact::Redactor;

fn main() {
    let redactor = Redactor::new([7; 32]);
    let corpus = include_str!("../tests/corpus.txt").replace(['«', '»'], "");
    let prose = "The reader waits until the file grows, then parses each line and adds the spans of a turn. ";
    let code = "fn next(&mut self, token: &Token) -> Option<Span> { self.tokens.pop().filter(|t| t.kind != token.kind) }\n";
    let escaped = serde_json::Value::from(code.repeat(60)).to_string();
    let large = |part: &str| part.repeat((8 << 20) / part.len());
    let texts = [
        ("name of 20 bytes", "Shell cargo test -p x".to_owned()),
        ("prose, 6 KB", prose.repeat(66)),
        ("code with the word token, 6 KB", code.repeat(60)),
        ("the same in JSON", escaped),
        ("corpus: a secret every 90 bytes", corpus),
        ("8 MiB of token=", large("token=")),
        ("8 MiB of password: \"", large("password: \"")),
        ("8 MiB of cookie: a=bbbbbbbb;", large("cookie: a=bbbbbbbb;")),
        ("8 MiB of BEGIN PRIVATE KEY", large("-----BEGIN PRIVATE KEY-----\n")),
        ("8 MiB of curl -u mysql -p sk-", large("curl -u mysql -p sk-")),
        ("8 MiB of eyJ", large("eyJ")),
        ("8 MiB of ://a:b", large("://a:b")),
        ("8 MiB of Z2hw", large("Z2hw")),
    ];
    span(&redactor);
    for (name, text) in texts {
        black_box(redactor.redact(&text));
        let rounds = ((4 << 20) / text.len()).clamp(1, 20_000);
        let start = Instant::now();
        for _ in 0..rounds {
            black_box(redactor.redact(black_box(&text)));
        }
        let us = start.elapsed().as_secs_f64() * 1e6 / rounds as f64;
        println!(
            "{name:34} {:>10.3} µs a text, {:>8.3} µs per KB",
            us,
            us * 1e3 / text.len() as f64
        );
    }
}

/// The strings of a tool span at `content = "metadata"`.
fn span(redactor: &Redactor) {
    let strings = [
        "execute_tool Shell cargo",
        "3c9d1e70-2b4f-4d61-9a58-7f0e6c2b1a94",
        "3c9d1e70-2b4f-4d61-9a58-7f0e6c2b1a94",
        "5d2c7a10-6e8b-4f3d-8b1c-000000000001",
        "3c9d1e70-2b4f-4d61-9a58-7f0e6c2b1a94",
        "Shell",
        "toolu_01A2b3C4d5E6f7G8h9",
        "execute_tool",
        "function",
        "tool",
        "matched",
        "cargo",
        "collector/src/export/otlp.rs",
        "rs",
        "agent",
        "ide",
        "default",
        "cursor",
        "3.7.19",
        "TOOL",
        "exit_code",
        "exit code 101",
        "preToolUse",
        "postToolUse",
        "beforeShellExecution",
    ];
    let rounds = 100_000_u32;
    let start = Instant::now();
    for _ in 0..rounds {
        for text in strings {
            black_box(redactor.redact(black_box(text)));
        }
    }
    let us = start.elapsed().as_secs_f64() * 1e6 / f64::from(rounds);
    println!("the {} strings of a tool span     {us:>10.3} µs a span", strings.len());
}
