//! Span and trace ids: hashes of a span's identity, so that any replay gives the same ids.
//!
//! `enc(parts)` is, per part, its UTF-8 length as eight bytes big-endian, then its bytes.
//! Trace: `SHA-256(enc("hookspan.trace.v1", scope, conversation, key))[0..16]`;
//! span: `SHA-256(enc("hookspan.span.v1", conversation, generation, kind, key))[0..8]`. All zero becomes last byte 1.

use core::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

/// An OpenTelemetry trace id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(pub [u8; 16]);

/// An OpenTelemetry span id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId(pub [u8; 8]);

impl TraceId {
    /// The trace of `key` (a generation id, a session segment, a Unix minute) under `scope`
    /// (`generation`, `session`, `tab`) in the *root* conversation.
    #[must_use]
    pub fn derive(scope: &str, conversation: &str, key: &str) -> Self {
        Self(nonzero(first(&["hookspan.trace.v1", scope, conversation, key])))
    }
}

impl SpanId {
    /// Derives the id of the span with `key`. `conversation` is the one that the span's hooks name. `generation` is the
    /// normalised generation; it is empty outside a turn.
    #[must_use]
    pub fn derive(conversation: &str, generation: &str, kind: &str, key: &str) -> Self {
        Self(nonzero(first(&["hookspan.span.v1", conversation, generation, kind, key])))
    }
}

/// Derives ids like [`SpanId::derive`] for many spans of one turn. Their common beginning is hashed once.
#[derive(Debug, Default)]
pub(crate) struct SpanIds {
    /// The conversation and generation of the last span, and the hash of everything up to them.
    last: Option<(Arc<str>, Arc<str>, Sha256)>,
}

impl SpanIds {
    pub(crate) fn derive(
        &mut self,
        conversation: &Arc<str>,
        generation: &Arc<str>,
        kind: &str,
        key: &str,
    ) -> SpanId {
        let same = |one: &Arc<str>, other: &Arc<str>| Arc::ptr_eq(one, other) || one == other;
        let known =
            self.last.as_ref().filter(|(c, g, _)| same(c, conversation) && same(g, generation));
        let mut hash = match known {
            Some((_, _, hash)) => hash.clone(),
            None => {
                let mut hash = Sha256::new();
                add(&mut hash, &["hookspan.span.v1", conversation, generation]);
                self.last = Some((conversation.clone(), generation.clone(), hash.clone()));
                hash
            }
        };
        add(&mut hash, &[kind, key]);
        SpanId(nonzero(beginning(hash)))
    }
}

fn first<const N: usize>(parts: &[&str]) -> [u8; N] {
    let mut hash = Sha256::new();
    add(&mut hash, parts);
    beginning(hash)
}

fn add(hash: &mut Sha256, parts: &[&str]) {
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
}

fn beginning<const N: usize>(hash: Sha256) -> [u8; N] {
    let digest = hash.finalize();
    core::array::from_fn(|i| digest[i])
}

fn nonzero<const N: usize>(mut id: [u8; N]) -> [u8; N] {
    if id.iter().all(|&byte| byte == 0)
        && let Some(last) = id.last_mut()
    {
        *last = 1;
    }
    id
}

macro_rules! hex {
    ($type:ident, $len:literal) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
        impl $type {
            /// Reads lower- or upper-case hex of exactly the id's length.
            #[must_use]
            pub fn from_hex(text: &str) -> Option<Self> {
                let bytes = text.as_bytes();
                if bytes.len() != 2 * $len || !bytes.iter().all(u8::is_ascii_hexdigit) {
                    return None;
                }
                let mut id = [0; $len];
                for (i, byte) in id.iter_mut().enumerate() {
                    *byte = u8::from_str_radix(text.get(2 * i..2 * i + 2)?, 16).ok()?;
                }
                Some(Self(id))
            }
        }
    };
}
hex!(TraceId, 16);
hex!(SpanId, 8);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_frozen() {
        let trace = |scope, key| TraceId::derive(scope, "c1", key).to_string();
        let span = |generation, kind, key| SpanId::derive("c1", generation, kind, key).to_string();
        assert_eq!(trace("generation", "g1"), "373a8e23b076bfa7f095bc597ef7cce7");
        assert_eq!(trace("session", "0"), "7fce8842be36dbb5cb946c2c42355961");
        assert_eq!(span("g1", "generation", ""), "fe2ee738878dc6cb");
        assert_eq!(span("g1", "tool", "call_a\nfc_b"), "9ad88d9741129822");
        assert_eq!(span("", "session", "0"), "668f0ce46f0afc83");
        assert_eq!(span("g1", "thought", "~0a034dc9c0d0d4fa#0"), "9c1cef41c64bbbc5");
    }

    #[test]
    fn ids_of_one_turn_are_those_of_single_spans() {
        let mut ids = SpanIds::default();
        let long = "x".repeat(200);
        for conversation in ["c1", "c2", "", &long] {
            for generation in ["g1", "", &long] {
                for (kind, key) in [("tool", "call_a\nfc_b"), ("thought", ""), ("tool", &long)] {
                    assert_eq!(
                        ids.derive(&conversation.into(), &generation.into(), kind, key),
                        SpanId::derive(conversation, generation, kind, key)
                    );
                }
            }
        }
    }

    #[test]
    fn hex_reads_back_and_refuses_the_rest() {
        let id = SpanId::derive("c1", "g1", "tool", "x");
        assert_eq!(SpanId::from_hex(&id.to_string()), Some(id));
        assert_eq!(SpanId::from_hex("+1e2ee738878dc6c"), None);
        assert_eq!(SpanId::from_hex("fe2e"), None);
    }
}
