//! Signals that the editor sends to its agent, which is us.

use std::io;

use rustix::process::Signal;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

/// The signals that are passed on.
const PASSED_ON: [(SignalKind, Signal); 4] = [
    (SignalKind::terminate(), Signal::TERM),
    (SignalKind::interrupt(), Signal::INT),
    (SignalKind::hangup(), Signal::HUP),
    (SignalKind::quit(), Signal::QUIT),
];

/// Calls `each` with every signal from now on, from a thread that ends with the
/// process. Signals that arrive after the return are not lost.
pub(super) fn watch(each: impl Fn(Signal) + Clone + Send + 'static) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    register(&runtime, each)?;
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
    Ok(())
}

fn register(runtime: &Runtime, each: impl Fn(Signal) + Clone + Send + 'static) -> io::Result<()> {
    let _context = runtime.enter();
    for (kind, passed_on) in PASSED_ON {
        let mut stream = signal(kind)?;
        let each = each.clone();
        runtime.spawn(async move {
            while stream.recv().await.is_some() {
                each(passed_on);
            }
        });
    }
    Ok(())
}
