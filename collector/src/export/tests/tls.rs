//! A receiver with a certificate as `openssl req -x509` makes it: its own issuer, allowed to sign others, without the host's
//! name. Made with
//!
//! ```sh
//! openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 36500 -subj /CN=collector.example \
//!     -keyout key.pem -out cert.pem && cat cert.pem key.pem > self-signed.pem
//! ```

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::serve::Listener;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::sink::{Sink, eventually};
use super::{World, at};
use crate::config::destination::Destination;
use crate::export::probe::{self, Step};

const PEM: &str = include_str!("self-signed.pem");

struct Tls {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
}

impl Tls {
    async fn listen() -> Self {
        let chain = vec![CertificateDer::from_pem_slice(PEM.as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(PEM.as_bytes()).unwrap();
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self { tcp, acceptor: TlsAcceptor::from(Arc::new(config)) }
    }
}

impl Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (socket, from) = self.tcp.accept().await.unwrap();
            // A client that does not trust the certificate closes the connection.
            if let Ok(stream) = self.acceptor.accept(socket).await {
                return (stream, from);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }
}

async fn probed(destination: Destination) -> Vec<Step> {
    tokio::task::spawn_blocking(move || probe::probe(&destination)).await.unwrap()
}

fn named(port: u16, protocol: &str) -> Destination {
    let mut destination = at(&format!("https://localhost:{port}"), protocol, "");
    destination.connection.certificate = Some(PEM.as_bytes().to_vec());
    destination
}

#[tokio::test(flavor = "multi_thread")]
async fn a_self_signed_certificate_works_when_it_is_named_and_only_then() {
    for protocol in ["http/protobuf", "grpc"] {
        let sink = Sink::behind(Tls::listen().await).await;
        let world = World::with_spans(5);
        let exporters = world.export(vec![named(sink.port, protocol)]);
        world.drained().await;
        assert_eq!(sink.taken(), world.all(), "{protocol}");
        exporters.shutdown().await;

        let world = World::with_spans(5);
        let unnamed = at(&format!("https://localhost:{}", sink.port), protocol, "");
        let exporters = world.export(vec![unnamed.clone()]);
        let row = || world.row("test");
        eventually(|| row().state == "paused", || format!("{protocol}: {:?}", row())).await;
        assert!(row().last_error.unwrap().contains("certificate is not valid"), "{:?}", row());
        assert!(row().advice.unwrap().contains("as `certificate`"));
        exporters.shutdown().await;

        let steps = probed(named(sink.port, protocol)).await;
        let found: Vec<_> = steps.iter().map(|step| (step.step, step.ok)).collect();
        let expected = ["name", "connection", "tls", "export"].map(|step| (step, true));
        assert_eq!(found, expected, "{protocol}: {steps:#?}");
        let steps = probed(unnamed).await;
        let last = steps.last().unwrap();
        assert_eq!((last.step, last.ok), ("tls", false), "{steps:#?}");
    }
}
