//! The port and the sockets. They stay bound while the database is opened again, so that no other program can take the
//! port in between.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use crate::config::{Dashboard, Receive};

/// What the dashboard, or the receiver of OTLP, listens on.
#[derive(Debug)]
pub(in super::super) struct Listeners {
    tcp: Option<TcpListener>,
    #[cfg(unix)]
    unix: Vec<std::os::unix::net::UnixListener>,
    paths: Vec<PathBuf>,
}

#[cfg(unix)]
type Sockets = Vec<tokio::net::UnixListener>;
#[cfg(not(unix))]
type Sockets = ();

impl Listeners {
    /// Binds every address and socket of the dashboard.
    pub(in super::super) fn bind(dashboard: &Dashboard) -> anyhow::Result<Self> {
        Self::at(dashboard.tcp(), dashboard.sockets(), "--listen")
    }

    /// Binds every address and socket on which OTLP is received. `None` if none is.
    pub(in super::super) fn receive(receive: &Receive) -> anyhow::Result<Option<Self>> {
        let bind = || Self::at(receive.tcp(), receive.sockets(), "`listen` in [receive]");
        receive.enabled.then(bind).transpose()
    }

    /// `with` is how a person chooses another address.
    fn at<'a>(
        tcp: Option<SocketAddr>,
        sockets: impl Iterator<Item = &'a Path>,
        with: &str,
    ) -> anyhow::Result<Self> {
        let tcp = tcp.map(|address| listen(address, with)).transpose()?;
        let paths: Vec<PathBuf> = sockets.map(Path::to_path_buf).collect();
        #[cfg(unix)]
        let unix = paths.iter().map(|path| listen_unix(path)).collect::<anyhow::Result<_>>()?;
        Ok(Self {
            tcp,
            #[cfg(unix)]
            unix,
            paths,
        })
    }

    /// The same listeners, for the next run with a database.
    pub(in super::super) fn again(&self) -> io::Result<Self> {
        Ok(Self {
            tcp: self.tcp.as_ref().map(TcpListener::try_clone).transpose()?,
            #[cfg(unix)]
            unix: self.unix.iter().map(|one| one.try_clone()).collect::<io::Result<_>>()?,
            paths: self.paths.clone(),
        })
    }

    /// The address, including the port that the system chose.
    pub(in super::super) fn address(&self) -> io::Result<Option<SocketAddr>> {
        self.tcp.as_ref().map(TcpListener::local_addr).transpose()
    }

    /// The first socket.
    pub(in super::super) fn socket(&self) -> Option<&Path> {
        self.paths.first().map(PathBuf::as_path)
    }

    /// Removes the sockets' files. They would otherwise remain after nothing listens any more.
    pub(in super::super) fn remove(&self) {
        for path in &self.paths {
            drop(std::fs::remove_file(path));
        }
    }

    pub(super) fn into_tokio(self) -> io::Result<(Option<tokio::net::TcpListener>, Sockets)> {
        let tcp = self.tcp.map(tokio::net::TcpListener::from_std).transpose()?;
        #[cfg(unix)]
        let unix = self.unix.into_iter().map(tokio::net::UnixListener::from_std);
        #[cfg(unix)]
        let unix = unix.collect::<io::Result<_>>()?;
        #[cfg(not(unix))]
        let unix = ();
        Ok((tcp, unix))
    }
}

fn listen(address: SocketAddr, with: &str) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => anyhow::anyhow!(
            "cannot listen on {address}: another program uses that port; stop it, or choose another port with \
             {with} {}:0",
            address.ip()
        ),
        _ => anyhow::anyhow!("cannot listen on {address}: {error}; choose another address with {with}"),
    })?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// A socket that only the owner can reach. It replaces a socket that a killed collector left behind. Any other file
/// with this name stays.
#[cfg(unix)]
fn listen_unix(path: &Path) -> anyhow::Result<std::os::unix::net::UnixListener> {
    use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
    use std::os::unix::net::{UnixListener, UnixStream};

    let shown = path.display();
    if let Ok(found) = std::fs::symlink_metadata(path) {
        if !found.file_type().is_socket() {
            anyhow::bail!(
                "cannot listen on unix:{shown}: a file with that name exists and is not a socket; move it away"
            );
        }
        if UnixStream::connect(path).is_ok() {
            anyhow::bail!("cannot listen on unix:{shown}: another program listens there");
        }
        std::fs::remove_file(path)
            .map_err(|error| anyhow::anyhow!("cannot replace the old socket {shown}: {error}"))?;
    }
    let told = |error: io::Error| anyhow::anyhow!("cannot listen on unix:{shown}: {error}");
    // Other accounts can never reach the socket, because it is created in a folder that only the owner may enter.
    let folder = path.parent().unwrap_or(Path::new("/"));
    let private =
        tempfile::Builder::new().prefix(".hs-").rand_bytes(4).tempdir_in(folder).map_err(told)?;
    let staged = private.path().join("s");
    let listener = UnixListener::bind(&staged).map_err(told)?;
    std::fs::set_permissions(&staged, std::fs::Permissions::from_mode(0o600)).map_err(told)?;
    std::fs::rename(&staged, path).map_err(told)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_socket_is_its_owners_and_replaces_a_dead_one_only() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("door");
        let listener = listen_unix(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        UnixStream::connect(&path).unwrap();
        assert!(listen_unix(&path).unwrap_err().to_string().contains("another program listens"));
        drop(listener);
        drop(listen_unix(&path).unwrap());
        assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 1, "nothing is left beside it");
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "precious").unwrap();
        assert!(listen_unix(&path).unwrap_err().to_string().contains("not a socket"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    }
}
