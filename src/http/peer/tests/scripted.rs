//! A peer that speaks single HTTP/2 frames, so that it can misbehave at each of them.

use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::*;

/// The kinds of frames that scripts use (RFC 9113 section 6).
pub(super) mod kind {
    pub(in super::super) const DATA: u8 = 0;
    pub(in super::super) const HEADERS: u8 = 1;
    pub(in super::super) const RESET: u8 = 3;
    pub(in super::super) const SETTINGS: u8 = 4;
    pub(in super::super) const PING: u8 = 6;
    pub(in super::super) const GOAWAY: u8 = 7;
}
pub(super) const ACK: u8 = 1;
pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;

/// One connection, seen from the scripted side.
pub(super) struct Frames {
    pub(super) tls: TlsStream<TcpStream>,
    /// Which connection it is, from 0.
    pub(super) nr: usize,
    heads: Arc<AtomicUsize>,
}

/// A listener whose every connection follows a script.
pub(super) struct Scripted {
    pub(super) to: PeerAddress,
    /// Heads of requests that were read.
    pub(super) heads: Arc<AtomicUsize>,
}

impl Scripted {
    /// Runs the script on each connection, once TLS stands and the first ping is answered.
    pub(super) async fn start<S>(
        script: impl Fn(Frames) -> S + Send + Sync + 'static,
        tasks: &TaskTracker,
    ) -> Self
    where
        S: Future<Output = io::Result<()>> + Send,
    {
        let identity = Identity::generate().expect("a key");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let to = address(listener.local_addr().expect("an address"), &identity);
        let heads = Arc::new(AtomicUsize::new(0));
        let (counted, script) = (heads.clone(), Arc::new(script));
        let running = tasks.clone();
        tasks.spawn(async move {
            for nr in 0.. {
                let (socket, _) = listener.accept().await.expect("a connection");
                let (acceptor, heads) = (TlsAcceptor::from(identity.listening()), counted.clone());
                let script = script.clone();
                running.spawn(async move {
                    let Ok(tls) = acceptor.accept(socket).await else { return };
                    let mut frames = Frames { tls, nr, heads };
                    if frames.greet().await.is_ok() {
                        let _ = script(frames).await;
                    }
                });
            }
        });
        Self { to, heads }
    }

    pub(super) fn heads(&self) -> usize {
        self.heads.load(Relaxed)
    }
}

impl Frames {
    async fn greet(&mut self) -> io::Result<()> {
        let mut preface = [0; 24];
        self.tls.read_exact(&mut preface).await?;
        self.write(kind::SETTINGS, 0, 0, &[]).await?;
        loop {
            let (kind, flags, _, payload) = self.read().await?;
            match (kind, flags) {
                (kind::SETTINGS, 0) => self.write(kind::SETTINGS, ACK, 0, &[]).await?,
                (kind::PING, 0) => return self.write(kind::PING, ACK, 0, &payload).await,
                _ => {}
            }
        }
    }

    /// Reads on to the head of a request; gives its stream.
    pub(super) async fn head(&mut self) -> io::Result<u32> {
        loop {
            let (kind, flags, stream, payload) = self.read().await?;
            match (kind, flags) {
                (kind::HEADERS, _) => {
                    self.heads.fetch_add(1, Relaxed);
                    return Ok(stream);
                }
                (kind::PING, 0) => self.write(kind::PING, ACK, 0, &payload).await?,
                _ => {}
            }
        }
    }

    pub(super) async fn read(&mut self) -> io::Result<(u8, u8, u32, Vec<u8>)> {
        let mut head = [0; 9];
        self.tls.read_exact(&mut head).await?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut payload = vec![0; length];
        self.tls.read_exact(&mut payload).await?;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & 0x7fff_ffff;
        Ok((head[3], head[4], stream, payload))
    }

    pub(super) async fn write(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> io::Result<()> {
        let mut frame = u32::try_from(payload.len()).expect("a small frame").to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        self.tls.write_all(&frame).await?;
        self.tls.flush().await
    }

    /// `200` and a whole body.
    pub(super) async fn answer(&mut self, stream: u32) -> io::Result<()> {
        self.write(kind::HEADERS, END_HEADERS, stream, &[0x88]).await?;
        self.write(kind::DATA, END_STREAM, stream, b"well").await
    }

    /// Nothing above stream `last` was or will be looked at.
    pub(super) async fn go_away(&mut self, last: u32) -> io::Result<()> {
        let payload = [last.to_be_bytes(), [0; 4]].concat();
        self.write(kind::GOAWAY, 0, 0, &payload).await
    }

    pub(super) async fn reset(&mut self, stream: u32, code: u32) -> io::Result<()> {
        self.write(kind::RESET, 0, stream, &code.to_be_bytes()).await
    }

    /// Reads on, and answers pings only, until the other side closes.
    pub(super) async fn idle(&mut self) -> io::Result<()> {
        loop {
            self.head().await?;
        }
    }
}
