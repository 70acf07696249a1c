//! Directories inside and outside, what takes turns in them, and whether the outside has changed.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{RenameFlags, renameat_with};

/// What every file outside contains.
pub(crate) const SECRET: &str = "the secret of the outside";

/// What all files of a directory that is inside contain.
const INSIDE: &str = "inside";

/// `in` and `extra` are roots, the first also by the link `alias`. `out` and `inside` are neither,
/// nor is `stage`, where the things wait that take turns with others.
pub(crate) struct Playground {
    dir: tempfile::TempDir,
    /// The directories of what takes turns, by their first names: while one is elsewhere, its name
    /// may lead outside, where the test itself must change nothing.
    held: HashMap<&'static str, File>,
}

/// Something that takes turns with something else.
pub(crate) enum Swap {
    /// Two that exist exchange their names.
    Exchange(&'static str, &'static str),
    /// One goes elsewhere and comes back.
    Away(&'static str, &'static str),
}

impl Playground {
    pub(crate) fn new() -> Self {
        // Where syncing costs nothing: the disk is not what is tested.
        let memory = Path::new("/dev/shm");
        let dir = match memory.is_dir() {
            true => tempfile::tempdir_in(memory),
            false => tempfile::tempdir(),
        };
        let mut playground = Self {
            dir: dir.unwrap(),
            held: HashMap::new(),
        };
        playground.fill();
        for name in ["", "in", "in/a", "extra", "extra/a/b", "stage"] {
            let dir = File::open(playground.path(name)).unwrap();
            playground.held.insert(name, dir);
        }
        playground
    }

    fn fill(&self) {
        for dir in [
            "in/a/b/c",
            "in/sub/sub",
            "in/deep",
            "in/away/sub",
            "extra/a/b",
        ] {
            fs::create_dir_all(self.path(dir)).unwrap();
        }
        for dir in [
            "out/a/b/c",
            "out/sub/sub",
            "out/in",
            "inside",
            "stage",
            "doors",
        ] {
            fs::create_dir_all(self.path(dir)).unwrap();
        }
        for file in [
            "in/file",
            "in/a/file",
            "in/a/b/file",
            "in/sub/file",
            "in/sub/secret",
            "in/swap",
            "in/away/file",
            "in/away/sub/secret",
            "extra/file",
            "extra/a/b/file",
            "extra/swap",
        ] {
            fs::write(self.path(file), INSIDE).unwrap();
        }
        for file in [
            "out/secret",
            "out/file",
            "out/new",
            "out/a/file",
            "out/a/b/file",
            "out/a/b/c/secret",
            "out/sub/file",
            "out/sub/secret",
            "out/sub/sub/secret",
            "out/in/secret",
            "out/swap",
            "inside/secret",
            "inside/file",
            "secret",
        ] {
            fs::write(self.path(file), SECRET).unwrap();
        }
        for (link, target) in [
            // Out of the roots, by relative and absolute targets.
            ("in/out", "../out"),
            ("in/link", "../out/secret"),
            ("in/up", ".."),
            ("in/a/b/up", "../../../out"),
            ("in/a/secret", "../../out/secret"),
            ("extra/up", "../in/up/out"),
            ("stage/relative", "../out"),
            // Around in them.
            ("in/round", "a/../sub"),
            ("in/sub/up", ".."),
            ("in/loop", "loop"),
            ("in/a/link", "b/../../sub/secret"),
            ("extra/in", "../in"),
            // To nothing.
            ("in/dangling", "../out/created"),
            ("in/sub/dangling", "nowhere"),
        ] {
            symlink(target, self.path(link)).unwrap();
        }
        for (link, target) in [
            ("in/abs", "out"),
            ("in/alias", "in/sub"),
            ("in/across", "extra/a"),
            ("extra/link", "in/link"),
            ("extra/abs", "out/sub"),
            ("stage/dir", "out/sub"),
            ("stage/file", "out/secret"),
            ("stage/root", "out"),
            ("stage/extra", "out"),
            ("stage/a", "out/a"),
            ("stage/new", "out/new"),
            ("alias", "in"),
            ("door", "in/a"),
            ("doors/in", "in"),
        ] {
            symlink(self.path(target), self.path(link)).unwrap();
        }
        for pipe in ["in/pipe", "stage/pipe"] {
            let made = std::process::Command::new("mkfifo")
                .arg(self.path(pipe))
                .status();
            assert!(made.unwrap().success());
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The directories as the client names them.
    pub(crate) fn roots(&self) -> [PathBuf; 2] {
        [self.path("alias"), self.path("extra")]
    }

    /// What takes turns: each list in a thread of its own.
    pub(crate) fn swaps(&self) -> [&'static [Swap]; 3] {
        use Swap::{Away, Exchange};

        [
            &[
                Exchange("in/sub", "stage/dir"),
                Exchange("in/a/b", "in/abs"),
                Exchange("in/a", "stage/a"),
                Exchange("in/sub", "stage/dir"),
                Exchange("in/a", "stage/a"),
                Exchange("in/a/b", "in/abs"),
            ],
            &[
                Exchange("in/swap", "stage/file"),
                Exchange("in/file", "stage/pipe"),
                Away("stage/new", "in/new"),
                Exchange("in/swap", "stage/file"),
                Exchange("in/file", "stage/pipe"),
                Away("in/away", "extra/away"),
                Exchange("extra/swap", "extra/a/b/file"),
            ],
            &[
                // The roots themselves.
                Exchange("in", "stage/root"),
                Exchange("extra", "stage/extra"),
                Away("in", "moved"),
                Exchange("in", "stage/root"),
                Exchange("extra", "stage/extra"),
            ],
        ]
    }

    /// A swap may fail, as others move what it names.
    pub(crate) fn swap(&self, swap: &Swap) {
        let at = |name: &'static str| match name.rsplit_once('/') {
            Some((dir, name)) => (&self.held[dir], name),
            None => (&self.held[""], name),
        };
        let rename = |one, other, flags| {
            let ((from, one), (to, other)) = (at(one), at(other));
            let _ = renameat_with(from, one, to, other, flags);
        };
        match *swap {
            Swap::Exchange(one, other) => rename(one, other, RenameFlags::EXCHANGE),
            Swap::Away(one, other) => {
                rename(one, other, RenameFlags::NOREPLACE);
                std::thread::yield_now();
                rename(other, one, RenameFlags::NOREPLACE);
            }
        }
    }

    pub(crate) fn has_no_temporary_files(&self) {
        let mut all = Vec::new();
        list(self.dir.path(), &mut all);
        for (path, _) in all {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            assert!(
                !name.starts_with(".acp-"),
                "{} is left over",
                path.display()
            );
        }
    }
}

/// What must not change.
pub(crate) struct Outside {
    dirs: Vec<PathBuf>,
    before: Vec<Entry>,
    /// The directories as the system numbers them.
    numbers: Vec<(u64, u64)>,
    /// The roots without links.
    pub(crate) roots: Vec<PathBuf>,
}

#[derive(Debug, PartialEq)]
struct Entry {
    path: PathBuf,
    number: u64,
    mode: u32,
    owner: u32,
    modified: (i64, i64),
    changed: (i64, i64),
    content: Vec<u8>,
}

impl Outside {
    pub(crate) fn new(playground: &Playground) -> Self {
        let dirs = vec![playground.path("out"), playground.path("inside")];
        let mut all = Vec::new();
        dirs.iter().for_each(|dir| list(dir, &mut all));
        let mut numbers: Vec<_> = all.iter().map(|(_, metadata)| number(metadata)).collect();
        for dir in ["", "doors", "stage", "/", "/proc/self", "/tmp"] {
            let metadata = fs::metadata(playground.path(dir));
            numbers.extend(metadata.iter().map(number));
        }
        let roots = playground.roots().map(|root| root.canonicalize().unwrap());
        Self {
            before: entries(&dirs),
            dirs,
            numbers,
            roots: roots.to_vec(),
        }
    }

    #[track_caller]
    pub(crate) fn is_untouched(&self, when: &str) {
        let now = entries(&self.dirs);
        for (before, now) in self.before.iter().zip(&now) {
            assert_eq!(before, now, "{when}");
        }
        assert_eq!(self.before.len(), now.len(), "{when}: {now:?}");
    }

    #[track_caller]
    pub(crate) fn does_not_contain(&self, directory: &Metadata, path: &str) {
        let outside = self.numbers.contains(&number(directory));
        assert!(!outside, "a command starts outside in {path:?}");
    }
}

fn number(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

fn entries(dirs: &[PathBuf]) -> Vec<Entry> {
    let mut all = Vec::new();
    dirs.iter().for_each(|dir| list(dir, &mut all));
    let entry = |(path, metadata): (PathBuf, Metadata)| Entry {
        number: metadata.ino(),
        mode: metadata.mode(),
        owner: metadata.uid(),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
        content: match metadata.is_file() {
            true => fs::read(&path).unwrap(),
            false => Vec::new(),
        },
        path,
    };
    all.into_iter().map(entry).collect()
}

/// Lists a directory and all that is below it, in the order of names.
fn list(dir: &Path, all: &mut Vec<(PathBuf, Metadata)>) {
    all.push((dir.to_owned(), fs::symlink_metadata(dir).unwrap()));
    let names = fs::read_dir(dir).unwrap();
    let mut names: Vec<_> = names.map(|name| name.unwrap().path()).collect();
    names.sort();
    for path in names {
        let metadata = fs::symlink_metadata(&path).unwrap();
        match metadata.is_dir() {
            true => list(&path, all),
            false => all.push((path, metadata)),
        }
    }
}
