//! Reading and writing files, hostile paths included.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use acp_sdk::v1::{ErrorCode, ReadTextFileRequest};
use acp_server::{Limits, Turn};

use crate::bench::{Bench, GUARD, fails};
use crate::lifeline::fifo;

/// Reads and writes; both must fail the same way.
async fn refused(turn: &Turn, path: &str, words: &str) {
    for result in [
        turn.read_file(path).await.map(drop),
        turn.write_file(path, "x").await,
    ] {
        fails(result, ErrorCode::INVALID_PARAMS, words);
    }
}

async fn lines(turn: &Turn, path: &str, line: Option<u32>, limit: Option<u32>) -> String {
    let mut request = ReadTextFileRequest::new(turn.session().id(), turn.session().resolve(path));
    (request.line, request.limit) = (line, limit);
    turn.read_file_with(request).await.unwrap()
}

#[tokio::test]
async fn text_is_passed_on_exactly() {
    let bench = Bench::new().await;
    let turn = bench.turn().await;
    for text in ["", "\n", "no end", "\u{feff}a\r\nb\rc\n\n", "ü\u{2028}\0\n"] {
        bench.file("in/file", text);
        assert_eq!(turn.read_file("file").await.unwrap(), text);
        turn.write_file("copy", text).await.unwrap();
        assert_eq!(bench.text("in/copy"), text);
    }
    bench.file("extra/file", "besides");
    let extra = bench.named("extra/file");
    assert_eq!(turn.read_file(&extra).await.unwrap(), "besides");
}

#[tokio::test]
async fn lines_count_from_one_and_keep_their_endings() {
    let bench = Bench::new().await;
    let turn = bench.turn().await;
    bench.file("in/file", "one\ntwo\r\n\nfour");
    assert_eq!(lines(&turn, "file", None, Some(2)).await, "one\ntwo\r\n");
    assert_eq!(lines(&turn, "file", Some(1), Some(1)).await, "one\n");
    assert_eq!(lines(&turn, "file", Some(2), Some(2)).await, "two\r\n\n");
    assert_eq!(lines(&turn, "file", Some(3), None).await, "\nfour");
    assert_eq!(lines(&turn, "file", Some(4), Some(9)).await, "four");
    assert_eq!(lines(&turn, "file", Some(0), Some(1)).await, "one\n");
    assert_eq!(lines(&turn, "file", Some(5), None).await, "");
    assert_eq!(lines(&turn, "file", Some(1), Some(0)).await, "");
    assert_eq!(
        lines(&turn, "file", Some(u32::MAX), Some(u32::MAX)).await,
        ""
    );
}

#[tokio::test]
async fn a_part_of_a_file_that_is_too_long_can_be_read() {
    let mut limits = Limits::default();
    limits.local.file_bytes = 1 << 20;
    let bench = Bench::with_limits(limits).await;
    let turn = bench.turn().await;
    let line = "x".repeat(1023) + "\n";
    bench.file("in/long", line.repeat(1025));
    let whole = turn.read_file("long").await;
    fails(whole, ErrorCode::INTERNAL_ERROR, "`limit`");
    assert_eq!(lines(&turn, "long", Some(1025), None).await, line);
    let exactly = lines(&turn, "long", Some(2), None).await;
    assert_eq!(exactly.len(), 1 << 20);
}

#[tokio::test]
async fn paths_outside_are_refused() {
    let bench = Bench::new().await;
    bench.file("out/secret", "secret");
    // A name that begins like the root's is not inside of it.
    std::fs::create_dir(bench.path("inside")).unwrap();
    bench.file("inside/file", "secret");
    let turn = bench.turn().await;
    for path in [
        "../out/secret",
        "../inside/file",
        "../out/missing",
        "/etc/passwd",
        "/proc/self/environ",
        "/proc/self/root/etc/passwd",
        "/proc/self/cwd/Cargo.toml",
        "/",
        "..",
        &bench.named("out/secret"),
        &bench.named("in/../out/secret"),
    ] {
        refused(&turn, path, "outside of the session's directories").await;
    }
    assert_eq!(bench.text("out/secret"), "secret");
    // A path that leaves and comes back is inside.
    bench.file("in/file", "inside");
    assert_eq!(turn.read_file("../in/file").await.unwrap(), "inside");
}

#[tokio::test]
async fn links_that_lead_outside_are_refused() {
    let bench = Bench::new().await;
    bench.file("out/secret", "secret");
    bench.link("in/file-link", "out/secret");
    bench.link("in/dir-link", "out");
    bench.link("in/twice", "in/dir-link");
    symlink("../out", bench.path("in/relative")).unwrap();
    let turn = bench.turn().await;
    for path in [
        "file-link",
        "dir-link",
        "dir-link/secret",
        "twice/secret",
        "relative/secret",
        "dir-link/missing",
        "twice/a/b/missing",
    ] {
        refused(&turn, path, "outside of the session's directories").await;
    }
    assert_eq!(std::fs::read_dir(bench.path("out")).unwrap().count(), 1);
    assert_eq!(bench.text("out/secret"), "secret");
}

#[tokio::test]
async fn links_that_stay_inside_are_followed() {
    let bench = Bench::new().await;
    std::fs::create_dir(bench.path("in/sub")).unwrap();
    bench.file("in/sub/file", "old");
    bench.file("extra/file", "old");
    bench.link("in/absolute", "in/sub");
    symlink("sub/file", bench.path("in/relative")).unwrap();
    // From one directory of the session into another one.
    bench.link("in/across", "extra/file");
    let turn = bench.turn().await;
    for path in ["absolute/file", "relative", "across"] {
        assert_eq!(turn.read_file(path).await.unwrap(), "old");
        turn.write_file(path, "new").await.unwrap();
        assert_eq!(turn.read_file(path).await.unwrap(), "new");
        turn.write_file(path, "old").await.unwrap();
    }
    assert!(bench.path("in/relative").is_symlink());
    assert!(bench.path("in/across").is_symlink());
    assert_eq!(bench.text("extra/file"), "old");
}

#[tokio::test]
async fn links_to_nothing_are_not_written_through() {
    let bench = Bench::new().await;
    bench.link("in/dangling", "out/new");
    let turn = bench.turn().await;
    for path in ["dangling", "dangling/below"] {
        let written = turn.write_file(path, "x").await;
        fails(written, ErrorCode::INVALID_PARAMS, "symbolic link");
        let read = turn.read_file(path).await;
        fails(read, ErrorCode::RESOURCE_NOT_FOUND, path);
    }
    assert!(!bench.path("out/new").exists());
}

#[tokio::test]
async fn impossible_paths_are_refused() {
    let bench = Bench::new().await;
    let turn = bench.turn().await;
    refused(&turn, "a\0b", "NUL").await;
    refused(&turn, "missing/../file", "`..`").await;
    let relative = ReadTextFileRequest::new(turn.session().id(), "file");
    let relative = turn.read_file_with(relative).await;
    fails(relative, ErrorCode::INVALID_PARAMS, "not an absolute path");
    let long = turn.read_file(&"x".repeat(300)).await;
    fails(long, ErrorCode::INTERNAL_ERROR, "cannot use");
    // A loop of links.
    bench.link("in/loop", "in/loop");
    assert!(turn.read_file("loop").await.is_err());
    assert!(turn.write_file("loop", "x").await.is_err());
}

#[tokio::test]
async fn files_that_do_not_exist_are_named() {
    let bench = Bench::new().await;
    bench.file("in/file", "");
    let turn = bench.turn().await;
    for path in ["missing", "missing/below", "file/below"] {
        let read = turn.read_file(path).await;
        fails(read, ErrorCode::RESOURCE_NOT_FOUND, path);
    }
    assert!(turn.write_file("file/below", "x").await.is_err());
}

/// None of these may be opened, because opening or reading may block or do something.
#[tokio::test]
async fn only_regular_files_are_used() {
    let bench = Bench::new().await;
    fifo(&bench.path("in/pipe"));
    let _listener = UnixListener::bind(bench.path("in/socket")).unwrap();
    std::fs::create_dir(bench.path("in/sub")).unwrap();
    let turn = bench.turn().await;
    let all = async {
        for path in ["pipe", "socket"] {
            refused(&turn, path, "not a regular file").await;
        }
        refused(&turn, "sub", "is a directory").await;
        refused(&turn, ".", "is a directory").await;
    };
    tokio::time::timeout(GUARD, all).await.unwrap();
}

#[tokio::test]
async fn devices_in_a_root_are_refused() {
    let bench = Bench::new().await;
    // The session's directories are the client's choice: here all devices are inside.
    let request = acp_sdk::v1::NewSessionRequest::new("/dev", vec![]);
    let session = bench.agent.new_session(request).await.unwrap().session_id;
    let block = acp_sdk::v1::ContentBlock::Text(acp_sdk::v1::TextContent::new("go"));
    let request = acp_sdk::v1::PromptRequest::new(session, vec![block]);
    let agent = bench.agent.clone();
    tokio::spawn(async move { agent.prompt(request).await });
    let turn = bench.next_turn().await;
    for path in ["null", "zero", "tty"] {
        refused(&turn, path, "not a regular file").await;
    }
}

#[tokio::test]
async fn files_that_are_no_text_are_refused() {
    let bench = Bench::new().await;
    bench.file("in/binary", b"abc\xff");
    let turn = bench.turn().await;
    let read = turn.read_file("binary").await;
    fails(read, ErrorCode::INVALID_PARAMS, "byte 3");
}

#[tokio::test]
async fn files_and_directories_are_created() {
    let bench = Bench::new().await;
    let turn = bench.turn().await;
    turn.write_file("a/b/new", "text").await.unwrap();
    assert_eq!(bench.text("in/a/b/new"), "text");
    // The same mode as that of any file that this process creates.
    let ordinary = bench.file("ordinary", "").metadata().unwrap().mode();
    let created = bench.path("in/a/b/new").metadata().unwrap().mode();
    assert_eq!(created, ordinary);
}

#[tokio::test]
async fn a_file_is_replaced_as_a_whole_and_keeps_its_mode() {
    use std::io::Read as _;

    let bench = Bench::new().await;
    let path = bench.file("in/script", "old");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o750)).unwrap();
    let mut reader = std::fs::File::open(&path).unwrap();
    let turn = bench.turn().await;
    turn.write_file("script", "new").await.unwrap();
    let mut seen = String::new();
    reader.read_to_string(&mut seen).unwrap();
    assert_eq!(seen, "old", "a reader of the old file keeps it");
    assert_eq!(bench.text("in/script"), "new");
    assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o750);
    let names = std::fs::read_dir(bench.path("in")).unwrap().count();
    assert_eq!(names, 1, "no temporary file is left");
}

#[tokio::test]
async fn a_read_only_file_is_left_alone() {
    let bench = Bench::new().await;
    let path = bench.file("in/file", "old");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
    let turn = bench.turn().await;
    let written = turn.write_file("file", "new").await;
    fails(written, ErrorCode::INTERNAL_ERROR, "read-only");
    assert_eq!(bench.text("in/file"), "old");
}

/// A directory takes turns with a link that leads outside, while files below it are used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_between_check_and_use_leads_nowhere() {
    use rustix::fs::{CWD, RenameFlags, renameat_with};

    let bench = Bench::new().await;
    std::fs::create_dir(bench.path("in/sub")).unwrap();
    bench.file("in/sub/file", "inside");
    bench.file("out/file", "secret");
    bench.link("in/other", "out");
    let (sub, other) = (bench.path("in/sub"), bench.path("in/other"));
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let swaps = std::thread::spawn(move || {
        let mut count = 0u64;
        while !stopped.load(Ordering::Relaxed) {
            renameat_with(CWD, &sub, CWD, &other, RenameFlags::EXCHANGE).unwrap();
            count += 1;
        }
        count
    });
    let turn = bench.turn().await;
    let mut read = 0;
    for _ in 0..600 {
        match turn.read_file("sub/file").await {
            Ok(text) => {
                assert_eq!(text, "inside");
                read += 1;
            }
            Err(error) => assert!(error.code().is_some(), "{error}"),
        }
        // Either inside or an error.
        let _ = turn.write_file("sub/file", "inside").await;
        let _ = turn.write_file("sub/new", "inside").await;
    }
    stop.store(true, Ordering::Relaxed);
    assert!(swaps.join().unwrap() > 100);
    assert!(read > 0, "nothing was read");
    assert_eq!(bench.text("out/file"), "secret");
    let names = std::fs::read_dir(bench.path("out")).unwrap().count();
    assert_eq!(names, 1, "something was written outside");
}
