//! Finds tokens inside base64: in configuration values, manifests of secrets, and commands that unpack themselves.
//!
//! How a prefix looks in base64 depends on its distance from the start, modulo three. So three encoded forms of each
//! prefix serve as keywords. A run of base64 near one of them is decoded and searched.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// The decoded text of `run`, if `run` is base64 of text. `None` for base64 of an image.
pub(crate) fn decoded(run: &[u8]) -> Option<String> {
    let url_safe = run.iter().any(|byte| matches!(byte, b'-' | b'_'));
    let engine = if url_safe { &URL_SAFE } else { &STANDARD };
    // A single extra character does not make a byte.
    let whole = if run.len() % 4 == 1 { run.get(..run.len() - 1)? } else { run };
    String::from_utf8(engine.decode(whole).ok()?).ok()
}

/// Encoded forms of the beginnings in `PREFIXES`, one for each distance from the start modulo three. A test computes
/// them again.
pub(crate) const CORES: &[&str] = &[
    "0b2tlbj",
    "4b3hiL",
    "4b3hwL",
    "5wbV",
    "9LRVk9",
    "BBU1NXT1JEP",
    "BR0UtU0VDUkVULUtFW",
    "BS0lB",
    "BSSVZBVEUgS0VZ",
    "BSXph",
    "BUElfS0VZ",
    "BY2NvdW50S2V5P",
    "Bhc3N3b3JkP",
    "ByaXZhdGVfa2V5",
    "FHRS1TRUNSRVQtS0VZ",
    "FJem",
    "FLSU",
    "FQSV9LRV",
    "FjY291bnRLZXk9",
    "FwaV9rZX",
    "InBhc3N3b3JkI",
    "JwYXNzd29yZC",
    "NFQ1JFVD",
    "NlY3JldD",
    "NrLWFudC",
    "NrLXByb2ot",
    "NrX2xpdmVf",
    "NsaWVudF9zZWNyZX",
    "QQVNTV09SRD",
    "QUdFLVNFQ1JFVC1LRV",
    "QUklWQVRFIEtFW",
    "QUl6Y",
    "QUtJQ",
    "QVBJX0tFW",
    "QWNjb3VudEtleT",
    "RPS0VOP",
    "Rva2VuP",
    "RvcF92MV",
    "TRUNSRVQ9",
    "U0VDUkVUP",
    "U0cu",
    "UEFTU1dPUkQ9",
    "UFJJVkFURSBLRV",
    "UT0tFTj",
    "VE9LRU49",
    "X0tFWT",
    "Y2xpZW50X3NlY3Jld",
    "YXBpX2tle",
    "Z2hvX",
    "Z2hwX",
    "Z2hzX",
    "Z2l0aHViX3BhdF",
    "Z2xwYXQt",
    "ZG9wX3YxX",
    "aGZf",
    "bnBtX",
    "c2VjcmV0P",
    "c2stYW50L",
    "c2stcHJvai",
    "c2tfbGl2ZV",
    "cGFzc3dvcmQ9",
    "cHJpdmF0ZV9rZX",
    "dG9rZW49",
    "dob1",
    "doc1",
    "docF",
    "dpdGh1Yl9wYXRf",
    "dscGF0L",
    "eG94Yi",
    "eG94cC",
    "fS0VZP",
    "hcGlfa2V5",
    "hveGIt",
    "hveHAt",
    "icGFzc3dvcmQi",
    "jbGllbnRfc2VjcmV0",
    "kb3BfdjFf",
    "naG9f",
    "naHBf",
    "naHNf",
    "naXRodWJfcGF0X",
    "nbHBhdC",
    "ucG1f",
    "wYXNzd29yZD",
    "wcml2YXRlX2tle",
    "zZWNyZXQ9",
    "za19saXZlX",
    "zay1hbnQt",
    "zay1wcm9qL",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use base64::prelude::BASE64_STANDARD;

    use super::*;

    const PREFIXES: &[&str] = &[
        "ghp_",
        "gho_",
        "ghs_",
        "github_pat_",
        "glpat-",
        "sk-ant-",
        "sk-proj-",
        "AKIA",
        "xoxb-",
        "xoxp-",
        "sk_live_",
        "AIza",
        "npm_",
        "hf_",
        "PRIVATE KEY",
        "AGE-SECRET-KEY",
        "dop_v1_",
        "SG.",
        "password=",
        "PASSWORD=",
        "\"password\"",
        "api_key",
        "API_KEY",
        "SECRET=",
        "secret=",
        "TOKEN=",
        "token=",
        "_KEY=",
        "AccountKey=",
        "private_key",
        "client_secret",
    ];

    #[test]
    fn the_spellings_are_those_of_the_prefixes() {
        let mut cores = BTreeSet::new();
        for prefix in PREFIXES {
            for shift in 0..3 {
                let bytes = [&b"\0\0"[..shift], prefix.as_bytes()].concat();
                let encoded = BASE64_STANDARD.encode(&bytes);
                let core = &encoded[(shift * 8).div_ceil(6)..bytes.len() * 8 / 6];
                if core.len() >= 4 {
                    cores.insert(core.to_owned());
                }
            }
        }
        assert_eq!(cores.into_iter().collect::<Vec<_>>(), CORES);
    }

    #[test]
    fn text_is_decoded_and_an_image_is_not() {
        assert_eq!(decoded(b"cGFzc3dvcmQ9YQ==").as_deref(), Some("password=a"));
        assert_eq!(decoded(b"cGFzc3dvcmQ9YQ").as_deref(), Some("password=a"));
        assert_eq!(decoded(b"iVBORw0KGgoAAAANSUhEUgAA"), None);
    }
}
