//! Whether a word may be shown as a program's name.

const MAX_BYTES: usize = 64;

/// Maximum length of a run of letters and digits. Programs with longer names separate their parts with `-`, `_` or `.`.
const MAX_RUN: usize = 24;

/// Maximum length of a run that contains a capital letter. A longer one looks like base64.
const MAX_MIXED_RUN: usize = 16;

/// Maximum number of digits. A word with more digits is an id.
const MAX_DIGITS: usize = 8;

/// Maximum number of changes between letters and digits or from small to capital letters. A word with more looks
/// random: `i686-w64-mingw32` has three, and ten random letters and digits have four on average.
const MAX_CHANGES: usize = 3;

/// How well-known secrets begin.
const SECRETS: [&str; 29] = [
    "AGE-SECRET",
    "AIza",
    "AKIA",
    "ASIA",
    "ATATT",
    "SG.",
    "dckr_pat_",
    "dop_v1_",
    "eyJ",
    "ghp_",
    "gho_",
    "ghr_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "gsk_",
    "hf_",
    "npm_",
    "pk_live_",
    "pypi-",
    "rk_live_",
    "shpat_",
    "sk-",
    "sk_",
    "tskey-",
    "whsec_",
    "xox",
    "ya29.",
];

/// Words of the shell's own grammar. The words after them are not arguments.
const RESERVED: [&str; 44] = [
    "and", "begin", "break", "call", "case", "catch", "class", "continue", "coproc", "data", "do",
    "done", "elif", "else", "end", "enum", "esac", "fi", "filter", "finally", "for", "foreach",
    "function", "goto", "if", "in", "not", "or", "param", "process", "rem", "repeat", "select",
    "start", "switch", "then", "throw", "trap", "try", "until", "using", "while", "workflow",
    "alias",
];

/// Whether `base`, the last part of the path `word`, may be shown.
pub(super) fn is_plain(word: &str, base: &str) -> bool {
    let safe = |b: u8| b.is_ascii_alphanumeric() || b"._+-".contains(&b);
    (1..=MAX_BYTES).contains(&base.len())
        && base.bytes().all(safe)
        && base.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.')
        && base.contains(|c: char| c.is_ascii_alphabetic())
        && !RESERVED.iter().any(|reserved| base.eq_ignore_ascii_case(reserved))
        && !is_secret(base)
        // Base64 contains slashes. So a path that begins neither at a root nor with a folder is checked as a whole.
        && (word.starts_with(['/', '\\', '.', '~'])
            || word.contains(':')
            || !word.split(['/', '\\']).any(is_secret))
}

/// Whether a word begins like a known secret or looks random.
fn is_secret(word: &str) -> bool {
    let changes = word.as_bytes().windows(2).filter(|pair| changes(pair)).count();
    SECRETS.iter().any(|secret| word.starts_with(secret))
        || changes > MAX_CHANGES
        || word.bytes().filter(u8::is_ascii_digit).count() > MAX_DIGITS
        || word.split(['.', '_', '+', '-']).any(is_long)
}

fn is_long(run: &str) -> bool {
    let capitals = run.contains(|c: char| c.is_ascii_uppercase());
    run.len() > if capitals { MAX_MIXED_RUN } else { MAX_RUN }
}

fn changes(pair: &[u8]) -> bool {
    let &[a, b] = pair else { return false };
    let digit = a.is_ascii_digit() != b.is_ascii_digit();
    (digit && a.is_ascii_alphanumeric() && b.is_ascii_alphanumeric())
        || (a.is_ascii_lowercase() && b.is_ascii_uppercase())
}
