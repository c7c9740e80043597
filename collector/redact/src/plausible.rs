//! Decides whether a match is a secret. Names such as `password` are followed by types, variables, paths and words as
//! often as by secrets.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use crate::rules::Check;

/// A match of a rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found<'a> {
    /// The text between the start of the match and the secret.
    pub(crate) lead: &'a [u8],
    pub(crate) secret: &'a [u8],
}

/// Placeholders for a secret, and words that name a kind of secret. Compared case-insensitively, by letters and digits
/// only.
const WORDS: &[&str] = &[
    "password",
    "passwd",
    "pass",
    "passphrase",
    "passcode",
    "secret",
    "secrets",
    "token",
    "tokens",
    "apikey",
    "key",
    "credentials",
    "changeme",
    "changeit",
    "changethis",
    "placeholder",
    "example",
    "sample",
    "dummy",
    "redacted",
    "hidden",
    "masked",
    "removed",
    "none",
    "null",
    "undefined",
    "nil",
    "true",
    "false",
    "yes",
    "no",
    "empty",
    "unset",
    "todo",
    "tbd",
    "fixme",
    "default",
    "string",
    "str",
    "number",
    "integer",
    "boolean",
    "bool",
    "object",
    "bytes",
    "text",
    "option",
    "optional",
    "required",
    "any",
    "unknown",
    "never",
    "void",
    "char",
    "varchar",
    "secretstr",
    "securestring",
    "usize",
    "int",
    "float",
    "list",
    "dict",
    "map",
    "file",
    "path",
    "env",
    "environment",
    "prompt",
    "stdin",
    "input",
    "field",
    "value",
    "flag",
    "argument",
    "parameter",
    "hash",
    "hashed",
    "encrypted",
    "valid",
    "invalid",
    "wrong",
    "correct",
    "missing",
    "expired",
    "incorrect",
    "mismatch",
    "reset",
    "protected",
    "protection",
    "authentication",
    "auth",
    "login",
    "bearer",
    "basic",
    "refresh",
    "access",
    "private",
    "public",
    "readonly",
    "username",
    "user",
    "email",
    "disabled",
    "enabled",
    "generated",
    "random",
    "stored",
    "manager",
    "provider",
    "service",
    "client",
    "server",
    "this",
    "that",
    "then",
    "with",
    "from",
    "your",
    "the",
    "and",
    "not",
    "for",
    "use",
    "used",
    "set",
    "get",
    "new",
    "old",
    "current",
    "inherit",
    "identifier",
    "literal",
    "keyword",
    "punctuation",
    "comment",
    "operator",
    "self",
    "test",
    "testing",
    "fake",
    "mock",
    "foobar",
    "vault",
    "keychain",
    "keyring",
    "always",
    "auto",
    "ask",
    "write",
    "read",
];

/// Beginnings of stand-ins.
const STAND_INS: &[&str] = &[
    "your",
    "xxx",
    "enter",
    "insert",
    "replace",
    "change",
    "put-",
    "put_",
    "placeholder",
    "redacted",
    "[redacted",
    "[withheld",
    "example",
    "dummy",
    "sample",
    "todo",
    "...",
    "***",
    "•",
    "<",
    "_your",
    "__",
];

/// Beginnings of placeholders that consist of words: `my-secret-token` is one, `my-S3cret` is not.
const WORDY_STAND_INS: &[&str] =
    &["some", "my", "fake", "mock", "test", "a-", "the-", "super-secret", "foo", "bar"];

/// Beginnings of references to a value that is stored elsewhere.
const REFERENCES: &[&str] = &[
    "process.env",
    "os.environ",
    "os.getenv",
    "import.meta",
    "env.",
    "env(",
    "env[",
    "getenv",
    "std::",
    "self.",
    "this.",
    "config.",
    "settings.",
    "args.",
    "req.",
    "request.",
    "params.",
    "props.",
    "ctx.",
    "secrets.",
    "vars.",
    "var.",
    "local.",
    "data.",
    "module.",
    "!ref",
    "!sub",
    "!getatt",
    "op://",
    "vault:",
    "ssm:",
    "arn:",
    "secretref",
    "valuefrom",
    "file:",
    "@",
    "%(",
    "#{",
    "f\"",
    "keyvault",
    "&",
];

impl Found<'_> {
    pub(crate) fn passes(&self, check: Check) -> bool {
        match check {
            Check::Form => !is_row(self.secret),
            Check::Random(hundredths) => {
                entropy(self.secret) * 100.0 >= f64::from(hundredths) && has_digit(self.secret)
            }
            Check::Value => self.is_value(),
            Check::Password => self.is_password(),
            Check::Argument => self.is_argument(),
            Check::Jwt => is_jwt(self.secret),
            Check::Armour => longest_run(self.secret) >= 20,
            // The caller checks this, because it has the rules.
            Check::Wrapped => true,
        }
    }

    fn is_value(&self) -> bool {
        let value = self.secret;
        if is_elsewhere(value) || is_stand_in(value) || has_space(value) {
            return false;
        }
        let quoted = matches!(self.lead.last(), Some(b'"' | b'\'' | b'`'));
        let password = names_password(self.lead);
        let variable = self.is_variable();
        if !quoted && is_code(value, variable) {
            return false;
        }
        if value.iter().all(u8::is_ascii_alphabetic) {
            return letters_are_secret(value, quoted, password, variable);
        }
        if password {
            let identifier = !quoted && !variable && is_identifier(value) && !has_digit(value);
            return !identifier && (value.len() >= 6 || !is_number(value));
        }
        value.len() >= 8 && !is_number(value) && entropy(value) >= 2.5 && !is_name(value)
    }

    /// Whether the value is a secret because of its place. It is not if it is a reference, a placeholder, a path or
    /// code.
    fn is_password(&self) -> bool {
        let value = self.secret;
        let other = is_elsewhere(value) || is_stand_in(value) || is_code(value, true);
        !other && !value.starts_with(b"-") && !has_space(value)
    }

    /// Like [`Self::is_password`], for places where an ordinary word is more likely than a secret.
    fn is_argument(&self) -> bool {
        let letters = |b: &u8| {
            b.is_ascii_alphabetic() || matches!(b, b'.' | b'?' | b'!' | b':' | b')' | b'_' | b'-')
        };
        let wordy = self.secret.iter().all(letters) || is_name(self.secret);
        let long = self.secret.len() >= 20 && entropy(self.secret) >= 3.5 && !is_name(self.secret);
        self.is_password() && (!wordy || long) && !is_small_number(self.secret)
    }

    /// Whether the lead is `NAME=`, as in an environment file.
    fn is_variable(&self) -> bool {
        let lead = self.lead.trim_ascii_end();
        let lead = lead.strip_suffix(b"\"").or(lead.strip_suffix(b"'")).unwrap_or(lead);
        let Some(name) = lead.strip_suffix(b"=") else { return false };
        let tail =
            name.iter().rev().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_');
        let mut length = 0;
        let upper = tail.inspect(|_| length += 1).all(|byte| !byte.is_ascii_lowercase());
        upper && length > 2
    }
}

fn letters_are_secret(value: &[u8], quoted: bool, password: bool, variable: bool) -> bool {
    // `Passwort`, `String`: a label or a type.
    let title = value.first().is_some_and(u8::is_ascii_uppercase)
        && value.iter().skip(1).all(u8::is_ascii_lowercase);
    match (password, variable, quoted) {
        (true, true, _) => true,
        (true, false, true) => !title && value.len() >= 5,
        (true, false, false) => {
            !title && value.len() >= 12 && value.iter().all(u8::is_ascii_lowercase)
        }
        (false, true, _) => value.len() >= 12,
        (false, false, true) => value.len() >= 20 && entropy(value) >= 3.3,
        (false, false, false) => value.len() >= 24 && entropy(value) >= 3.6,
    }
}

fn names_password(lead: &[u8]) -> bool {
    let lead = lead.to_ascii_lowercase();
    [&b"pass"[..], b"pwd"].iter().any(|word| memchr::memmem::find(&lead, word).is_some())
}

/// Whether the value is a reference: the secret itself is in a variable, a file or a secret store.
fn is_elsewhere(value: &[u8]) -> bool {
    let lower = value.to_ascii_lowercase();
    if REFERENCES.iter().any(|start| lower.starts_with(start.as_bytes())) {
        return true;
    }
    let named = |byte: Option<&u8>| {
        byte.is_some_and(|b| b.is_ascii_alphabetic() || matches!(b, b'_' | b'{' | b'('))
    };
    match value.first() {
        Some(b'$') => {
            return named(value.get(1))
                || value.get(1).is_some_and(u8::is_ascii_digit) && value.len() < 4;
        }
        Some(b'{') => return true,
        Some(b'%') => return value.len() > 2 && value.ends_with(b"%"),
        _ => {}
    }
    let inside = [&b"${"[..], b"{{", b"$(", b"://"];
    inside.iter().any(|part| memchr::memmem::find(value, part).is_some()) || is_path(value)
}

fn is_stand_in(value: &[u8]) -> bool {
    let lower = value.to_ascii_lowercase();
    if is_row(value) || STAND_INS.iter().any(|start| lower.starts_with(start.as_bytes())) {
        return true;
    }
    if is_name(value) && WORDY_STAND_INS.iter().any(|start| lower.starts_with(start.as_bytes())) {
        return true;
    }
    let inside = [
        &b"changeme"[..],
        b"change_me",
        b"change-me",
        b"placeholder",
        b"your_",
        b"your-",
        b"xxxx",
        b"[redacted",
    ];
    if inside.iter().any(|part| memchr::memmem::find(&lower, part).is_some()) {
        return true;
    }
    let plain: Vec<u8> = lower.into_iter().filter(u8::is_ascii_alphanumeric).collect();
    plain.len() < 3 || WORDS.iter().any(|word| word.as_bytes() == plain)
}

/// `xxxxxxxx`, `********`, `ghp_000000`: after the prefix, only one or two characters repeat.
fn is_row(value: &[u8]) -> bool {
    let tail = value.get(value.len() / 3..).unwrap_or_default();
    let mut seen = [false; 256];
    let distinct =
        tail.iter().filter(|byte| !std::mem::replace(&mut seen[usize::from(**byte)], true)).count();
    distinct <= 2 && value.len() > 3
}

fn has_space(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_whitespace)
}

fn has_digit(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_digit)
}

fn is_number(value: &[u8]) -> bool {
    value.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'_' | b','))
}

/// A count or a size, not a pass code.
fn is_small_number(value: &[u8]) -> bool {
    is_number(value) && value.len() < 6
}

/// Whether the value is a call or a dotted path of names. In an environment file, only a call counts as code.
fn is_code(value: &[u8], lenient: bool) -> bool {
    let call = value.iter().position(|byte| *byte == b'(').is_some_and(|at| {
        at > 0
            && value
                .get(..at)
                .unwrap_or_default()
                .iter()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':' | b'!'))
    });
    let names = memchr::memmem::find(value, b"::").is_some()
        || memchr::memmem::find(value, b"->").is_some();
    let dotted = !lenient && value.contains(&b'.') && is_dotted(value);
    call || !lenient && names || dotted
}

/// `user.password`, `cfg.api_key`.
fn is_dotted(value: &[u8]) -> bool {
    value.split(|byte| *byte == b'.').all(|part| {
        part.first().is_none_or(|b| b.is_ascii_alphabetic() || *b == b'_')
            && is_identifier(part)
            && !has_digit(part)
    })
}

fn is_identifier(value: &[u8]) -> bool {
    value.iter().all(|byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'?' | b'!' | b'-')
    })
}

/// `app-secret-v2`, `token_cache_1`: words joined by dashes, each of letters or a short number.
fn is_name(value: &[u8]) -> bool {
    let parts: Vec<&[u8]> =
        value.split(|byte| matches!(byte, b'-' | b'_' | b'.' | b'/' | b':')).collect();
    let word = |part: &[u8]| {
        let letters = part.iter().filter(|b| b.is_ascii_alphabetic()).count();
        letters == part.len() && letters < 16 || part.len() <= 3
    };
    let cased = |part: &[u8]| {
        let flips = part
            .windows(2)
            .filter(|pair| pair[0].is_ascii_uppercase() && pair[1].is_ascii_lowercase())
            .count();
        flips * 5 <= part.len() + 5
    };
    parts.len() > 1 && parts.iter().all(|part| word(part) && cased(part))
}

/// A path of a file, relative or not.
fn is_path(value: &[u8]) -> bool {
    let rooted = [&b"/"[..], b"./", b"../", b"~/", b"C:\\", b"c:\\"]
        .iter()
        .any(|start| value.starts_with(start));
    let plain = value.iter().all(|b| {
        b.is_ascii_alphanumeric()
            || matches!(b, b'/' | b'.' | b'_' | b'-' | b'~' | b'*' | b'\\' | b':')
    });
    let deep = value.iter().filter(|byte| matches!(byte, b'/' | b'\\')).count() >= 2;
    let wordy = value
        .split(|byte| matches!(byte, b'/' | b'\\'))
        .all(|part| part.len() <= 3 || entropy(part) < 3.7 || is_name(part));
    rooted && plain && deep && wordy
}

fn is_jwt(value: &[u8]) -> bool {
    let head = value.split(|byte| *byte == b'.').next().unwrap_or_default();
    let head =
        if head.len() % 4 == 1 { head.get(..head.len() - 1).unwrap_or_default() } else { head };
    let Ok(decoded) = BASE64_URL_SAFE_NO_PAD.decode(head) else { return false };
    ["\"alg\"", "\"typ\"", "\"kid\"", "\"enc\""]
        .iter()
        .any(|key| memchr::memmem::find(&decoded, key.as_bytes()).is_some())
}

fn longest_run(value: &[u8]) -> usize {
    let runs =
        value.split(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')));
    runs.map(<[u8]>::len).max().unwrap_or(0)
}

/// Bits per character, from the frequencies of the characters.
pub(crate) fn entropy(value: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in value {
        counts[usize::from(*byte)] += 1;
    }
    let total = f64::from(u32::try_from(value.len()).unwrap_or(u32::MAX));
    let shares = counts.iter().filter(|count| **count > 0).map(|count| f64::from(*count) / total);
    -shares.map(|share| share * share.log2()).sum::<f64>()
}
