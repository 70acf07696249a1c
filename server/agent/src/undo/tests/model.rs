//! Random edits, undos, redos and ends of the process, against a model in memory.

use std::collections::BTreeMap;

use super::*;

const NAMES: [&str; 6] = ["a", "b", "dir/c", "dir/d", "dir/deep/e", "f"];

/// Numbers that look random, the same for a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap()
    }

    fn name(&mut self) -> &'static str {
        NAMES[self.below(NAMES.len())]
    }
}

/// What a path is: nothing, a file with its mode, or a link.
type Files = BTreeMap<&'static str, (String, u32)>;

fn files(site: &Site) -> Files {
    let mut files = Files::new();
    for name in NAMES {
        let path = site.path(name);
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            continue;
        };
        let content = match metadata.is_symlink() {
            true => format!("-> {}", fs::read_link(&path).unwrap().display()),
            false => fs::read_to_string(&path).unwrap(),
        };
        #[cfg(unix)]
        let mode = match metadata.is_symlink() {
            true => 0,
            false => std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777,
        };
        #[cfg(not(unix))]
        let mode = 0;
        files.insert(name, (content, mode));
    }
    files
}

/// Writes, removes, links or changes the mode.
fn edit(site: &Site, name: &str, random: &mut Random) {
    let path = site.path(name);
    match random.below(8) {
        0 | 1 => drop(fs::remove_file(&path)),
        #[cfg(unix)]
        2 => {
            let _ = fs::remove_file(&path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink("/nowhere", &path).unwrap();
        }
        #[cfg(unix)]
        3 if path.is_file() => {
            let mode = [0o600, 0o644, 0o755][random.below(3)];
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            fs::set_permissions(&path, mode).unwrap();
        }
        _ => {
            if path.is_symlink() {
                fs::remove_file(&path).unwrap();
            }
            site.write(name, &random.below(5).to_string());
        }
    }
}

/// The files before and after each turn that changed any.
#[derive(Default)]
struct Model {
    turns: Vec<(Files, Files)>,
    done: usize,
}

impl Model {
    fn end(&mut self, before: Files, after: Files) {
        if before != after {
            self.turns.push((before, after));
            self.done += 1;
        }
    }

    /// Returns what the files are after a move.
    fn step(&mut self, direction: Direction) -> Option<Files> {
        match direction {
            Direction::Undo => {
                self.done = self.done.checked_sub(1)?;
                Some(self.turns[self.done].0.clone())
            }
            Direction::Redo => {
                let (_, after) = self.turns.get(self.done)?;
                self.done += 1;
                Some(after.clone())
            }
        }
    }

    #[track_caller]
    fn agrees(&self, journal: &Journal, seed: u64) {
        let undone = self.turns.len() - self.done;
        let counts = (journal.undoable(), journal.redoable());
        assert_eq!(counts, (self.done, undone), "seed {seed}");
    }
}

/// Runs random steps. With `crashes`, the journal is dropped at random points, and the record that was
/// being written is cut.
fn run(seed: u64, steps: usize, crashes: bool) {
    let mut random = Random(seed);
    let mut site = Site::new();
    site.limits.turns = usize::MAX;
    let mut journal = site.open();
    let mut model = Model::default();
    for number in 0..steps {
        match random.below(10) {
            0..=5 => {
                let before = files(&site);
                journal.begin(&number.to_string()).unwrap();
                model.turns.truncate(model.done);
                for _ in 0..random.below(5) {
                    let name = random.name();
                    let kept = whole_records(&site);
                    // A link to nowhere is kept, but leads outside.
                    let _ = journal.before_change(site.path(name));
                    if crashes && random.below(20) == 0 {
                        // The change was not made, for its record is not whole.
                        drop(journal);
                        cut(&site, kept, &mut random);
                        journal = site.open();
                        break;
                    }
                    edit(&site, name, &mut random);
                }
                let kept = whole_records(&site);
                match journal.end() {
                    Ok(_) if crashes && random.below(20) == 0 => {
                        drop(journal);
                        cut(&site, kept, &mut random);
                        journal = site.open();
                    }
                    Ok(_) | Err(JournalError::NoTurn) => {}
                    Err(error) => panic!("seed {seed}: {error}"),
                }
                model.end(before, files(&site));
            }
            step => {
                let direction = match step {
                    6..=7 => Direction::Undo,
                    _ => Direction::Redo,
                };
                let kept = whole_records(&site);
                let restored = journal.restore(direction, false);
                if restored.is_ok() && crashes && random.below(5) == 0 {
                    drop(journal);
                    cut(&site, kept, &mut random);
                    journal = site.open();
                    // The files are right already.
                    let again = journal.restore(direction, false).unwrap();
                    assert!(again.applied, "seed {seed}: {again:?}");
                }
                match (restored, model.step(direction)) {
                    (Ok(restored), Some(expected)) => {
                        assert!(restored.applied, "seed {seed}: {restored:?}");
                        assert_eq!(files(&site), expected, "seed {seed}");
                    }
                    (Err(JournalError::Nothing(_)), None) => {}
                    (restored, expected) => {
                        panic!("seed {seed}: {restored:?} instead of {expected:?}")
                    }
                }
            }
        }
        if crashes && random.below(15) == 0 {
            drop(journal);
            journal = site.open();
        }
        model.agrees(&journal, seed);
    }
}

fn whole_records(site: &Site) -> u64 {
    fs::metadata(site.journal_folder().join("journal"))
        .unwrap()
        .len()
}

/// Cuts the last record somewhere, as the end of the process does while it is written.
fn cut(site: &Site, kept: u64, random: &mut Random) {
    let path = site.journal_folder().join("journal");
    let length = fs::metadata(&path).unwrap().len();
    // A journal that was written anew has no such record.
    if length > kept {
        let rest = usize::try_from(length - kept).unwrap();
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(kept + random.below(rest) as u64).unwrap();
    }
}

#[test]
fn a_thousand_random_edits_undos_and_redos_agree_with_the_model() {
    run(0x5eed, 1000, false);
}

#[test]
fn a_process_that_ends_between_any_two_bytes_loses_nothing_else() {
    for seed in 1..=4 {
        run(seed, 250, true);
    }
}
