//! A file of records that survives the end of its process at any byte.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::JournalError;
use super::blobs::{hash_of, private_file};
use super::turns::Record;

/// Digits of the checksum before each record.
const CHECKSUM: usize = 16;

/// Lines of a checksum, a blank and JSON. The first one that does not fit its checksum ends the
/// file: it was being written when the process ended.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    file: File,
    /// Bytes of whole records.
    length: u64,
    records: usize,
    /// Set when the rest of a record could not be removed: nothing may follow it.
    broken: bool,
}

impl Log {
    /// Opens a file, and returns its whole records.
    pub(super) fn open(path: PathBuf) -> Result<(Self, Vec<Record>), JournalError> {
        let failed = |doing, error| failed(doing, &path, error);
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&path).map_err(|error| failed("open", error))?;
        let mut text = Vec::new();
        let read = file.read_to_end(&mut text);
        read.map_err(|error| failed("read", error))?;
        let mut records = Vec::new();
        let mut length = 0;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let Some(record) = read_line(line) else {
                break;
            };
            records.push(record);
            length += line.len() as u64;
        }
        if length < text.len() as u64 {
            let cut = file.set_len(length);
            cut.map_err(|error| failed("repair", error))?;
        }
        let log = Self {
            path,
            file,
            length,
            records: records.len(),
            broken: false,
        };
        Ok((log, records))
    }

    /// Adds a record. On failure the file is as before.
    pub(super) fn append(&mut self, record: &Record) -> Result<(), JournalError> {
        if self.broken {
            let error = io::Error::other("an earlier write has failed; open the journal again");
            return Err(failed("write", &self.path, error));
        }
        let line = line(record).map_err(|error| failed("write", &self.path, error))?;
        if let Err(error) = self.file.write_all(&line) {
            self.broken = self.file.set_len(self.length).is_err();
            return Err(failed("write", &self.path, error));
        }
        self.length += line.len() as u64;
        self.records += 1;
        Ok(())
    }

    /// Makes the records survive the end of the system.
    pub(super) fn sync(&self) -> Result<(), JournalError> {
        let synced = self.file.sync_data();
        synced.map_err(|error| failed("sync", &self.path, error))
    }

    pub(super) fn records(&self) -> usize {
        self.records
    }

    /// Replaces all records at once.
    pub(super) fn replace(&mut self, records: &[Record]) -> Result<(), JournalError> {
        let new = self.path.with_extension("new");
        let failed = |error| failed("write", &new, error);
        let mut text = Vec::new();
        for record in records {
            text.extend(line(record).map_err(failed)?);
        }
        let mut file = private_file(&new).map_err(failed)?;
        file.write_all(&text).map_err(failed)?;
        file.sync_data().map_err(failed)?;
        drop(file);
        // What is open now has no name then.
        self.broken = true;
        fs::rename(&new, &self.path).map_err(failed)?;
        *self = Self::open(self.path.clone())?.0;
        Ok(())
    }
}

fn line(record: &Record) -> io::Result<Vec<u8>> {
    let json = serde_json::to_string(record)?;
    let checksum = hash_of(json.as_bytes());
    Ok(format!("{} {json}\n", &checksum[..CHECKSUM]).into_bytes())
}

fn read_line(line: &[u8]) -> Option<Record> {
    let line = std::str::from_utf8(line.strip_suffix(b"\n")?).ok()?;
    let (checksum, json) = line.split_once(' ')?;
    let is_whole = hash_of(json.as_bytes())[..CHECKSUM] == *checksum;
    serde_json::from_str(json).ok().filter(|_| is_whole)
}

fn failed(doing: &'static str, path: &Path, error: io::Error) -> JournalError {
    let path = path.to_owned();
    JournalError::Io { doing, path, error }
}
