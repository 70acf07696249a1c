//! The runtime that the benchmarks run on.

/// One thread, or as many as BENCH_THREADS says: that measures the price of the
/// multi-threaded scheduler.
pub(crate) fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    let threads = std::env::var("BENCH_THREADS").ok();
    let mut builder = match threads.and_then(|n| n.parse().ok()) {
        Some(threads) => {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            builder.worker_threads(threads);
            builder
        }
        None => tokio::runtime::Builder::new_current_thread(),
    };
    builder.enable_all().build()
}
