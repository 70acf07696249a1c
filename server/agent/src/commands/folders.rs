//! Folders with the files of commands.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use etcetera::BaseStrategy as _;

use super::Problem;
use super::file::Definition;
use crate::confined::{open_regular, read_up_to};

/// Names in all folders together that are read.
const MOST_NAMES: usize = 512;

/// Bytes of a file.
const LONGEST_FILE: u64 = 64 << 10;

/// Folders inside of a folder of commands, one in the other.
const DEEPEST: usize = 4;

/// The folders of a project, the first one wins.
const IN_PROJECT: [&str; 3] = [".acp/commands", ".opencode/command", ".opencode/commands"];

/// Returns the folders with the commands of the user, the first one wins: `acp/commands`,
/// `opencode/command` and `opencode/commands` in the folder of configuration (`$XDG_CONFIG_HOME`
/// or `~/.config` on Unix), then `.acp/commands` and `.opencode/command` in the home folder. Empty
/// without a home folder.
#[must_use]
pub fn user_folders() -> Vec<PathBuf> {
    let Ok(folders) = etcetera::choose_base_strategy() else {
        return Vec::new();
    };
    let config = folders.config_dir();
    let in_config = ["acp/commands", "opencode/command", "opencode/commands"];
    let in_config = in_config.into_iter().map(|folder| config.join(folder));
    let in_home = IN_PROJECT
        .into_iter()
        .map(|folder| folders.home_dir().join(folder));
    in_config.chain(in_home).collect()
}

/// A file with the command that it defines.
pub(super) struct Found {
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) definition: Definition,
}

/// One state of the files, to see whether they have changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fingerprint(Vec<(PathBuf, Option<SystemTime>, u64)>);

/// A folder of commands.
pub(super) enum Folder<'a> {
    /// Of the project with this root: no link leads out of the project.
    Project(&'a Path, &'static str),
    /// Of the user, who may keep it elsewhere by a link.
    User(&'a Path),
}

impl<'a> Folder<'a> {
    pub(super) fn of_project(root: &'a Path) -> impl Iterator<Item = Self> {
        IN_PROJECT
            .into_iter()
            .map(move |below| Self::Project(root, below))
    }

    fn path(&self) -> PathBuf {
        match self {
            Self::Project(root, below) => root.join(below),
            Self::User(path) => path.to_path_buf(),
        }
    }

    fn open(&self) -> io::Result<Dir> {
        match self {
            Self::Project(root, below) => {
                Dir::open_ambient_dir(root, ambient_authority())?.open_dir(below)
            }
            Self::User(path) => Dir::open_ambient_dir(path, ambient_authority()),
        }
    }
}

/// Reads folders, within one bound for all.
pub(super) struct Reader {
    names: usize,
    pub(super) problems: Vec<Problem>,
}

impl Reader {
    pub(super) fn new() -> Self {
        let problems = Vec::new();
        Self { names: 0, problems }
    }

    /// Reads the commands of a folder, which need not exist.
    pub(super) fn read(&mut self, folder: &Folder<'_>) -> Vec<Found> {
        let mut found = Vec::new();
        self.visit(folder, &mut |reader, file| {
            let path = file.path.clone();
            match file.read() {
                Ok(file) => found.push(file),
                Err(reason) => reader.problem(path, reason),
            }
        });
        found
    }

    /// Adds the state of the files of a folder.
    pub(super) fn fingerprint(&mut self, folder: &Folder<'_>, state: &mut Fingerprint) {
        self.visit(folder, &mut |_, file| {
            let metadata = file.dir.metadata(&file.name).ok();
            let modified = metadata.as_ref().and_then(|data| data.modified().ok());
            let modified = modified.map(cap_std::time::SystemTime::into_std);
            let length = metadata.map_or(0, |data| data.len());
            state.0.push((file.path.clone(), modified, length));
        });
    }

    fn visit(&mut self, folder: &Folder<'_>, with: &mut dyn FnMut(&mut Self, &File<'_>)) {
        match folder.open() {
            Ok(dir) => self.visit_dir(&dir, &folder.path(), "", 0, with),
            Err(error) if is_absent(&error) => {}
            Err(error) => self.problem(folder.path(), format!("it cannot be opened: {error}")),
        }
    }

    fn visit_dir(
        &mut self,
        dir: &Dir,
        path: &Path,
        prefix: &str,
        depth: usize,
        with: &mut dyn FnMut(&mut Self, &File<'_>),
    ) {
        for name in self.names_in(dir, path) {
            let path = path.join(&name);
            // Through links, as far as these stay inside.
            let metadata = match dir.metadata(&name) {
                Ok(metadata) => metadata,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    self.problem(path, format!("it cannot be used: {error}"));
                    continue;
                }
            };
            if metadata.is_dir() {
                match dir.open_dir(&name) {
                    Ok(_) if depth == DEEPEST => {
                        let reason = format!("more than {DEEPEST} folders in each other");
                        self.problem(path, reason);
                    }
                    Ok(inner) => {
                        let prefix = format!("{prefix}{name}:");
                        self.visit_dir(&inner, &path, &prefix, depth + 1, with);
                    }
                    Err(error) => self.problem(path, format!("it cannot be opened: {error}")),
                }
            } else if let Some(stem) = name.strip_suffix(".md") {
                let command = format!("{prefix}{stem}");
                match is_name(&command) {
                    true => with(
                        self,
                        &File {
                            dir,
                            name,
                            path,
                            command,
                        },
                    ),
                    false => {
                        let reason = format!(
                            "{command:?} is no name of a command: it has blanks or control characters"
                        );
                        self.problem(path, reason);
                    }
                }
            }
        }
    }

    /// Returns the names in a folder in order, as many as may be.
    fn names_in(&mut self, dir: &Dir, path: &Path) -> Vec<String> {
        let mut names = Vec::new();
        let entries = match dir.entries() {
            Ok(entries) => entries,
            Err(error) => {
                self.problem(path.to_owned(), format!("it cannot be listed: {error}"));
                return names;
            }
        };
        for entry in entries {
            if self.names == MOST_NAMES {
                let reason = format!("more than {MOST_NAMES} files; the others are left out");
                self.problem(path.to_owned(), reason);
                break;
            }
            self.names += 1;
            // Neither those that end in an error nor those that are no text can be commands.
            if let Some(name) = entry
                .ok()
                .and_then(|entry| entry.file_name().into_string().ok())
            {
                names.push(name);
            }
        }
        names.sort();
        names
    }

    fn problem(&mut self, path: PathBuf, reason: String) {
        self.problems.push(Problem { path, reason });
    }
}

struct File<'a> {
    dir: &'a Dir,
    name: String,
    path: PathBuf,
    command: String,
}

impl File<'_> {
    fn read(&self) -> Result<Found, String> {
        let cannot = |error: io::Error| format!("it cannot be read: {error}");
        let file = open_regular(self.dir, Path::new(&self.name)).map_err(cannot)?;
        let bytes = read_up_to(file, LONGEST_FILE).map_err(cannot)?;
        if bytes.len() as u64 > LONGEST_FILE {
            return Err(format!("it has more than {LONGEST_FILE} bytes"));
        }
        let text = String::from_utf8(bytes).map_err(|_| "it is no UTF-8 text".to_owned())?;
        Ok(Found {
            name: self.command.clone(),
            path: self.path.clone(),
            definition: Definition::parse(&text)?,
        })
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// A name ends at the first blank of a prompt.
fn is_name(name: &str) -> bool {
    let within = |part: &str| !part.is_empty() && !part.starts_with('/');
    name.split(':').all(within) && !name.contains(|c: char| c.is_whitespace() || c.is_control())
}
