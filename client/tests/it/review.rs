//! Snapshots of a directory that an agent changes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use acp_client::review::{ChangeKind, ReviewError, Snapshots, UndoStack};

use crate::agent::within;

/// A directory with some files.
fn directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("sub")).unwrap();
    for (path, text) in [
        ("a", "1\n2\n3\n"),
        ("b c", "b"),
        ("sub/d", "d"),
        (".gitignore", "out\n"),
    ] {
        fs::write(dir.path().join(path), text).unwrap();
    }
    fs::write(dir.path().join("out"), "ignored").unwrap();
    dir
}

fn read(dir: &Path, path: &str) -> Option<String> {
    fs::read_to_string(dir.join(path)).ok()
}

async fn undo_stack(dir: &Path) -> UndoStack {
    UndoStack::new(within(Snapshots::of(dir)).await.unwrap())
}

fn paths(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}

#[tokio::test]
async fn the_changes_of_a_turn_are_listed_undone_and_redone() {
    let dir = directory();
    let mut turns = undo_stack(dir.path()).await;
    assert_eq!(within(turns.begin()).await.unwrap(), []);
    fs::write(dir.path().join("a"), "1\ntwo\n3\n").unwrap();
    fs::remove_file(dir.path().join("b c")).unwrap();
    fs::create_dir_all(dir.path().join("new/deep")).unwrap();
    fs::write(dir.path().join("new/deep/é"), [0, 0xff]).unwrap();
    fs::write(dir.path().join("out"), "changed").unwrap();
    fs::remove_dir_all(dir.path().join("sub")).unwrap();
    fs::write(dir.path().join("sub"), "a file now").unwrap();
    let (before, after) = within(turns.end()).await.unwrap().unwrap();

    let changes = within(turns.snapshots().changes(&before, &after))
        .await
        .unwrap();
    let listed = changes
        .iter()
        .map(|change| (change.path.to_str().unwrap(), change.kind));
    assert_eq!(
        listed.collect::<Vec<_>>(),
        [
            ("a", ChangeKind::Modified),
            ("b c", ChangeKind::Deleted),
            ("new/deep/é", ChangeKind::Added),
            ("sub", ChangeKind::Added),
            ("sub/d", ChangeKind::Deleted),
        ]
    );
    let old = within(turns.snapshots().content(&before, Path::new("a"))).await;
    assert_eq!(old.unwrap(), b"1\n2\n3\n");

    let undone = within(turns.undo()).await.unwrap().unwrap();
    let all = paths(&["a", "b c", "new/deep/é", "sub", "sub/d"]);
    assert_eq!(undone.restored, all);
    assert_eq!(undone.kept, paths(&[]));
    assert_eq!(read(dir.path(), "a").as_deref(), Some("1\n2\n3\n"));
    assert_eq!(read(dir.path(), "b c").as_deref(), Some("b"));
    assert!(!dir.path().join("new/deep/é").exists());
    assert_eq!(read(dir.path(), "sub/d").as_deref(), Some("d"));
    assert_eq!(read(dir.path(), "out").as_deref(), Some("changed"));
    assert!(within(turns.undo()).await.unwrap().is_none());

    within(turns.redo()).await.unwrap().unwrap();
    assert_eq!(read(dir.path(), "a").as_deref(), Some("1\ntwo\n3\n"));
    assert!(!dir.path().join("b c").exists());
    assert_eq!(read(dir.path(), "sub").as_deref(), Some("a file now"));
    assert_eq!(fs::read(dir.path().join("new/deep/é")).unwrap(), [0, 0xff]);
    assert!(within(turns.redo()).await.unwrap().is_none());
}

#[tokio::test]
async fn what_somebody_else_changed_since_is_kept() {
    let dir = directory();
    let mut turns = undo_stack(dir.path()).await;
    within(turns.begin()).await.unwrap();
    fs::write(dir.path().join("a"), "agent").unwrap();
    fs::write(dir.path().join("sub/d"), "agent").unwrap();
    within(turns.end()).await.unwrap().unwrap();
    fs::write(dir.path().join("a"), "user").unwrap();
    fs::write(dir.path().join("b c"), "user").unwrap();
    let undone = within(turns.undo()).await.unwrap().unwrap();
    assert_eq!(
        (undone.restored, undone.kept),
        (paths(&["sub/d"]), paths(&["a"]))
    );
    assert_eq!(read(dir.path(), "a").as_deref(), Some("user"));
    assert_eq!(read(dir.path(), "b c").as_deref(), Some("user"));
    assert_eq!(read(dir.path(), "sub/d").as_deref(), Some("d"));
}

#[tokio::test]
async fn nothing_outside_of_the_directory_is_written() {
    let (dir, outside) = (directory(), tempfile::tempdir().unwrap());
    fs::write(outside.path().join("d"), "outside").unwrap();
    let mut turns = undo_stack(dir.path()).await;
    within(turns.begin()).await.unwrap();
    fs::remove_dir_all(dir.path().join("sub")).unwrap();
    symlink(outside.path(), dir.path().join("sub")).unwrap();
    within(turns.end()).await.unwrap().unwrap();
    within(turns.undo()).await.unwrap().unwrap();
    assert_eq!(read(dir.path(), "sub/d").as_deref(), Some("d"));
    assert!(dir.path().join("sub").symlink_metadata().unwrap().is_dir());
    assert_eq!(read(outside.path(), "d").as_deref(), Some("outside"));
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_repository_is_left_as_it_is_and_its_settings_run_nothing() {
    let dir = directory();
    let git = |args: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.args(["-c", "user.name=t", "-c", "user.email=t@example.com"]);
        let output = command.args(args).current_dir(dir.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-qm", "first"]);
    let ran = dir.path().join(".git/ran");
    let evil = format!("touch '{}'; false", ran.display());
    for setting in ["core.fsmonitor", "filter.evil.clean", "filter.evil.smudge"] {
        git(&["config", setting, &evil]);
    }
    fs::write(
        dir.path().join(".git/hooks/post-checkout"),
        "#!/bin/sh\nexit 1\n",
    )
    .unwrap();
    let attributes = "* filter=evil text eol=lf ident\n";
    fs::write(dir.path().join(".gitattributes"), attributes).unwrap();
    let exact = "$Id$\r\n\n";
    fs::write(dir.path().join("b c"), exact).unwrap();
    let objects = || {
        let folder = fs::read_dir(dir.path().join(".git/objects")).unwrap();
        folder.count()
    };
    let (index, count) = (fs::read(dir.path().join(".git/index")).unwrap(), objects());

    let mut turns = undo_stack(dir.path()).await;
    within(turns.begin()).await.unwrap();
    fs::write(dir.path().join("a"), "agent").unwrap();
    fs::remove_file(dir.path().join("b c")).unwrap();
    within(turns.end()).await.unwrap().unwrap();
    within(turns.undo()).await.unwrap().unwrap();
    assert_eq!(read(dir.path(), "a").as_deref(), Some("1\n2\n3\n"));
    assert_eq!(read(dir.path(), "b c").as_deref(), Some(exact));
    assert!(!ran.exists());
    assert_eq!(fs::read(dir.path().join(".git/index")).unwrap(), index);
    assert_eq!(objects(), count);
}

#[tokio::test]
async fn what_is_too_large_is_named_and_left_alone() {
    let dir = directory();
    let large = fs::File::create(dir.path().join("large")).unwrap();
    large.set_len((25 << 20) + 1).unwrap();
    fs::create_dir(dir.path().join("other")).unwrap();
    let made = std::process::Command::new("git")
        .args(["init", "-q"])
        .current_dir(dir.path().join("other"))
        .status();
    assert!(made.unwrap().success());
    fs::write(dir.path().join("other/x"), "x").unwrap();
    let mut turns = undo_stack(dir.path()).await;
    let left_alone = within(turns.begin()).await.unwrap();
    let names: Vec<_> = left_alone
        .iter()
        .map(|file| file.path.to_str().unwrap())
        .collect();
    assert_eq!(names, ["large", "other/"]);
    assert!(left_alone[0].reason.contains("25 MiB"), "{left_alone:?}");
    large.set_len(30 << 20).unwrap();
    fs::write(dir.path().join("other/x"), "y").unwrap();
    assert!(within(turns.end()).await.unwrap().is_none());
}

#[tokio::test]
async fn copies_are_readable_for_the_user_only() {
    use std::os::unix::fs::PermissionsExt as _;

    let (dir, temporary) = (directory(), std::env::temp_dir());
    let folders = || {
        let all = fs::read_dir(&temporary).unwrap().filter_map(Result::ok);
        let ours = all.filter(|entry| {
            entry
                .file_name()
                .to_string_lossy()
                .starts_with("acp-review-")
        });
        ours.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let snapshots = within(Snapshots::of(dir.path())).await.unwrap();
    let folders_of_tests = folders();
    assert_ne!(folders_of_tests, [] as [PathBuf; 0]);
    for folder in folders_of_tests {
        // Another test may have removed its own.
        if let Ok(metadata) = fs::metadata(&folder) {
            assert_eq!(metadata.permissions().mode() & 0o777, 0o700, "{folder:?}");
        }
    }
    drop(snapshots);
}

#[tokio::test]
async fn a_directory_that_cannot_be_used_is_named() {
    let dir = directory();
    for path in ["missing", "a"] {
        let error = within(Snapshots::of(dir.path().join(path)))
            .await
            .unwrap_err();
        assert!(matches!(error, ReviewError::Directory { .. }), "{error}");
        assert!(error.to_string().contains(path), "{error}");
    }
}
