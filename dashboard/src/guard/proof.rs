//! The cryptography of signing in: HMAC-SHA-256 over lines of text. `web/app/net/proof.js` is the same for pages.
//!
//! The proofs are those of SCRAM (RFC 5802). Each side proves that it knows a secret. Nothing that is sent can be used
//! a second time, and what the collector stores is not enough to sign in.

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// 32 bytes: a hash, a key or a proof. Written as 64 hexadecimal digits. `Debug` does not show them.
#[derive(Clone, Copy)]
pub(crate) struct Bytes32(pub(crate) [u8; 32]);

impl core::fmt::Debug for Bytes32 {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Bytes32(..)")
    }
}

impl Bytes32 {
    /// Reads 64 hexadecimal digits.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |digit: u8| char::from(digit).to_digit(16);
            *byte = u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok()?;
        }
        Some(Self(bytes))
    }

    pub(crate) fn hex(&self) -> String {
        hex(&self.0)
    }

    /// Whether both are equal. The time for this does not depend on where they differ.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    fn xor(&self, other: &Self) -> Self {
        let mut bytes = self.0;
        bytes.iter_mut().zip(other.0).for_each(|(byte, with)| *byte ^= with);
        Self(bytes)
    }
}

impl Serialize for Bytes32 {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(&self.hex())
    }
}

impl<'de> Deserialize<'de> for Bytes32 {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = String::deserialize(input)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not 64 hexadecimal digits"))
    }
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

pub(crate) fn sha256(bytes: &[u8]) -> Bytes32 {
    Bytes32(Sha256::digest(bytes).into())
}

/// HMAC-SHA-256 of the lines. No line may contain a line break.
pub(crate) fn mac(key: &Bytes32, lines: &[&str]) -> Bytes32 {
    // A key of up to 64 bytes is padded with zeros. Our keys have 32 bytes.
    let mut block = [0; 64];
    block[..32].copy_from_slice(&key.0);
    let mut mac = Hmac::<Sha256>::new(&block.into());
    for (number, line) in lines.iter().enumerate() {
        if number > 0 {
            mac.update(b"\n");
        }
        mac.update(line.as_bytes());
    }
    Bytes32(mac.finalize().into_bytes().into())
}

/// The stored form of a secret. With it, the collector can check a page's proof and make its own. It is not enough to
/// sign in.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Verifier {
    stored: Bytes32,
    server: Bytes32,
}

/// The subject of one handshake: the credential, and a nonce of each side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handshake<'a> {
    pub(crate) id: &'a str,
    pub(crate) page_nonce: &'a str,
    pub(crate) nonce: &'a str,
}

impl Handshake<'_> {
    fn lines<'a>(&'a self, label: &'a str) -> [&'a str; 4] {
        [label, self.id, self.page_nonce, self.nonce]
    }
}

impl Verifier {
    pub(crate) fn of(secret: &Bytes32) -> Self {
        let client = mac(secret, &["client"]);
        Self { stored: sha256(&client.0), server: mac(secret, &["server"]) }
    }

    /// Shows the page that this collector knows the secret.
    pub(crate) fn server_proof(&self, handshake: &Handshake<'_>) -> Bytes32 {
        mac(&self.server, &handshake.lines("server"))
    }

    /// The value that both sides know after the page's proof. `None` if the proof is wrong.
    pub(crate) fn shared(&self, handshake: &Handshake<'_>, proof: &Bytes32) -> Option<Bytes32> {
        let client = proof.xor(&mac(&self.stored, &handshake.lines("client")));
        sha256(&client.0).is(&self.stored).then(|| mac(&client, &handshake.lines("shared")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hmac_is_that_of_rfc_4231() {
        let mut key = [0; 32];
        key[..4].copy_from_slice(b"Jefe");
        let found = mac(&Bytes32(key), &["what do ya want for nothing?"]);
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(found.hex(), expected);
    }

    #[test]
    fn a_proof_needs_the_secret_and_is_worth_one_handshake() {
        let secret = sha256(b"secret");
        let verifier = Verifier::of(&secret);
        let one = Handshake { id: "a", page_nonce: "p", nonce: "n" };
        let client = mac(&secret, &["client"]);
        let proof = client.xor(&mac(&sha256(&client.0), &one.lines("client")));
        let shared = verifier.shared(&one, &proof).unwrap();
        assert!(shared.is(&mac(&client, &one.lines("shared"))));
        let other = Handshake { nonce: "m", ..one };
        assert!(verifier.shared(&other, &proof).is_none());
        // The stored form is not enough to make a proof.
        let forged = verifier.stored.xor(&mac(&verifier.stored, &one.lines("client")));
        assert!(verifier.shared(&one, &forged).is_none());
    }

    #[test]
    fn hexadecimal_digits_are_read_whole() {
        let bytes = sha256(b"x");
        assert!(Bytes32::parse(&bytes.hex()).is_some_and(|read| read.is(&bytes)));
        for wrong in ["", "ab", &"g".repeat(64), &"a".repeat(65), &"é".repeat(32)] {
            assert!(Bytes32::parse(wrong).is_none(), "{wrong}");
        }
    }
}
