//! A receiver that needs almost no processor time: it reads requests over HTTP and accepts them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

const YES: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n";

/// The receiver. Its threads end with the process.
#[derive(Debug)]
pub struct Swallow {
    /// Its address.
    pub address: String,
}

impl Swallow {
    /// Starts it on a free port.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                thread::spawn(move || serve(socket));
            }
        });
        Self { address }
    }
}

/// Answers until the client hangs up.
fn serve(socket: TcpStream) {
    let Ok(mut answers) = socket.try_clone() else { return };
    let mut requests = BufReader::with_capacity(1 << 16, socket);
    let mut body = Vec::new();
    loop {
        let (mut length, mut line) = (0, String::new());
        loop {
            line.clear();
            match requests.read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if line.trim().is_empty() => break,
                Ok(_) => {}
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        body.resize(length, 0);
        if requests.read_exact(&mut body).is_err() || answers.write_all(YES).is_err() {
            return;
        }
    }
}
