//! An OpenTelemetry SDK sends to the receiver as other programs do.

use std::sync::Mutex;

use opentelemetry::KeyValue;
use opentelemetry::trace::{Tracer as _, TracerProvider as _};
use opentelemetry_otlp::{
    Compression, WithExportConfig as _, WithHttpConfig as _, WithTonicConfig as _,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;

use super::*;
use crate::access::{Access, Clock, Door, Vault, VaultError};
use crate::config::Receive;
use crate::dirs::StateDir;
use crate::receive::{Keep, NotKept, Receiver};
use crate::redaction::Redaction;
use crate::store::received::{Incoming, Taken};

struct Keys(Arc<Access>);

impl Vault for Keys {
    fn read(&self) -> Result<Arc<Access>, VaultError> {
        Ok(Arc::clone(&self.0))
    }
    fn change(&self, _: &mut dyn FnMut(&mut Access)) -> Result<(), VaultError> {
        Ok(())
    }
    fn random(&self) -> Result<[u8; 32], VaultError> {
        Ok([7; 32])
    }
}

/// Keeps the names of spans.
#[derive(Clone, Default)]
struct Names(Arc<Mutex<Vec<String>>>);

impl Keep for Names {
    fn keep(&self, incoming: Incoming) -> Result<Taken, NotKept> {
        let names =
            incoming.spans.into_iter().map(|span| format!("{} {}", span.service, span.name));
        self.0.lock().unwrap().extend(names);
        Ok(Taken::default())
    }
}

fn provider(exporter: opentelemetry_otlp::SpanExporter) -> SdkTracerProvider {
    let resource = Resource::builder_empty().with_attribute(KeyValue::new("service.name", "sdk"));
    SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(resource.build())
        .build()
}

#[test]
fn an_sdk_sends_over_http_and_over_grpc_to_one_port() {
    drop(rustls::crypto::ring::default_provider().install_default());
    let temp = tempfile::tempdir().unwrap();
    let dir = StateDir::at(temp.path().join("s"));
    dir.prepare().unwrap();
    let mut access = Access::default();
    let token = access.create_sending_token("sdk", [1; 32], 0).unwrap();
    let clock = Clock::new(|| 0);
    let door = Door::new(Arc::new(Keys(Arc::new(access))), clock, "owner");
    let names = Names::default();
    let receiver =
        Receiver::new(Arc::new(door.unwrap()), Box::new(names.clone()), Redaction::default());
    let receive = Receive {
        enabled: true,
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        ..Receive::default()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let entered = runtime.enter();
    let listeners = Listeners::receive(&receive).unwrap().unwrap();
    let at = listeners.address().unwrap().unwrap();
    let (close, closing) = watch::channel(false);
    let audit = Arc::new(AuditFile::new(&dir));
    let router = receiver.router();
    let server =
        Server::new(Versions::OneAndTwo, router, Slots::for_senders(), &[], closing, audit);
    let serving = runtime.spawn(server.run(listeners));

    let authorization = format!("Bearer {token}");
    let http = opentelemetry_otlp::SpanExporter::builder()
        .with_http()
        .with_endpoint(format!("http://{at}/v1/traces"))
        .with_headers([("authorization".to_owned(), authorization.clone())].into())
        .with_compression(Compression::Gzip);
    let mut metadata = tonic::metadata::MetadataMap::new();
    metadata.insert("authorization", authorization.parse().unwrap());
    let grpc = opentelemetry_otlp::SpanExporter::builder()
        .with_tonic()
        .with_endpoint(format!("http://{at}"))
        .with_metadata(metadata)
        .with_compression(Compression::Gzip);
    // The HTTP client of the SDK blocks, so it must not be made inside the runtime.
    let http = std::thread::spawn(move || http.build().unwrap()).join().unwrap();
    for (name, exporter) in [("over http", http), ("over grpc", grpc.build().unwrap())] {
        let provider = provider(exporter);
        provider.tracer("cargo").in_span(name, |_| {});
        provider.force_flush().unwrap();
        std::thread::spawn(move || provider.shutdown()).join().unwrap().unwrap();
    }
    assert_eq!(*names.0.lock().unwrap(), ["sdk over http", "sdk over grpc"]);
    close.send_replace(true);
    runtime.block_on(serving).unwrap().unwrap();
    drop(entered);
}
