//! A proxy that cuts connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// Numbers that follow from a seed: a linear congruence is random enough.
pub struct Random(AtomicU64);

impl Random {
    pub fn new() -> Self {
        let seed = std::env::var("ACP_CHAOS_SEED").ok();
        let seed = seed.and_then(|seed| seed.parse().ok());
        let clock = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
        let seed = seed.unwrap_or(clock.as_nanos() as u64);
        eprintln!("ACP_CHAOS_SEED={seed}");
        Self(seed.into())
    }

    pub fn below(&self, limit: u64) -> u64 {
        let next = |state: u64| {
            let state = state.wrapping_mul(6_364_136_223_846_793_005);
            Some(state.wrapping_add(1_442_695_040_888_963_407))
        };
        let before = self
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
        (next(before.unwrap()).unwrap() >> 33) % limit
    }
}

/// Forwards to a server, and cuts connections in the middle of what they carry.
pub struct Proxy {
    pub port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    random: Random,
    /// Connections that are still cut.
    left: AtomicU64,
    cuts: AtomicU64,
    /// All present connections end with it.
    now: std::sync::Mutex<CancellationToken>,
}

impl Proxy {
    pub async fn start(server: u16, cuts: u64) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            random: Random::new(),
            left: cuts.into(),
            cuts: 0.into(),
            now: std::sync::Mutex::default(),
        });
        let sharing = shared.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(forward(
                    socket,
                    ([127, 0, 0, 1], server).into(),
                    sharing.clone(),
                ));
            }
        });
        Self { port, shared }
    }

    /// How many connections were cut.
    pub fn cuts(&self) -> u64 {
        self.shared.cuts.load(Ordering::Acquire)
    }

    /// Whether no more will be cut.
    pub fn is_peaceful(&self) -> bool {
        self.shared.left.load(Ordering::Acquire) == 0
    }

    /// Cuts all connections.
    pub fn cut_all(&self) {
        std::mem::take(&mut *self.shared.now.lock().unwrap()).cancel();
    }
}

async fn forward(mut near: TcpStream, server: SocketAddr, shared: Arc<Shared>) {
    let now = shared.now.lock().unwrap().clone();
    let Ok(mut far) = TcpStream::connect(server).await else {
        return;
    };
    // After so many bytes in either direction.
    let mut bytes = 200 + shared.random.below(20_000);
    let (mut there, mut back) = (vec![0; 4096], vec![0; 4096]);
    loop {
        let (read, forth) = tokio::select! {
            read = near.read(&mut there) => (read, true),
            read = far.read(&mut back) => (read, false),
            () = now.cancelled() => return,
        };
        let Ok(length @ 1..) = read else { return };
        let (buffer, target) = match forth {
            true => (&there[..length], &mut far),
            false => (&back[..length], &mut near),
        };
        let cut = bytes < length as u64 && {
            let left = &shared.left;
            let fewer = |left: u64| left.checked_sub(1);
            left.fetch_update(Ordering::AcqRel, Ordering::Acquire, fewer)
                .is_ok()
        };
        let passed = if cut { bytes as usize } else { length };
        if target.write_all(&buffer[..passed]).await.is_err() {
            return;
        }
        if cut {
            shared.cuts.fetch_add(1, Ordering::AcqRel);
            return;
        }
        bytes = bytes.saturating_sub(length as u64);
        if bytes == 0 {
            bytes = 200 + shared.random.below(20_000);
        }
    }
}
