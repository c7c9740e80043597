//! OTLP backends of others: Datadog's test agent and Jaeger. They are found by a variable, in the gate's cache, or on
//! `PATH`.

use std::env;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::spans::{self, Span};
use crate::wait::eventually;

/// Maximum time to start: Python and Go programs on a busy machine.
const START: Duration = Duration::from_secs(90);

/// A running backend; killed on drop.
#[derive(Debug)]
pub struct Receiver {
    child: Child,
    folder: TempDir,
    kind: Kind,
    /// Address of OTLP over HTTP.
    pub http: String,
    /// Address of OTLP over gRPC.
    pub grpc: String,
    query: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    TestAgent,
    Jaeger,
}

impl Receiver {
    /// Datadog's `ddapm-test-agent`. It keeps every request, duplicates included. `Err` says what is missing.
    pub fn test_agent() -> Result<Self, String> {
        let [http] = free_ports();
        Self::test_agent_at(http)
    }

    /// The same with OTLP over HTTP at this port, for a backend that a destination is already waiting for.
    pub fn test_agent_at(http: u16) -> Result<Self, String> {
        let program = find("HOOKSPAN_DDAPM", "ddapm/bin/ddapm-test-agent", "ddapm-test-agent")?;
        let [agent, grpc] = free_ports();
        let host = host();
        let mut command = Command::new(program);
        command.args(["--host", &host, "--port", &agent.to_string()]).args([
            "--otlp-http-port",
            &http.to_string(),
            "--otlp-grpc-port",
            &grpc.to_string(),
        ]);
        Ok(Self::start(Kind::TestAgent, command, http, grpc, http, "/test/session/traces"))
    }

    /// Jaeger v2 with storage in memory, built on grpc-go. `Err` says what is missing.
    pub fn jaeger() -> Result<Self, String> {
        let program = find("HOOKSPAN_JAEGER", "jaeger", "jaeger")?;
        let [query, http, grpc] = free_ports();
        let mut command = Command::new(program);
        command.arg("--config").arg("jaeger.yaml");
        Ok(Self::start(Kind::Jaeger, command, http, grpc, query, "/api/services"))
    }

    /// The address of a receiver on this machine that is not a loopback address: the machine's own name if it leads
    /// here, else `::ffff:127.0.0.1`. An address that `host` put off loopback is returned unchanged.
    #[must_use]
    pub fn off_loopback(address: &str) -> String {
        if !address.contains("//127.0.0.1:") {
            return address.to_owned();
        }
        let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let (_, port) = address.rsplit_once(':').unwrap();
        let port_number: u16 = port.parse().unwrap();
        let found = (name.as_str(), port_number).to_socket_addrs();
        let found: Vec<SocketAddr> = found.map(Iterator::collect).unwrap_or_default();
        let leads_here = found.iter().all(|address| address.ip() == Ipv4Addr::LOCALHOST);
        if !found.is_empty() && leads_here && name != "localhost" {
            format!("http://{name}:{port}")
        } else {
            format!("http://[::ffff:127.0.0.1]:{port}")
        }
    }

    #[track_caller]
    fn start(
        kind: Kind,
        mut command: Command,
        http: u16,
        grpc: u16,
        query: u16,
        ready: &str,
    ) -> Self {
        let folder = tempfile::Builder::new().prefix("hookspan-receiver-").tempdir().unwrap();
        let host = host();
        if kind == Kind::Jaeger {
            let config = jaeger_yaml(&host, query, http, grpc);
            fs::write(folder.path().join("jaeger.yaml"), config).unwrap();
        }
        let log = File::create(folder.path().join("log")).unwrap();
        command.current_dir(folder.path()).stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        let mut receiver = Self {
            child: command.spawn().unwrap(),
            folder,
            kind,
            http: format!("http://{host}:{http}"),
            grpc: format!("http://{host}:{grpc}"),
            query: format!("http://{host}:{query}"),
        };
        eventually("the receiver answers", START, || {
            if let Some(status) = receiver.child.try_wait().unwrap() {
                panic!("it ended: {status}\n{}", receiver.log());
            }
            receiver.get(ready).map_err(|error| format!("{error}\n{}", receiver.log()))
        });
        receiver
    }

    /// Everything it received, one entry per delivery, sorted. `traces` are the ids to query if a backend cannot list
    /// its traces.
    #[must_use]
    pub fn spans(&self, traces: &[String]) -> Vec<Span> {
        let mut found: Vec<_> = match self.kind {
            Kind::TestAgent => self.requests().iter().flat_map(spans::from_otlp_value).collect(),
            Kind::Jaeger => traces.iter().flat_map(|trace| self.trace(trace)).collect(),
        };
        found.sort();
        found
    }

    /// The spans of the test agent's requests in the order in which they came.
    #[must_use]
    pub fn deliveries(&self) -> Vec<Vec<Span>> {
        self.requests().iter().map(spans::from_otlp_value).collect()
    }

    /// The metrics of the test agent's requests in the order in which they came.
    #[must_use]
    pub fn metrics(&self) -> Vec<Value> {
        let requests = self.get("/test/session/metrics").unwrap();
        let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
        let requests = requests.as_array().cloned().unwrap_or_default().into_iter();
        let resources = requests.flat_map(|request| list(&request, "resource_metrics"));
        let scopes = resources.flat_map(|resource| list(&resource, "scope_metrics"));
        scopes.flat_map(|scope| list(&scope, "metrics")).collect()
    }

    /// The address of its pages and its query API.
    #[must_use]
    pub fn query(&self) -> &str {
        &self.query
    }

    /// The names of services it knows.
    #[must_use]
    pub fn services(&self) -> Vec<String> {
        let services = self.get("/api/services").unwrap_or_default();
        let services = services["data"].as_array().cloned().unwrap_or_default();
        services.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// What it wrote.
    #[must_use]
    pub fn log(&self) -> String {
        let log = fs::read(self.folder.path().join("log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<_> = log.lines().collect();
        format!("receiver's log:\n{}", lines[lines.len().saturating_sub(40)..].join("\n"))
    }

    fn requests(&self) -> Vec<Value> {
        let requests = self.get("/test/session/traces").unwrap();
        requests.as_array().cloned().unwrap_or_default()
    }

    /// A trace from Jaeger's query API v3, which answers with OTLP/JSON. Empty while the trace is unknown.
    fn trace(&self, trace: &str) -> Vec<Span> {
        match self.get(&format!("/api/v3/traces/{trace}")) {
            Ok(answer) => spans::from_otlp_value(&answer["result"]),
            Err(_) => Vec::new(),
        }
    }

    fn get(&self, path: &str) -> Result<Value, String> {
        let url = format!("{}{path}", self.query);
        let text = ureq::get(&url)
            .config()
            .timeout_global(Some(Duration::from_secs(120)))
            .build()
            .call()
            .and_then(|mut answer| answer.body_mut().with_config().limit(1 << 30).read_to_string())
            .map_err(|error| format!("GET {url}: {error}"))?;
        serde_json::from_str(&text).map_err(|error| format!("GET {url}: {error}: {text}"))
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.log());
        }
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Looks at the variable, then in the gate's cache, then on `PATH`.
fn find(variable: &str, cached: &str, name: &str) -> Result<PathBuf, String> {
    if let Some(path) = env::var_os(variable) {
        return Ok(path.into());
    }
    let cache = env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cache")));
    let on_path = env::var_os("PATH").unwrap_or_default();
    let candidates = cache
        .map(|cache| cache.join("hookspan-ci").join(cached))
        .into_iter()
        .chain(env::split_paths(&on_path).map(|folder| folder.join(name)));
    candidates
        .into_iter()
        .find(|path| path.is_file())
        .ok_or_else(|| format!("no {name} here; .ci/run installs one, or set {variable}"))
}

/// The name under which a receiver listens and is reached: `HOOKSPAN_E2E_HOST`, or loopback. `.ci/elsewhere` sets the
/// machine's own name, which is not loopback there, so that the defaults for remote destinations (gzip) are tested,
/// too.
fn host() -> String {
    env::var("HOOKSPAN_E2E_HOST").unwrap_or_else(|_| "127.0.0.1".to_owned())
}

/// Ports that were free a moment ago. These programs need a number and cannot report which port they got.
#[must_use]
pub fn free_ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

fn jaeger_yaml(host: &str, query: u16, http: u16, grpc: u16) -> String {
    format!(
        "service:
  extensions: [jaeger_storage, jaeger_query]
  pipelines:
    traces:
      receivers: [otlp]
      exporters: [jaeger_storage_exporter]
  telemetry:
    metrics:
      level: none
extensions:
  jaeger_storage:
    backends:
      memory:
        memory:
          max_traces: 10000
  jaeger_query:
    storage:
      traces: memory
    http:
      endpoint: {host}:{query}
    grpc:
      endpoint: {host}:0
receivers:
  otlp:
    protocols:
      grpc:
        endpoint: {host}:{grpc}
      http:
        endpoint: {host}:{http}
exporters:
  jaeger_storage_exporter:
    trace_storage: memory
"
    )
}
