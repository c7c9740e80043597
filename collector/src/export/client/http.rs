//! OTLP as protobuf over HTTP.

use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::{
    ANSWER_MAX_BYTES, CONNECT_TIMEOUT, ClientError, USER_AGENT, failed, gunzip, gzip, tls,
};
use crate::clock;
use crate::config::destination::{Connection, is_loopback};
use crate::export::outcome::{self, HttpAnswer, Outcome};

#[derive(Debug)]
pub(in crate::export) struct HttpClient {
    client: reqwest::Client,
    url: String,
    headers: HeaderMap,
    gzip: bool,
}

impl HttpClient {
    pub(super) fn new(connection: &Connection) -> Result<Self, ClientError> {
        // Redirects are not followed, because they would send the headers, including the key, to another host. For
        // ports of this machine no proxy is used.
        let mut builder = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(connection.timeout)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(USER_AGENT);
        if is_loopback(&connection.endpoint) {
            builder = builder.no_proxy();
        }
        if connection.certificate.is_some() {
            let config = tls::client_config(connection, &[b"h2", b"http/1.1"])?;
            builder = builder.tls_backend_preconfigured(config);
        } else if let Some((certificate, key)) = &connection.client {
            let mut pem = certificate.clone();
            pem.push(b'\n');
            pem.extend_from_slice(key.0.as_bytes());
            builder = builder.identity(reqwest::Identity::from_pem(&pem).map_err(failed)?);
        }
        let mut headers = HeaderMap::new();
        for (name, value) in &connection.headers {
            if let (Ok(name), Ok(mut value)) =
                (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(&value.0))
            {
                value.set_sensitive(true);
                headers.append(name, value);
            }
        }
        let client = builder.build().map_err(failed)?;
        Ok(Self { client, url: connection.endpoint.clone(), headers, gzip: connection.gzip })
    }

    pub(super) async fn send(&self, body: Bytes) -> Outcome {
        let mut request = self
            .client
            .post(&self.url)
            .headers(self.headers.clone())
            .header("content-type", "application/x-protobuf");
        request = if self.gzip {
            match gzip(&body) {
                Ok(packed) => request.header("content-encoding", "gzip").body(packed),
                Err(error) => return outcome::from_transport(&error),
            }
        } else {
            request.body(body)
        };
        match request.send().await {
            Ok(response) => read(response).await,
            Err(error) => outcome::from_transport(&error.without_url()),
        }
    }
}

async fn read(mut response: reqwest::Response) -> Outcome {
    let header = |name: &str| {
        let value = response.headers().get(name).and_then(|value| value.to_str().ok());
        value.map(str::to_owned)
    };
    let mut answer = HttpAnswer {
        status: response.status().as_u16(),
        retry_after: header("retry-after"),
        content_type: header("content-type").unwrap_or_default(),
        location: header("location"),
        body: Vec::new(),
        is_cut: false,
    };
    let is_packed =
        header("content-encoding").is_some_and(|word| word.eq_ignore_ascii_case("gzip"));
    while !answer.is_cut {
        match response.chunk().await {
            Ok(Some(chunk)) => {
                let room = ANSWER_MAX_BYTES - answer.body.len();
                answer.is_cut = chunk.len() > room;
                answer.body.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
            }
            Ok(None) => break,
            // The server may have stored the batch. Sending the same bytes again does no harm.
            Err(error) => return outcome::from_transport(&error.without_url()),
        }
    }
    if is_packed && let Ok(unpacked) = gunzip(&answer.body) {
        answer.body = unpacked;
    }
    outcome::from_http(&answer, clock::now())
}
