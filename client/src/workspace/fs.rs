//! Reading and writing text files for an agent.
//!
//! Content is passed on exactly: no locale, no conversion of line endings, no byte
//! order mark added or removed. A file that is not UTF-8 is refused rather than
//! repaired, for what an agent reads it may write back.
//!
//! Spec: <https://agentclientprotocol.com/protocol/v1/file-system>

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;

use acp_sdk::v1::{
    ReadTextFileRequest, ReadTextFileResponse, WriteTextFileRequest, WriteTextFileResponse,
};
use acp_sdk::{HandlerError, HandlerResult};

use super::roots::{Roots, unusable};

/// The most text that one answer carries, in bytes. In JSON, quotes and line endings take
/// two bytes each, and peers commonly accept messages of up to 32 MiB.
pub(crate) const MOST_TEXT: u64 = 12 << 20;

/// Reads a file or a part of it. Blocks.
///
/// `line` counts from 1 (0 is taken for 1); lines end with `\n`, which belongs to them.
/// Lines beyond the end of the file are no error: the content is empty then.
///
/// # Errors
///
/// `-32002` if there is no such file; `-32602` if the path is refused or the file is no
/// text; `-32603` if it cannot be read or its text is too long for one answer.
pub(crate) fn read(
    roots: &Roots,
    request: &ReadTextFileRequest,
) -> HandlerResult<ReadTextFileResponse> {
    let path = &request.path;
    let resolved = roots.existing(path, "/path")?;
    let file = open(&resolved, path)?;
    let skip = request.line.unwrap_or(1).saturating_sub(1);
    let bytes = read_lines(file, skip, request.limit)
        .map_err(|error| HandlerError::internal(format!("cannot read {path}: {error}")))?;
    if bytes.len() as u64 > MOST_TEXT {
        let reason = format!(
            "{path} has more than {MOST_TEXT} bytes to read: ask for a part of it by `line` and `limit`"
        );
        return Err(HandlerError::internal(reason));
    }
    match String::from_utf8(bytes) {
        Ok(content) => Ok(ReadTextFileResponse::new(content)),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let reason = format!("{path} is not UTF-8 text (byte {at} of what was asked for)");
            Err(HandlerError::invalid_params("/path", reason))
        }
    }
}

/// Writes a file as a whole: whoever reads it meanwhile sees the old content or the new.
/// Blocks. Missing directories are made, permissions of an existing file are kept.
///
/// # Errors
///
/// `-32602` if the path is refused; `-32603` if the file cannot be written.
pub(crate) fn write(
    roots: &Roots,
    request: &WriteTextFileRequest,
) -> HandlerResult<WriteTextFileResponse> {
    let path = &request.path;
    let resolved = roots.writable(path, "/path")?;
    if resolved.exists() {
        let metadata = fs::metadata(&resolved);
        let metadata = metadata.map_err(|error| unusable(path, "/path", &error))?;
        regular(&metadata, path)?;
    }
    replace(&resolved, request.content.as_bytes())
        .map_err(|error| HandlerError::internal(format!("cannot write {path}: {error}")))?;
    Ok(WriteTextFileResponse::new())
}

/// Opens a regular file. A pipe or a device could block, or do something when it is opened.
fn open(resolved: &Path, path: &str) -> HandlerResult<File> {
    let unusable = |error| unusable(path, "/path", &error);
    regular(&fs::metadata(resolved).map_err(unusable)?, path)?;
    let file = open_now(resolved).map_err(unusable)?;
    // Something else may have taken the place of the file since.
    regular(&file.metadata().map_err(unusable)?, path)?;
    Ok(file)
}

/// Opens a file for reading; a pipe without waiting for somebody who writes to it.
fn open_now(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, nonblock());
    options.open(path)
}

#[cfg(unix)]
fn nonblock() -> i32 {
    // All flags are below 2^31.
    i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default()
}

/// Refuses what is not a regular file: a directory has no text.
fn regular(metadata: &fs::Metadata, path: &str) -> HandlerResult<()> {
    if metadata.is_file() {
        return Ok(());
    }
    let what = if metadata.is_dir() {
        "a directory"
    } else {
        "not a regular file"
    };
    Err(HandlerError::invalid_params(
        "/path",
        format!("{path} is {what}"),
    ))
}

/// The bytes of some lines, at most one more than [`MOST_TEXT`].
fn read_lines(file: File, skip: u32, limit: Option<u32>) -> io::Result<Vec<u8>> {
    let mut reader = BufReader::with_capacity(64 << 10, file);
    for _ in 0..skip {
        if reader.skip_until(b'\n')? == 0 {
            return Ok(Vec::new());
        }
    }
    let mut bytes = Vec::new();
    let mut reader = reader.take(MOST_TEXT + 1);
    match limit {
        None => {
            reader.read_to_end(&mut bytes)?;
        }
        Some(limit) => {
            for _ in 0..limit {
                if reader.read_until(b'\n', &mut bytes)? == 0 {
                    break;
                }
            }
        }
    }
    Ok(bytes)
}

fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let dir = path
        .parent()
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    fs::create_dir_all(dir)?;
    let before = match fs::metadata(path) {
        Ok(metadata) => Some(metadata.permissions()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if before.as_ref().is_some_and(fs::Permissions::readonly) {
        // Replacing needs rights on the directory only, but the mark is meant.
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "the file is marked read-only",
        ));
    }
    let mut new = temporary_beside(dir, before)?;
    new.write_all(content)?;
    new.as_file().sync_all()?;
    new.persist(path).map_err(|error| error.error)?;
    // The rename itself; where a directory cannot be fsynced, the system does it in its own time.
    #[cfg(unix)]
    if let Ok(dir) = File::open(dir) {
        let _ = dir.sync_all();
    }
    Ok(())
}

/// Creates an empty file with these permissions, or with those of any new file.
fn temporary_beside(
    dir: &Path,
    permissions: Option<fs::Permissions>,
) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".acp-");
    // Otherwise the private mode of temporary files: who may not read the old content must not read
    // the new one at any time.
    #[cfg(unix)]
    if permissions.is_none() {
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    }
    let new = builder.tempfile_in(dir)?;
    if let Some(permissions) = permissions {
        new.as_file().set_permissions(permissions)?;
    }
    Ok(new)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
    use std::path::PathBuf;

    use acp_sdk::v1::ErrorCode;

    use super::*;

    struct Case {
        dir: tempfile::TempDir,
        roots: Roots,
    }

    impl Case {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let roots = Roots::new(dir.path()).unwrap();
            Self { dir, roots }
        }

        fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
            let path = self.dir.path().join(name);
            fs::write(&path, content).unwrap();
            path
        }

        fn request(&self, name: &str) -> ReadTextFileRequest {
            ReadTextFileRequest::new("s", self.dir.path().join(name).to_str().unwrap())
        }

        fn read(&self, name: &str) -> HandlerResult<String> {
            read(&self.roots, &self.request(name)).map(|response| response.content)
        }

        fn lines(&self, name: &str, line: u32, limit: Option<u32>) -> String {
            let mut request = self.request(name).with_line(line);
            request.limit = limit;
            read(&self.roots, &request).unwrap().content
        }

        fn write(&self, name: &str, content: &str) -> HandlerResult<()> {
            let path = self.dir.path().join(name);
            let request = WriteTextFileRequest::new("s", path.to_str().unwrap(), content);
            write(&self.roots, &request).map(drop)
        }
    }

    #[track_caller]
    fn fails(result: HandlerResult<impl std::fmt::Debug>, code: ErrorCode, words: &str) {
        let error = result.unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }

    #[test]
    fn content_is_passed_on_exactly() {
        let case = Case::new();
        for content in ["", "\n", "no end", "\u{feff}a\r\nb\rc\n\n", "ü\u{2028}\0\n"] {
            case.file("file", content);
            assert_eq!(case.read("file").unwrap(), content);
            case.write("copy", content).unwrap();
            assert_eq!(
                fs::read(case.dir.path().join("copy")).unwrap(),
                content.as_bytes()
            );
        }
    }

    #[test]
    fn lines_count_from_one_and_keep_their_endings() {
        let case = Case::new();
        case.file("file", "one\ntwo\r\n\nfour");
        assert_eq!(case.lines("file", 1, Some(1)), "one\n");
        assert_eq!(case.lines("file", 2, Some(1)), "two\r\n");
        assert_eq!(case.lines("file", 2, Some(2)), "two\r\n\n");
        assert_eq!(case.lines("file", 3, None), "\nfour");
        assert_eq!(case.lines("file", 4, Some(9)), "four");
        assert_eq!(case.lines("file", 0, Some(1)), "one\n");
        assert_eq!(case.lines("file", 5, None), "");
        assert_eq!(case.lines("file", u32::MAX, Some(u32::MAX)), "");
        assert_eq!(case.lines("file", 1, Some(0)), "");
    }

    #[test]
    fn a_part_of_a_file_that_is_too_long_can_be_read() {
        let case = Case::new();
        let line = "x".repeat(1023) + "\n";
        case.file("long", line.repeat(13 << 10));
        fails(case.read("long"), ErrorCode::INTERNAL_ERROR, "`limit`");
        assert_eq!(case.lines("long", 13 << 10, None), line);
        assert_eq!(case.lines("long", 5, Some(2)), line.repeat(2));
    }

    #[test]
    fn what_is_no_text_file_is_refused() {
        let case = Case::new();
        case.file("binary", b"abc\xff");
        fails(case.read("binary"), ErrorCode::INVALID_PARAMS, "byte 3");
        fails(case.read("."), ErrorCode::INVALID_PARAMS, "is a directory");
        fails(
            case.read("missing"),
            ErrorCode::RESOURCE_NOT_FOUND,
            "missing",
        );
        symlink("/dev/null", case.dir.path().join("device")).unwrap();
        fails(case.read("device"), ErrorCode::INVALID_PARAMS, "outside");
        let pipe = case.dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        fails(
            case.read("pipe"),
            ErrorCode::INVALID_PARAMS,
            "not a regular file",
        );
        fails(
            case.write("pipe", ""),
            ErrorCode::INVALID_PARAMS,
            "not a regular file",
        );
    }

    #[test]
    fn files_and_directories_are_made() {
        let case = Case::new();
        case.write("a/b/new", "text").unwrap();
        assert_eq!(case.read("a/b/new").unwrap(), "text");
        // The same mode as of any file that this process makes.
        let ordinary = case.file("ordinary", "").metadata().unwrap().mode();
        let made = case.dir.path().join("a/b/new").metadata().unwrap().mode();
        assert_eq!(made, ordinary);
        fails(
            case.write("a/b", ""),
            ErrorCode::INVALID_PARAMS,
            "is a directory",
        );
        fails(
            case.write("ordinary/c", ""),
            ErrorCode::RESOURCE_NOT_FOUND,
            "ordinary",
        );
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_keeps_its_mode() {
        let case = Case::new();
        let path = case.file("script", "old");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        let mut reader = File::open(&path).unwrap();
        case.write("script", "new").unwrap();
        let mut seen = String::new();
        reader.read_to_string(&mut seen).unwrap();
        assert_eq!(seen, "old", "a reader of the old file keeps it");
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o750);
        let names = fs::read_dir(case.dir.path()).unwrap().count();
        assert_eq!(names, 1, "no temporary file is left");
    }

    #[test]
    fn new_content_is_never_readable_by_more_people_than_the_old() {
        let case = Case::new();
        let path = case.file("private", "old");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let before = path.metadata().unwrap().permissions();
        let new = temporary_beside(case.dir.path(), Some(before)).unwrap();
        let mode = new.as_file().metadata().unwrap().mode();
        assert_eq!(mode & 0o777, 0o600, "before anything is written");
    }

    #[test]
    fn a_pipe_that_takes_the_place_of_a_file_does_not_block() {
        let case = Case::new();
        let pipe = case.dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let (done, is_done) = std::sync::mpsc::channel();
        let swapped = pipe.clone();
        std::thread::spawn(move || {
            let file = open_now(&swapped).unwrap();
            done.send(regular(&file.metadata().unwrap(), "pipe").is_err())
        });
        let refused = is_done.recv_timeout(std::time::Duration::from_secs(30));
        assert!(refused.expect("opening the pipe blocks"));
    }

    #[test]
    fn a_file_behind_a_link_is_written_and_the_link_stays() {
        let case = Case::new();
        case.file("real", "old");
        symlink("real", case.dir.path().join("link")).unwrap();
        case.write("link", "new").unwrap();
        assert!(case.dir.path().join("link").is_symlink());
        assert_eq!(case.read("real").unwrap(), "new");
    }

    #[test]
    fn a_file_that_is_marked_read_only_is_left_alone() {
        let case = Case::new();
        let path = case.file("file", "old");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
        fails(
            case.write("file", "new"),
            ErrorCode::INTERNAL_ERROR,
            "read-only",
        );
        assert_eq!(case.read("file").unwrap(), "old");
    }
}
