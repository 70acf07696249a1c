//! Moves, conflicts, limits, and the end of the process at any byte.

mod journals;
mod model;

use std::fs;
use std::path::PathBuf;

use acp_sdk::extensions::{RestorationOutcome, TurnRestoration};

use super::*;

/// A project and a journal.
struct Site {
    folder: tempfile::TempDir,
    limits: JournalLimits,
}

impl Site {
    fn new() -> Self {
        // In memory where that is possible: the journal waits for the disk often.
        let shared = Path::new("/dev/shm");
        let folder = match shared.is_dir() {
            true => tempfile::tempdir_in(shared).unwrap(),
            false => tempfile::tempdir().unwrap(),
        };
        fs::create_dir(folder.path().join("project")).unwrap();
        let limits = JournalLimits::default();
        Self { folder, limits }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder
            .path()
            .canonicalize()
            .unwrap()
            .join("project")
            .join(name)
    }

    fn journal_folder(&self) -> PathBuf {
        self.folder.path().join("journal")
    }

    fn open(&self) -> Journal {
        let project = self.folder.path().join("project");
        Journal::open(&self.journal_folder(), [project], self.limits.clone()).unwrap()
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.path(name)).ok()
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    /// A turn that writes files.
    fn turn(&self, journal: &mut Journal, name: &str, files: &[(&str, &str)]) -> Ended {
        journal.begin(name).unwrap();
        for (file, text) in files {
            journal.before_change(self.path(file)).unwrap();
            self.write(file, text);
        }
        journal.end().unwrap()
    }

    fn blobs(&self) -> usize {
        fs::read_dir(self.journal_folder().join("blobs"))
            .unwrap()
            .count()
    }
}

fn outcomes(restoration: &TurnRestoration) -> Vec<String> {
    let files = restoration.files.iter();
    files.map(|file| file.outcome.to_string()).collect()
}

#[test]
fn turns_are_undone_and_redone_in_order() {
    let site = Site::new();
    site.write("a", "0");
    let mut journal = site.open();
    site.turn(&mut journal, "one", &[("a", "1"), ("dir/b", "1")]);
    site.turn(&mut journal, "nothing", &[("a", "1")]);
    site.turn(&mut journal, "two", &[("a", "2"), ("a", "3")]);
    assert_eq!((journal.undoable(), journal.redoable()), (2, 0));

    let undone = journal.undo(false).unwrap();
    assert_eq!(undone.turn.as_deref(), Some("two"));
    assert_eq!(
        (undone.applied, undone.undoable, undone.redoable),
        (true, 1, 1)
    );
    assert_eq!(outcomes(&undone), ["restored"]);
    assert_eq!(site.read("a").as_deref(), Some("1"));
    let undone = journal.undo(false).unwrap();
    assert_eq!(outcomes(&undone), ["restored", "removed"]);
    assert_eq!(undone.files[1].path, site.path("dir/b").to_str().unwrap());
    assert_eq!(
        (site.read("a").as_deref(), site.read("dir/b")),
        (Some("0"), None)
    );
    assert!(matches!(
        journal.undo(false),
        Err(JournalError::Nothing(Direction::Undo))
    ));

    fs::remove_dir(site.path("dir")).unwrap();
    assert_eq!(
        outcomes(&journal.redo(false).unwrap()),
        ["restored", "restored"]
    );
    assert_eq!(site.read("dir/b").as_deref(), Some("1"));
    journal.redo(false).unwrap();
    assert_eq!(site.read("a").as_deref(), Some("3"));
    assert!(matches!(
        journal.redo(false),
        Err(JournalError::Nothing(Direction::Redo))
    ));
}

#[test]
fn a_new_turn_drops_what_was_undone_with_its_contents() {
    let site = Site::new();
    site.write("a", "0");
    let mut journal = site.open();
    site.turn(&mut journal, "one", &[("a", "1")]);
    journal.undo(false).unwrap();
    assert_eq!(site.blobs(), 2);
    journal.begin("two").unwrap();
    assert_eq!(
        (journal.undoable(), journal.redoable(), site.blobs()),
        (0, 0, 0)
    );
    assert!(matches!(journal.redo(false), Err(JournalError::TurnOpen)));
    assert!(matches!(
        journal.begin("three"),
        Err(JournalError::TurnOpen)
    ));
    journal.end().unwrap();
    assert!(matches!(journal.redo(false), Err(JournalError::Nothing(_))));
    assert!(matches!(
        journal.before_change(site.path("a")),
        Err(JournalError::NoTurn)
    ));
}

#[test]
fn changes_of_others_are_not_overwritten_unless_forced() {
    let site = Site::new();
    site.write("a", "0");
    let mut journal = site.open();
    site.turn(&mut journal, "one", &[("a", "1"), ("b", "1")]);
    site.write("a", "somebody else");
    let refused = journal.undo(false).unwrap();
    assert!(!refused.applied);
    assert_eq!(outcomes(&refused), ["conflict", "pending"]);
    assert_eq!(
        site.read("b").as_deref(),
        Some("1"),
        "one of both is restored"
    );

    let forced = journal.undo(true).unwrap();
    assert_eq!(outcomes(&forced), ["overwritten", "removed"]);
    assert_eq!(site.read("a").as_deref(), Some("0"));
    journal.redo(false).unwrap();
    assert_eq!(
        site.read("a").as_deref(),
        Some("somebody else"),
        "the change is lost"
    );
}

#[test]
fn a_file_that_is_right_already_is_no_conflict() {
    let site = Site::new();
    let mut journal = site.open();
    site.turn(&mut journal, "one", &[("a", "1"), ("b", "1")]);
    fs::remove_file(site.path("a")).unwrap();
    assert_eq!(
        outcomes(&journal.undo(false).unwrap()),
        ["unchanged", "removed"]
    );
}

#[test]
fn large_files_are_named_and_left() {
    let mut site = Site::new();
    site.limits.file_bytes = 10;
    site.write("large", "01234567890");
    let mut journal = site.open();
    let ended = site.turn(
        &mut journal,
        "one",
        &[("large", "x"), ("grown", "01234567890"), ("small", "x")],
    );
    let left: Vec<_> = ended.left.iter().map(|(path, _)| path.clone()).collect();
    assert_eq!(left, [site.path("large"), site.path("grown")]);
    let undone = journal.undo(false).unwrap();
    assert!(undone.applied);
    assert_eq!(outcomes(&undone), ["left", "left", "removed"]);
    assert!(
        undone.files[0]
            .reason
            .as_ref()
            .unwrap()
            .contains("11 bytes")
    );
    assert_eq!(site.read("large").as_deref(), Some("x"));
}

#[test]
fn the_oldest_turns_are_dropped_and_named() {
    let mut site = Site::new();
    site.limits.total_bytes = 100;
    site.limits.turns = 3;
    let mut journal = site.open();
    let text = |letter: &str| letter.repeat(30);
    assert_eq!(
        site.turn(&mut journal, "1", &[("a", &text("a"))]).dropped,
        [""; 0]
    );
    assert_eq!(
        site.turn(&mut journal, "2", &[("a", &text("b"))]).dropped,
        [""; 0]
    );
    assert_eq!(
        site.turn(&mut journal, "3", &[("a", &text("c"))]).dropped,
        [""; 0]
    );
    assert_eq!(
        site.turn(&mut journal, "4", &[("a", &text("d"))]).dropped,
        ["1", "2"]
    );
    assert_eq!((journal.undoable(), site.blobs()), (2, 3));
    site.turn(&mut journal, "5", &[("a", "1")]);
    let ended = site.turn(&mut journal, "6", &[("a", "2"), ("b", "2"), ("c", "2")]);
    assert_eq!(ended.dropped, ["3"], "more than three turns");
    // Of a turn that has no room, what has none is left.
    let ended = site.turn(
        &mut journal,
        "7",
        &[("b", &text("e")), ("c", &"f".repeat(80))],
    );
    assert_eq!(ended.left.len(), 1, "{ended:?}");
    drop(journal);
    let journal = site.open();
    assert!(journal.undoable() > 0);
    assert!(site.blobs() < 8);
}

#[cfg(unix)]
#[test]
fn modes_and_links_are_restored_as_they_were() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    let site = Site::new();
    site.write("script", "run");
    site.write("target", "0");
    let mode = |mode| fs::set_permissions(site.path("script"), fs::Permissions::from_mode(mode));
    mode(0o751).unwrap();
    symlink("target", site.path("link")).unwrap();
    let mut journal = site.open();
    journal.begin("one").unwrap();
    for name in ["script", "link", "new"] {
        journal.before_change(site.path(name)).unwrap();
    }
    mode(0o600).unwrap();
    // Who writes through a link changes its target, which is kept, too.
    site.write("link", "1");
    symlink("/nowhere", site.path("new")).unwrap();
    journal.end().unwrap();
    let undone = journal.undo(false).unwrap();
    assert_eq!(
        outcomes(&undone),
        ["restored", "restored", "removed"],
        "{undone:?}"
    );
    let metadata = fs::metadata(site.path("script")).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o777, 0o751);
    assert_eq!(
        fs::read_link(site.path("link")).unwrap(),
        PathBuf::from("target")
    );
    assert_eq!(site.read("target").as_deref(), Some("0"));
    journal.redo(false).unwrap();
    assert_eq!(
        fs::read_link(site.path("new")).unwrap(),
        PathBuf::from("/nowhere")
    );
    assert_eq!(site.read("target").as_deref(), Some("1"));
}

#[cfg(unix)]
#[test]
fn nothing_outside_is_kept_or_written() {
    use std::os::unix::fs::symlink;

    let site = Site::new();
    let outside = site.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "secret").unwrap();
    symlink(&outside, site.path("away")).unwrap();
    symlink(outside.join("secret"), site.path("secret")).unwrap();
    let mut journal = site.open();
    journal.begin("one").unwrap();
    for path in [
        "away/secret",
        "secret",
        "../outside/secret",
        "gone/../x",
        "..",
    ] {
        let kept = journal.before_change(site.path(path));
        assert!(
            matches!(kept, Err(JournalError::Path { .. })),
            "{path}: {kept:?}"
        );
    }
    assert!(journal.before_change("relative").is_err());
    assert_eq!(site.blobs(), 0);
    journal.before_change(site.path("dir/a")).unwrap();
    site.write("dir/a", "1");
    journal.end().unwrap();
    // A link takes the place of the directory.
    fs::rename(site.path("dir"), site.path("moved")).unwrap();
    symlink(&outside, site.path("dir")).unwrap();
    fs::write(outside.join("a"), "1").unwrap();
    let refused = journal.undo(false).unwrap();
    assert_eq!(
        (refused.applied, outcomes(&refused)),
        (false, vec!["failed".to_owned()])
    );
    assert_eq!(fs::read_to_string(outside.join("a")).unwrap(), "1");
    // Whoever accepts that goes on with the turns before it.
    assert!(journal.undo(true).unwrap().applied);
    assert_eq!(fs::read_to_string(outside.join("a")).unwrap(), "1");
}

#[cfg(unix)]
#[test]
fn one_file_has_one_place_however_it_is_spelled() {
    let site = Site::new();
    site.write("dir/a", "0");
    std::os::unix::fs::symlink("dir", site.path("link")).unwrap();
    let mut journal = site.open();
    site.turn(
        &mut journal,
        "one",
        &[("dir/a", "1"), ("link/a", "2"), ("dir/../dir/a", "3")],
    );
    assert_eq!(outcomes(&journal.undo(false).unwrap()), ["restored"]);
    assert_eq!(site.read("dir/a").as_deref(), Some("0"));
}

#[test]
fn a_journal_is_open_once() {
    let site = Site::new();
    let journal = site.open();
    let again = Journal::open(&site.journal_folder(), [site.path("")], site.limits.clone());
    assert!(matches!(again, Err(JournalError::InUse(_))), "{again:?}");
    drop(journal);
    site.open();
}

#[test]
fn damaged_contents_are_not_restored() {
    let site = Site::new();
    site.write("a", "0");
    let mut journal = site.open();
    site.turn(&mut journal, "one", &[("a", "1")]);
    for blob in fs::read_dir(site.journal_folder().join("blobs")).unwrap() {
        fs::write(blob.unwrap().path(), "x").unwrap();
    }
    let failed = journal.undo(false).unwrap();
    assert_eq!(
        (failed.applied, outcomes(&failed)),
        (false, vec!["failed".to_owned()])
    );
    assert_eq!(failed.files[0].outcome, RestorationOutcome::Failed);
    assert_eq!(site.read("a").as_deref(), Some("1"));
}

#[test]
fn the_journal_is_cut_anywhere_and_reads_whole_records() {
    let site = Site::new();
    site.write("a", "0");
    let mut journal = site.open();
    site.turn(&mut journal, "one", &[("a", "1"), ("b", "1")]);
    site.turn(&mut journal, "two", &[("a", "2")]);
    journal.undo(false).unwrap();
    drop(journal);
    let file = site.journal_folder().join("journal");
    let whole = fs::read(&file).unwrap();
    let records: Vec<_> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    for length in 0..=whole.len() {
        fs::write(&file, &whole[..length]).unwrap();
        let (log, read) = log::Log::open(file.clone()).unwrap();
        let mut rest = length;
        let expected = records.iter().take_while(|record| {
            let is_whole = record.len() <= rest;
            rest = rest.saturating_sub(record.len());
            is_whole
        });
        assert_eq!(read.len(), expected.count(), "at byte {length}");
        assert_eq!(log.records(), read.len());
    }
    // Garbage in the last record, as a failing disk writes it.
    let mut damaged = whole.clone();
    let at = whole.len() - 3;
    damaged[at] ^= 1;
    fs::write(&file, &damaged).unwrap();
    let journal = site.open();
    assert_eq!((journal.undoable(), journal.redoable()), (2, 0));
}

#[test]
fn records_give_the_turns_again() {
    let site = Site::new();
    let mut journal = site.open();
    for number in 0..6 {
        site.turn(
            &mut journal,
            &number.to_string(),
            &[("a", &number.to_string()), ("b", "1")],
        );
    }
    journal.undo(false).unwrap();
    site.write("a", "else");
    journal.undo(true).unwrap();
    let rebuilt = |turns: &turns::Turns| {
        let mut rebuilt = turns::Turns::default();
        turns
            .records()
            .into_iter()
            .for_each(|record| rebuilt.apply(record));
        rebuilt
    };
    assert_eq!(rebuilt(&journal.turns), journal.turns);
    journal.begin("open").unwrap();
    journal.before_change(site.path("c")).unwrap();
    assert_eq!(rebuilt(&journal.turns), journal.turns);
}
