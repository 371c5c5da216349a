//! HTTP/1.1 by hand, for what no client library would send or show.
#![allow(dead_code, reason = "each test area uses a part of it")]

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::client::SOON;

/// One connection.
pub(crate) struct Raw {
    pub(crate) socket: TcpStream,
    unread: Vec<u8>,
}

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct RawAnswer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

// === impl Raw ===

impl Raw {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).await.expect("a connection");
        Self::over(socket)
    }

    pub(crate) fn over(socket: TcpStream) -> Self {
        socket.set_nodelay(true).expect("no delay");
        Self { socket, unread: Vec::new() }
    }

    /// Sends bytes as they are.
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.socket.write_all(bytes.as_ref()).await.expect("the gateway takes it");
    }

    /// Sends a request with a body of known length; `headers` are whole lines, each with its line break.
    pub(crate) async fn request(&mut self, line: &str, headers: &str, body: &str) {
        let length = body.len();
        self.send(format!("{line} HTTP/1.1\r\nHost: gw\r\nContent-Length: {length}\r\n{headers}\r\n{body}"))
            .await;
    }

    /// The next answer with its body.
    pub(crate) async fn answer(&mut self) -> RawAnswer {
        let mut answer = self.head().await;
        if let Some(length) = answer.header("content-length") {
            let length = length.parse().expect("a number");
            answer.body = self.take(length).await;
        } else if answer.header("transfer-encoding") == Some("chunked") {
            loop {
                let chunk = self.chunk().await;
                if chunk.is_empty() {
                    break;
                }
                answer.body.push_str(&chunk);
            }
        }
        answer
    }

    /// The next answer's head.
    pub(crate) async fn head(&mut self) -> RawAnswer {
        let head = self.take_through("\r\n\r\n").await;
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|l| l.split(' ').nth(1)?.parse().ok()).expect("a status line");
        let headers = lines.filter_map(|l| l.split_once(':'));
        let headers = headers.map(|(n, v)| (n.to_ascii_lowercase(), v.trim().to_owned())).collect();
        RawAnswer { status, headers, body: String::new() }
    }

    /// The next chunk of a chunked body; empty at its end.
    pub(crate) async fn chunk(&mut self) -> String {
        let size = self.take_through("\r\n").await;
        let size = usize::from_str_radix(size.trim(), 16).expect("a chunk size");
        let chunk = self.take(size).await;
        self.take(2).await;
        chunk
    }

    /// Waits until the gateway ended the connection; gives what it sent before.
    pub(crate) async fn end(&mut self) -> String {
        while self.more().await {}
        String::from_utf8_lossy(&std::mem::take(&mut self.unread)).into_owned()
    }

    /// Whether nothing comes, not even an end, for so long.
    pub(crate) async fn is_silent_for(&mut self, time: Duration) -> bool {
        tokio::time::timeout(time, self.more()).await.is_err()
    }

    async fn take_through(&mut self, mark: &str) -> String {
        loop {
            let found = self.unread.windows(mark.len()).position(|w| w == mark.as_bytes());
            if let Some(at) = found {
                return self.split(at + mark.len());
            }
            assert!(self.more().await, "the gateway ended the connection after {:?}", self.unread);
        }
    }

    async fn take(&mut self, length: usize) -> String {
        while self.unread.len() < length {
            assert!(self.more().await, "the gateway ended the connection in mid-body");
        }
        self.split(length)
    }

    fn split(&mut self, at: usize) -> String {
        let rest = self.unread.split_off(at);
        String::from_utf8(std::mem::replace(&mut self.unread, rest)).expect("UTF-8")
    }

    /// Reads on; `false` at the end, also if it came as a reset.
    async fn more(&mut self) -> bool {
        let mut buffer = [0; 16 << 10];
        let read = tokio::time::timeout(SOON, self.socket.read(&mut buffer)).await.expect("bytes soon");
        let read = read.unwrap_or(0);
        self.unread.extend_from_slice(&buffer[..read]);
        read > 0
    }
}

// === impl RawAnswer ===

impl RawAnswer {
    /// A header, by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }
}
