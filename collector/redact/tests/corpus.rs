//! Measures the redactor with its corpus, and checks the figures in PRIVACY.md.

#![expect(clippy::unwrap_used, reason = "a corpus that cannot be read fails its test")]

use std::fs;
use std::path::Path;

use hookspan_redact::Redactor;
use serde_json::Value;

/// A line of the corpus: its name, its text, and the secret if there is one.
struct Sample {
    kind: String,
    text: String,
    secret: Option<(usize, usize)>,
}

/// A sample in one of the [`ENCODINGS`].
struct Encoded {
    text: String,
    secret: Option<String>,
    before: String,
    after: String,
}

fn corpus() -> Vec<Sample> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus.txt");
    let text = fs::read_to_string(path).unwrap();
    text.lines().filter(|line| !line.starts_with('#')).map(sample).collect()
}

fn sample(line: &str) -> Sample {
    let (kind, text) = line[2..].split_once(" | ").unwrap();
    let text = text.replace('⏎', "\n");
    let kind = kind.to_owned();
    if line.starts_with('-') {
        return Sample { kind, text, secret: None };
    }
    let start = text.find('«').unwrap();
    let end = text.find('»').unwrap() - '«'.len_utf8();
    Sample { kind, text: text.replace(['«', '»'], ""), secret: Some((start, end)) }
}

/// `text` as a JSON string inside a document.
fn escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

const ENCODINGS: [&str; 5] = ["plain", "json", "json twice", "json three times", "diff"];

fn encoded(sample: &Sample, encoding: &str) -> Encoded {
    let (start, end) = sample.secret.unwrap_or((sample.text.len(), sample.text.len()));
    let parts = [&sample.text[..start], &sample.text[start..end], &sample.text[end..]];
    let encode = |part: &str| match encoding {
        "json" => escaped(part),
        "json twice" => escaped(&escaped(part)),
        "json three times" => escaped(&escaped(&escaped(part))),
        "diff" => part.replace('\n', "\n+"),
        _ => part.to_owned(),
    };
    let (head, tail) = match encoding {
        "json" => ("{\"content\":\"", "\",\"n\":1}"),
        "json twice" => ("{\"body\":\"{\\\"content\\\":\\\"", "\\\"}\",\"n\":1}"),
        "json three times" => {
            ("{\"a\":\"{\\\"b\\\":\\\"{\\\\\\\"c\\\\\\\":\\\\\\\"", "\\\\\\\"}\\\"}\"}")
        }
        "diff" => ("+", "\n context"),
        _ => ("", ""),
    };
    let [before, secret, after] = parts.map(encode);
    let (before, after) = (format!("{head}{before}"), format!("{after}{tail}"));
    let text = format!("{before}{secret}{after}");
    Encoded { text, secret: sample.secret.map(|_| secret), before, after }
}

#[derive(Debug, Default)]
struct Score {
    secrets: u32,
    found: u32,
    /// Number of wrong replacements: a secret was replaced together with other text, or a text without a secret was
    /// changed.
    wrong: u32,
    /// Number of texts without a secret.
    stay: u32,
    kept: u32,
    notes: Vec<String>,
}

impl Score {
    fn recall(&self) -> f64 {
        100.0 * f64::from(self.found) / f64::from(self.secrets)
    }

    fn precision(&self) -> f64 {
        100.0 * f64::from(self.found) / f64::from(self.found + self.wrong)
    }

    fn add(&mut self, kind: &str, encoding: &str, encoded: &Encoded, redacted: &str) {
        let Some(secret) = &encoded.secret else {
            self.stay += 1;
            let same = redacted == encoded.text;
            self.kept += u32::from(same);
            self.wrong += u32::from(!same);
            if !same {
                self.notes.push(format!("changed {kind} ({encoding}): {redacted}"));
            }
            return;
        };
        self.secrets += 1;
        // A secret of which half remains counts as not replaced.
        let whole = redacted != encoded.text && !holds_part(redacted, secret);
        self.found += u32::from(whole);
        if !whole {
            self.notes.push(format!("missed {kind} ({encoding}): {redacted}"));
        }
        let around = redacted.starts_with(&encoded.before) && redacted.ends_with(&encoded.after);
        if whole && !around {
            self.wrong += 1;
            self.notes.push(format!("too much {kind} ({encoding}): {redacted}"));
        }
    }
}

/// Whether six consecutive characters of the secret remain.
fn holds_part(redacted: &str, secret: &str) -> bool {
    let characters: Vec<char> = secret.chars().collect();
    let parts = redacted.split("[redacted:").enumerate();
    let outside = parts.map(|(index, part)| match part.split_once(']') {
        Some((_, rest)) if index > 0 => rest,
        _ => part,
    });
    let outside = outside.collect::<Vec<_>>().join(" ");
    characters.windows(6.min(characters.len())).any(|part| {
        let part: String = part.iter().collect();
        part.trim_matches(['\\', 'n', '\n', ' ', '+']).len() > 4
            && !part.contains("PRIVATE")
            && outside.contains(&part)
    })
}

fn measure() -> Score {
    let redactor = Redactor::new([7; 32]);
    let mut score = Score::default();
    for sample in corpus() {
        for encoding in ENCODINGS {
            let encoded = encoded(&sample, encoding);
            let (redacted, _) = redactor.redact(&encoded.text);
            if encoding.starts_with("json") {
                let valid = serde_json::from_str::<Value>(&redacted).is_ok();
                assert!(valid, "{} ({encoding}) is no JSON any more: {redacted}", sample.kind);
            }
            score.add(&sample.kind, encoding, &encoded, &redacted);
        }
    }
    score
}

#[test]
fn recall_and_precision_hold_and_privacy_md_has_the_figures() {
    let score = measure();
    let samples = corpus();
    let kinds = samples.iter().filter(|sample| sample.secret.is_some()).count();
    let figures = format!(
        "{kinds} kinds of secrets in {} spellings: recall {:.1} %, precision {:.1} %. {} look-alikes in {} spellings: {} stay unchanged.",
        score.secrets,
        score.recall(),
        score.precision(),
        samples.len() - kinds,
        score.stay,
        score.kept,
    );
    eprintln!("{figures}\n{}", score.notes.join("\n"));
    assert!(kinds >= 60 && samples.len() - kinds >= 60);
    assert!(
        score.recall() >= 97.0 && score.precision() >= 95.0,
        "{figures}\n{}",
        score.notes.join("\n")
    );
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let privacy = fs::read_to_string(root.join("PRIVACY.md")).unwrap();
    let words =
        |text: &str| text.replace("\n>", "\n").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&privacy).contains(&words(&figures)), "PRIVACY.md lacks the line: {figures}");
}
