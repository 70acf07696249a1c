//! Hostile paths, while others rename directories and swap links: nothing outside is read or
//! written.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod paths;
mod playground;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use acp_files::Roots;
use acp_sdk::{ErrorCode, RpcError};

use crate::paths::{Paths, Random};
use crate::playground::{Outside, Playground, SECRET};

/// Paths that are tried, unless `ACP_FILES_PATHS` says another number.
const PATHS: u64 = 100_000;

/// Paths between two looks at what is outside.
const ROUND: u64 = 500;

/// Nothing blocks this long when all is well.
const GUARD: Duration = Duration::from_secs(300);

/// What has been seen.
#[derive(Debug, Default)]
struct Counts {
    read: AtomicU64,
    written: AtomicU64,
    found: AtomicU64,
    outside: AtomicU64,
    missing: AtomicU64,
    failed: AtomicU64,
}

#[test]
fn nothing_outside_is_read_or_written() {
    let number = std::env::var("ACP_FILES_PATHS").ok();
    let number = number.map_or(PATHS, |number| number.parse().expect("a number of paths"));
    let playground = Playground::new();
    let roots = Roots::open(playground.roots()).unwrap();
    let outside = Outside::new(&playground);
    let counts = Counts::default();
    let stop = AtomicBool::new(false);
    let swaps = AtomicU64::new(0);
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let (playground, roots, outside) = (&playground, &roots, &outside);
        let (counts, stop, swaps) = (&counts, &stop, &swaps);
        for pairs in playground.swaps() {
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    pairs.iter().for_each(|swap| playground.swap(swap));
                    swaps.fetch_add(1, Ordering::Relaxed);
                    std::thread::yield_now();
                }
            });
        }
        for worker in 0..2 {
            let done = done.clone();
            scope.spawn(move || {
                // Also when an assertion fails, so that the swaps end.
                let _done = Done(done);
                let mut paths = Paths::new(playground, Random::new(0x5eed + worker));
                for round in 0..number.div_ceil(2 * ROUND) {
                    for _ in 0..ROUND {
                        let path = paths.next();
                        try_one(roots, outside, &path, paths.random(), counts);
                    }
                    outside.is_untouched(&format!("round {round} of worker {worker}"));
                }
            });
        }
        drop(done);
        let mut ended = 0;
        while ended < 2 {
            let Ok(()) = is_done.recv_timeout(GUARD) else {
                // The blocked thread would keep the test from ending.
                eprintln!("a call blocks: {counts:?}");
                std::process::exit(101);
            };
            ended += 1;
        }
        stop.store(true, Ordering::Relaxed);
    });
    eprintln!("{number} paths, {swaps:?} rounds of swaps, {counts:?}");
    outside.is_untouched("the end");
    playground.has_no_temporary_files();
    // The test would show nothing if all of them had been refused for another reason.
    for (what, count) in [
        ("read", &counts.read),
        ("written", &counts.written),
        ("found", &counts.found),
        ("outside", &counts.outside),
        ("missing", &counts.missing),
        ("swapped", &swaps),
    ] {
        assert!(count.load(Ordering::Relaxed) > 50, "nothing was {what}");
    }
}

/// Sends a message when it is dropped.
struct Done(std::sync::mpsc::Sender<()>);

impl Drop for Done {
    fn drop(&mut self) {
        // Nobody waits any more after a failure.
        let _ = self.0.send(());
    }
}

fn try_one(roots: &Roots, outside: &Outside, path: &str, random: u64, counts: &Counts) {
    let result = match random % 8 {
        0..3 => acp_files::read(roots, path, None, None, 1 << 16).map(|text| {
            assert!(!text.contains(SECRET), "{path:?} was read");
            &counts.read
        }),
        3..6 => acp_files::write(roots, path, "written by the test").map(|()| &counts.written),
        6 => roots.directory(path).map(|directory| {
            let metadata = std::fs::metadata(directory.start_path());
            outside.does_not_contain(&metadata.unwrap(), path);
            &counts.found
        }),
        _ => {
            let both = [roots.existing(path), roots.writable(path)];
            both.into_iter().flatten().for_each(|found| {
                let inside = outside.roots.iter().any(|root| found.starts_with(root));
                assert!(inside, "{path:?} is {}", found.display());
            });
            return;
        }
    };
    result
        .unwrap_or_else(|error| counts.of(&error))
        .fetch_add(1, Ordering::Relaxed);
}

impl Counts {
    fn of(&self, error: &RpcError) -> &AtomicU64 {
        assert!(!error.message.contains(SECRET), "{error}");
        match error.code {
            ErrorCode::INVALID_PARAMS if error.message.contains("outside") => &self.outside,
            ErrorCode::RESOURCE_NOT_FOUND => &self.missing,
            ErrorCode::INVALID_PARAMS | ErrorCode::INTERNAL_ERROR => &self.failed,
            _ => panic!("{error}"),
        }
    }
}
