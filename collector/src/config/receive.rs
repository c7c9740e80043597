//! `[receive]`: whether OTLP from other programs is accepted, where, and how much of it is stored.

use std::net::SocketAddr;
use std::path::Path;

use super::listen::{self, Place};
use super::{Dashboard, Misuse};

/// Default port: the dashboard's minus 1. The usual ports of OTLP, 4317 and 4318, stay free, because many people run a
/// backend on the same computer.
const PORT: u16 = 4328;

/// `[receive]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Receive {
    /// Whether OTLP is accepted.
    pub(crate) enabled: bool,
    /// Where: at most one address of this computer, and any number of Unix sockets.
    pub(crate) listen: Vec<Place>,
    /// Accounts of this computer that may connect in addition to the owner and root.
    pub(crate) allow_uids: Vec<u32>,
    /// Maximum number of stored spans of one session.
    pub(crate) max_spans_per_session: u64,
    /// Maximum number of spans stored in one UTC day.
    pub(crate) max_spans_per_day: u64,
    /// Maximum number of bytes stored in one UTC day: names and attributes as they are stored.
    pub(crate) max_bytes_per_day: u64,
}

impl Default for Receive {
    fn default() -> Self {
        Self {
            enabled: false,
            listen: vec![Place::Tcp(SocketAddr::from(([127, 0, 0, 1], PORT)))],
            allow_uids: Vec::new(),
            max_spans_per_session: 20_000,
            max_spans_per_day: 200_000,
            max_bytes_per_day: 268_435_456,
        }
    }
}

impl Receive {
    /// The TCP address to listen on, if one is configured.
    #[must_use]
    pub(crate) fn tcp(&self) -> Option<SocketAddr> {
        listen::tcp(&self.listen)
    }

    /// The Unix sockets.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = &Path> {
        listen::sockets(&self.listen)
    }

    /// Refuses settings that would not work or would let others send.
    ///
    /// # Errors
    /// [`Misuse`], with the reason and what to do.
    pub(crate) fn check(&self, dashboard: &Dashboard) -> Result<(), Misuse> {
        if !self.enabled {
            return Ok(());
        }
        let addresses = self.listen.iter().filter(|place| matches!(place, Place::Tcp(_))).count();
        if self.listen.is_empty() || addresses > 1 {
            return Err(Misuse(
                "[receive] listens on one ADDRESS:PORT, on Unix sockets (unix:PATH), or on both"
                    .to_owned(),
            ));
        }
        self.sockets().try_for_each(listen::check_socket)?;
        if let Some(address) = self.tcp()
            && !listen::is_loopback(address.ip())
        {
            let port = address.port();
            return Err(Misuse(format!(
                "[receive] accepts OTLP from this computer only, not on {address}: use 127.0.0.1:{port}. For other machines, run an \
                 OpenTelemetry Collector or a tunnel (ssh -L) in front of it"
            )));
        }
        let twice = self.listen.iter().find(|place| {
            let is_free = matches!(place, Place::Tcp(address) if address.port() == 0);
            !is_free && dashboard.listen.contains(place)
        });
        match twice {
            Some(place) => Err(Misuse(format!(
                "[receive] listens on {place}, where the dashboard listens: choose another one"
            ))),
            None => Ok(()),
        }
    }

    /// Refuses a destination that would send every span back to this collector.
    ///
    /// # Errors
    /// [`Misuse`], with the destination's name.
    pub(crate) fn check_destination(&self, name: &str, endpoint: &str) -> Result<(), Misuse> {
        let Some(address) = self.tcp().filter(|_| self.enabled) else { return Ok(()) };
        let Ok(url) = reqwest::Url::parse(endpoint) else { return Ok(()) };
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let is_near = host == "localhost"
            || host.parse().is_ok_and(|ip: std::net::IpAddr| listen::is_loopback(ip));
        if is_near && url.port_or_known_default() == Some(address.port()) {
            return Err(Misuse(format!(
                "destination {name} is {address}, where [receive] listens: spans would come back; change one of the two ports"
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(listen: &[&str], expected: Option<&str>) {
        let listen = listen.iter().map(|place| place.parse().unwrap()).collect();
        let receive = Receive { enabled: true, listen, ..Receive::default() };
        let found = receive.check(&Dashboard::default()).map_err(|error| error.0);
        match expected {
            None => assert_eq!(found, Ok(())),
            Some(part) => {
                assert!(found.as_ref().is_err_and(|text| text.contains(part)), "{found:?}");
            }
        }
    }

    #[test]
    fn only_places_of_this_computer_are_accepted() {
        check(&["127.0.0.1:4328", "unix:/run/a"], None);
        check(&["[::1]:0"], None);
        check(&[], Some("listens on one ADDRESS:PORT"));
        check(&["127.0.0.1:1", "127.0.0.1:2"], Some("listens on one ADDRESS:PORT"));
        check(&["0.0.0.0:4328"], Some("from this computer only"));
        check(&["127.0.0.1:4329"], Some("where the dashboard listens"));
        check(&["unix:a"], Some("whole path"));
        let off = Receive { listen: Vec::new(), ..Receive::default() };
        assert!(off.check(&Dashboard::default()).is_ok(), "what is off is not checked");
    }

    #[test]
    fn a_destination_that_would_send_everything_back_is_refused() {
        let receive = Receive { enabled: true, ..Receive::default() };
        for endpoint in
            ["http://127.0.0.1:4328", "http://localhost:4328/v1/traces", "http://[::1]:4328"]
        {
            let error = receive.check_destination("self", endpoint).unwrap_err().0;
            assert!(error.contains("destination self"), "{error}");
        }
        for endpoint in ["http://127.0.0.1:4318", "http://collector.example:4328"] {
            assert!(receive.check_destination("other", endpoint).is_ok(), "{endpoint}");
        }
    }
}
