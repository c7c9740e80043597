//! A page's half of signing in, implemented a second time: `web/app/net/proof.js` is the original.

use axum::body::Body;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::client::{ADDRESS, Answer, World};

/// 32 bytes that are a key, a hash or a proof.
pub type Key = [u8; 32];

/// HMAC-SHA-256 of lines.
pub fn mac(key: &Key, lines: &[&str]) -> Key {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(lines.join("\n").as_bytes());
    mac.finalize().into_bytes().into()
}

fn sha256(bytes: &[u8]) -> Key {
    Sha256::digest(bytes).into()
}

/// As hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Something to sign in with.
#[derive(Clone, Debug)]
pub struct Credential {
    /// Its id.
    pub id: String,
    /// Its secret, which never travels.
    pub secret: Key,
}

impl Credential {
    /// The credential that a code stands for.
    pub fn of_code(code: &str) -> Self {
        let (id, secret) = code.split_once('.').unwrap();
        let mut bytes = [0; 32];
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&secret[2 * i..2 * i + 2], 16).unwrap();
        }
        Self { id: id.to_owned(), secret: bytes }
    }
}

/// A signed-in page.
#[derive(Debug)]
pub struct Page {
    /// Its session.
    pub session: String,
    tab: String,
    key: Key,
    seq: u64,
    /// Admits further pages of the same browser, until the collector stops.
    pub page: Credential,
    /// Admits this page after a restart of the collector.
    pub restart: Credential,
}

/// The second half, after the first one.
#[derive(Debug)]
pub struct SecondHalf {
    /// The body to send.
    pub body: Value,
    shared: Key,
    /// Whether the server has proved itself. A page continues only then.
    pub proved: bool,
}

/// Makes the first half of the handshake. Returns the answer if it is refused.
pub async fn second_half(world: &World, with: &Credential) -> Result<SecondHalf, Answer> {
    let page_nonce = "0123456789abcdef";
    let hello = json!({ "id": with.id, "page_nonce": page_nonce });
    let answer = post(world, "/api/v1/login/challenge", &hello).await;
    if answer.status.as_u16() != 200 {
        return Err(answer);
    }
    let challenge = answer.json()["challenge"].clone();
    if challenge.is_null() {
        // The second half says why.
        let body = json!({ "id": with.id, "page_nonce": page_nonce, "nonce": "", "proof": "" });
        return Err(post(world, "/api/v1/login", &body).await);
    }
    let nonce = challenge["nonce"].as_str().unwrap();
    let proof = mac(&mac(&with.secret, &["server"]), &["server", &with.id, page_nonce, nonce]);
    let proved = challenge["proof"] == hex(&proof);
    let client = mac(&with.secret, &["client"]);
    let mut proof = mac(&sha256(&client), &["client", &with.id, page_nonce, nonce]);
    proof.iter_mut().zip(client).for_each(|(byte, with)| *byte ^= with);
    let body = json!({
        "id": with.id, "page_nonce": page_nonce, "nonce": nonce, "proof": hex(&proof),
    });
    let shared = mac(&client, &["shared", &with.id, page_nonce, nonce]);
    Ok(SecondHalf { body, shared, proved })
}

/// Sends a POST without a signature.
pub async fn post(world: &World, target: &str, body: &Value) -> Answer {
    let headers = [
        ("host", ADDRESS),
        ("content-type", "application/json"),
        ("user-agent", "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"),
    ];
    world.send("POST", target, &headers, body.to_string()).await
}

impl Page {
    /// Signs in. Returns the answer if the sign-in is refused.
    pub async fn sign_in(world: &World, with: &Credential) -> Result<Self, Answer> {
        let SecondHalf { body, shared, proved } = second_half(world, with).await?;
        assert!(proved, "the server proves itself first");
        let answer = post(world, "/api/v1/login", &body).await;
        if answer.status.as_u16() != 200 {
            return Err(answer);
        }
        let granted = answer.json()["granted"].clone();
        let text = |name: &str| granted[name].as_str().unwrap().to_owned();
        let credential = |name: &str| Credential { id: text(name), secret: mac(&shared, &[name]) };
        Ok(Self {
            session: text("session"),
            tab: text("tab"),
            key: mac(&shared, &["tab"]),
            seq: 0,
            page: credential("page"),
            restart: credential("restart"),
        })
    }

    /// The authorization of the next request.
    pub fn sign(&mut self, method: &str, target: &str, body: &str) -> String {
        self.seq += 1;
        let seq = self.seq.to_string();
        let body = hex(&sha256(body.as_bytes()));
        let proof = mac(&self.key, &["request", method, target, &seq, &body]);
        format!("{}:{seq}:{}", self.tab, hex(&proof))
    }

    /// Sends a signed request. An answer with status 200 must have the collector's proof.
    pub async fn get(&mut self, world: &World, target: &str) -> Answer {
        let signed = format!("Hookspan {}", self.sign("GET", target, ""));
        let headers = [("host", ADDRESS), ("authorization", &*signed)];
        let answer = world.send("GET", target, &headers, Body::empty()).await;
        if answer.status.as_u16() == 200 {
            let proof = mac(&self.key, &["answer", &self.seq.to_string(), "200"]);
            assert_eq!(answer.header("hookspan-proof"), hex(&proof));
        }
        answer
    }

    /// Sends a signed POST.
    pub async fn post(&mut self, world: &World, target: &str, body: &Value) -> Answer {
        let body = body.to_string();
        let signed = format!("Hookspan {}", self.sign("POST", target, &body));
        let headers =
            [("host", ADDRESS), ("authorization", &*signed), ("content-type", "application/json")];
        world.send("POST", target, &headers, body).await
    }
}
