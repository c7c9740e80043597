//! Private keys in PEM armour, and tokens inside base64.

use super::{Check, Rule};

pub(crate) const KEYS: &[Rule] = &[
    Rule {
        name: "private-key",
        about: "Private key in PEM, OpenSSH, PuTTY or PGP armour",
        keywords: &["private key", "private-lines"],
        pattern: r#"(?:-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|Private-Lines: [0-9]{1,3})((?:[A-Za-z0-9+/=\s:.\\-]|,[A-Za-z0-9]|["'`]\s?[+,.]?\s*\n[\s+|-]*["'`])+?)(?:-----END|Private-MAC|\z|[^A-Za-z0-9+/=\s:.\\-])"#,
        check: Check::Armour,
        before: 64,
        after: 4_096,
        source: "RFC 7468, RFC 4880, OpenSSH PROTOCOL.key",
    },
    Rule {
        name: "base64",
        about: "A token of this list, wrapped in base64",
        keywords: crate::wrapped::CORES,
        pattern: r"([A-Za-z0-9+/_-]{16,}={0,2})",
        check: Check::Wrapped,
        before: 4_096,
        after: 4_096,
        source: "RFC 4648",
    },
];
