//! Signals that others send to this process.

use std::io;

use rustix::process::Signal;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

/// The signals that an editor may send to its agent, which the proxy is.
pub(super) const OF_EDITOR: &[(SignalKind, Signal)] = &[
    (SignalKind::hangup(), Signal::HUP),
    (SignalKind::quit(), Signal::QUIT),
    (SignalKind::terminate(), Signal::TERM),
    (SignalKind::interrupt(), Signal::INT),
];

/// The signals that end a run.
pub const THAT_END: &[(SignalKind, Signal)] = &[
    (SignalKind::terminate(), Signal::TERM),
    (SignalKind::interrupt(), Signal::INT),
];

/// Calls `each` with every one of these signals from now on, from a thread that ends with the
/// process. Signals that arrive after the return are not lost.
///
/// # Errors
/// Fails when the system refuses a handler or a thread.
pub fn watch(
    signals: &[(SignalKind, Signal)],
    each: impl Fn(Signal) + Clone + Send + 'static,
) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    register(&runtime, signals, each)?;
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
    Ok(())
}

fn register(
    runtime: &Runtime,
    signals: &[(SignalKind, Signal)],
    each: impl Fn(Signal) + Clone + Send + 'static,
) -> io::Result<()> {
    let _context = runtime.enter();
    for &(kind, passed_on) in signals {
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
