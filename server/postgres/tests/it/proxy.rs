//! Stands between a store and the database, and breaks connections where a test says so.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::{Notify, watch};

/// What happens to the next message of the client with the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The connection breaks before the message reaches the database.
    CutRequest,
    /// The database does what the message says. The connection breaks instead of the answer.
    CutAnswer,
    /// The connection of the client breaks; the database gets the message when the test says so.
    Hold,
    /// The database does what the message says; there is no answer, and the connection stays.
    Silence,
}

#[derive(Debug)]
pub(crate) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// The text and the fault that it meets, once.
    fault: Mutex<Option<(&'static str, Fault)>>,
    is_open: AtomicBool,
    /// Changes when all connections break.
    breaks: watch::Sender<()>,
    /// Changes when nothing passes through the present connections any more.
    stalls: watch::Sender<()>,
    /// The fault has happened.
    met: Notify,
    deliver: Notify,
    delivered: Notify,
}

impl Proxy {
    pub(crate) async fn start(socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            fault: Mutex::default(),
            is_open: AtomicBool::new(true),
            breaks: watch::Sender::new(()),
            stalls: watch::Sender::new(()),
            met: Notify::new(),
            deliver: Notify::new(),
            delivered: Notify::new(),
        });
        tokio::spawn(accept(listener, socket, shared.clone()));
        Self { address, shared }
    }

    pub(crate) fn url(&self) -> String {
        let (host, port) = (self.address.ip(), self.address.port());
        format!("host={host} port={port} user=acp dbname=postgres sslmode=disable")
    }

    /// Makes the next message with a text meet a fault.
    pub(crate) fn inject(&self, text: &'static str, fault: Fault) {
        *self.shared.fault.lock().unwrap() = Some((text, fault));
    }

    /// Waits until the fault has happened.
    pub(crate) async fn met(&self) {
        self.shared.met.notified().await;
    }

    /// Breaks all connections.
    pub(crate) fn cut(&self) {
        self.shared.breaks.send_replace(());
    }

    /// Lets nothing pass through the present connections any more, without breaking them.
    pub(crate) fn stall(&self) {
        self.shared.stalls.send_replace(());
    }

    /// Breaks all connections and accepts no further ones.
    pub(crate) fn close(&self) {
        self.shared.is_open.store(false, Ordering::SeqCst);
        self.cut();
    }

    pub(crate) fn open(&self) {
        self.shared.is_open.store(true, Ordering::SeqCst);
    }

    /// Gives the database what was held, and waits for its answer.
    pub(crate) async fn deliver(&self) {
        self.shared.deliver.notify_one();
        self.shared.delivered.notified().await;
    }
}

async fn accept(listener: TcpListener, socket: PathBuf, shared: Arc<Shared>) {
    loop {
        let (client, _) = listener.accept().await.unwrap();
        let (socket, shared) = (socket.clone(), shared.clone());
        tokio::spawn(async move {
            let mut breaks = shared.breaks.subscribe();
            if !shared.is_open.load(Ordering::SeqCst) {
                return;
            }
            let Ok(server) = UnixStream::connect(socket).await else {
                return;
            };
            let mut stalls = shared.stalls.subscribe();
            // Dropping it breaks the connection.
            let mut forward = pin!(forward(client, server, &shared));
            tokio::select! {
                () = &mut forward => {}
                _ = breaks.changed() => {}
                _ = stalls.changed() => drop(breaks.changed().await),
            }
        });
    }
}

async fn forward(client: TcpStream, server: UnixStream, shared: &Shared) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let (mut up, mut down) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    loop {
        let count = tokio::select! {
            count = from_client.read(&mut up) => count.unwrap_or(0),
            count = from_server.read(&mut down) => {
                let count = count.unwrap_or(0);
                if count == 0 || to_client.write_all(&down[..count]).await.is_err() {
                    return;
                }
                continue;
            }
        };
        if count == 0 {
            return;
        }
        let message = &up[..count];
        let Some(fault) = shared.fault_of(message) else {
            if to_server.write_all(message).await.is_err() {
                return;
            }
            continue;
        };
        match fault {
            Fault::CutRequest => {}
            Fault::CutAnswer | Fault::Silence => {
                to_server.write_all(message).await.unwrap();
                assert!(from_server.read(&mut down).await.unwrap() > 0);
            }
            Fault::Hold => {
                drop((from_client, to_client));
                shared.met.notify_one();
                shared.deliver.notified().await;
                to_server.write_all(message).await.unwrap();
                assert!(from_server.read(&mut down).await.unwrap() > 0);
                shared.delivered.notify_one();
                return;
            }
        }
        shared.met.notify_one();
        if fault == Fault::Silence {
            // Until the client hangs up.
            while from_client.read(&mut up).await.is_ok_and(|count| count > 0) {}
        }
        return;
    }
}

impl Shared {
    /// Returns what happens to a message.
    fn fault_of(&self, message: &[u8]) -> Option<Fault> {
        let mut fault = self.fault.lock().unwrap();
        let has = |text: &str| {
            let mut parts = message.windows(text.len());
            parts.any(|part| part == text.as_bytes())
        };
        match *fault {
            Some((text, met)) if has(text) => {
                *fault = None;
                Some(met)
            }
            _ => None,
        }
    }
}
