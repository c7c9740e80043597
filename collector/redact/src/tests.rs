use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn redactor() -> Redactor {
    Redactor::new([7; 32])
}

/// Places in commands, files and answers; `§` stands for the secret.
const PLACES: [&str; 16] = [
    "psql postgres://app:§@db.internal:5432/live",
    "curl -H 'Cookie: session=§; theme=dark' https://example.com",
    "mysql -uroot -p§ live",
    "export API_KEY=§",
    "DB_PASSWORD=§\nDB_HOST=localhost",
    "{\"client_secret\": \"§\", \"id\": 7}",
    "{\\\"client_secret\\\": \\\"§\\\"}",
    "Authorization: Bearer §",
    "authorization: Basic §",
    "GET /callback?access_token=§&state=1",
    "aws_secret_access_key = §",
    "password: §",
    "-----BEGIN OPENSSH PRIVATE KEY-----\n§\n-----END OPENSSH PRIVATE KEY-----",
    "token='§'",
    "tool --password § --verbose",
    "sshpass -p § ssh host",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_planted_secret_survives_whatever_stands_around_it(
        secret in "[A-Za-z]{2}[0-9][A-Za-z0-9+]{17,37}",
        before in "[a-z äß\n.]{0,40}",
        after in "[a-z 0-9\n]{0,40}",
    ) {
        let redactor = redactor();
        for place in PLACES {
            let text = format!("{before} {} \n{after}", place.replace('§', &secret));
            let (redacted, count) = redactor.redact(&text);
            prop_assert!(count > 0, "{}", text);
            prop_assert!(!redacted.contains(&secret), "{} -> {}", text, redacted);
        }
    }

    #[test]
    fn any_text_is_looked_through_without_a_panic(text in "(\\PC|\\\\|\"|password=|token: ){0,60}") {
        let (redacted, count) = redactor().redact(&text);
        prop_assert!(count > 0 || *redacted == *text);
    }

    #[test]
    fn a_document_stays_a_document(
        name in "(password|api_key|x|to\"ken|secret\\\\)",
        value in "(\\PC|\\\\|\"|=){0,30}",
        number in any::<i64>(),
    ) {
        let inner = serde_json::json!({&name: &value, "token": number, "list": [&value]}).to_string();
        let outer = serde_json::json!({"arguments": inner, &name: [&value]}).to_string();
        let (redacted, _) = redactor().redact(&outer);
        let parsed: Value = serde_json::from_str(&redacted).unwrap();
        prop_assert!(parsed.is_object());
    }
}

#[test]
fn the_keywords_become_an_automaton() {
    assert!(redactor().scanner.is_ready());
}

#[test]
fn equal_secrets_look_equal_and_another_key_gives_other_digits() {
    let one = redactor().redact("password=hunter2hunter2").0.into_owned();
    let two = redactor().redact("password=hunter2hunter2 and").0.into_owned();
    assert_eq!(two, format!("{one} and"));
    assert_ne!(Redactor::new([8; 32]).redact("password=hunter2hunter2").0, one);
}

#[test]
fn what_is_redacted_stays_as_it_is() {
    let redactor = redactor();
    for place in PLACES {
        let text = place.replace('§', "hunter2Hunter3hunter4Hunter5");
        let once = redactor.redact(&text).0;
        assert_eq!(redactor.redact(&once).0, *once);
    }
}

#[test]
fn a_member_is_judged_together_with_its_name() {
    let mut value =
        serde_json::json!({"config": {"password": "hunter2x9", "name": "x9hunter2"}, "n": 1});
    assert_eq!(redactor().redact_json(&mut value), 1);
    assert!(value["config"]["password"].as_str().unwrap().starts_with("[redacted:"), "{value}");
    assert_eq!(value["config"]["name"], "x9hunter2");
}

#[test]
fn a_person_adds_rules_and_exceptions() {
    let rule =
        |name: &str, pattern: &str| UserRule { name: name.to_owned(), pattern: pattern.to_owned() };
    let rules = [rule("ticket", r"ACME-\d{4}"), rule("badge", r"badge (\w+)")];
    let allow = ["hunter2hunter2".to_owned(), "ACME-0000".to_owned()];
    let own = redactor().with(&rules, &allow).unwrap();
    let (text, count) =
        own.redact("ACME-1234 ACME-0000 badge x7 password=hunter2hunter2 password=hunter3hunter3");
    assert_eq!(count, 3, "{text}");
    assert!(
        text.starts_with("[redacted:ticket:") && text.contains(" ACME-0000 badge [redacted:badge:"),
        "{text}"
    );
    assert!(text.contains("password=hunter2hunter2") && !text.contains("hunter3"), "{text}");
    assert_ne!(own.version(), redactor().version());
}

#[test]
fn a_rule_that_cannot_be_used_says_why() {
    let error = |name: &str, pattern: &str| {
        let rule = UserRule { name: name.to_owned(), pattern: pattern.to_owned() };
        redactor().with(&[rule], &[]).unwrap_err().1
    };
    assert_eq!(error("A b", "x"), UserRuleError::Name("A b".to_owned()));
    assert_eq!(error("a", "x*"), UserRuleError::Empty);
    let words = error("a", "(x").to_string();
    assert_eq!(words, "the pattern cannot be used: unclosed group");
    assert!(matches!(error("a", "(a{900}){900}"), UserRuleError::Pattern(_)));
}

#[test]
fn a_match_longer_than_its_region_is_replaced_whole() {
    let secret = "A1b2C3d4".repeat(4_000);
    for text in [format!("API_KEY={secret}\n"), format!("{{\"password\": \"{secret}\"}}")] {
        let (redacted, count) = redactor().redact(&text);
        assert_eq!(count, 1);
        assert!(!redacted.contains("A1b2C3d4"), "{}", redacted.len());
    }
}

#[test]
fn hostile_text_is_bounded() {
    let redactor = redactor();
    let repeated = |part: &str, bytes: usize| part.repeat(bytes / part.len());
    let nested = format!("{{\"password\":{}\"x", "\\".repeat(100_000));
    let texts = [
        nested,
        repeated("token=", 60_000),
        repeated("password: \"", 60_000),
        repeated("-----BEGIN PRIVATE KEY-----\n", 60_000),
        repeated("cookie: a=bbbbbbbb;", 60_000),
        repeated("://a:b", 60_000),
        repeated("eyJ", 60_000),
        repeated("curl -u mysql -p sk-", 60_000),
        repeated("ghp_", 60_000),
        repeated("Z2hw", 60_000),
        repeated("echo a | sudo -s ", 60_000),
        repeated("\\\\\\\"secret\\\\\\\":", 60_000),
    ];
    for text in texts {
        let (redacted, count) = redactor.redact(&text);
        assert!(count > 0 || *redacted == *text);
    }
    let large = "password=hunter2hunter2 ".repeat(3 << 20);
    assert_eq!(redactor.redact(&large), (Cow::Borrowed(WITHHELD), 1));
}
