//! Reading a file or some of its lines.

use std::ffi::OsStr;
use std::io::{self, BufRead as _, BufReader, Read as _};

use cap_std::fs::{Dir, File, OpenOptions};

use super::roots::Roots;
use super::walk::End;
use super::{internal, invalid, refused, regular};
use acp_sdk::RpcError;

/// Bytes that are read at a time.
const CHUNK: usize = 64 << 10;

/// Reads a file or some of its lines. Blocks.
///
/// `line` counts from 1 (0 means 1), `limit` is a number of lines. Lines end with `\n`, which
/// belongs to them. Lines beyond the end of the file are an empty text.
///
/// # Errors
///
/// -32002 if there is no such file; -32602 if the path is refused, or the file is no regular file
/// or no UTF-8 text; -32603 if it cannot be read or the text is longer than `most_bytes`.
pub fn read(
    roots: &Roots,
    path: &str,
    line: Option<u32>,
    limit: Option<u32>,
    most_bytes: usize,
) -> Result<String, RpcError> {
    let place = roots.existing_place(path)?;
    let End::File(name, metadata) = &place.end else {
        return Err(invalid(format!("{path} is a directory")));
    };
    regular(metadata, path)?;
    let file = open(&place.dir, name).map_err(|error| refused(path, &error))?;
    // Something else may have taken the place of the file since.
    let opened = file.metadata().map_err(|error| refused(path, &error))?;
    regular(&opened, path)?;
    let skip = line.unwrap_or(1).saturating_sub(1);
    let bytes = read_lines(file, skip, limit, most_bytes);
    let bytes = bytes.map_err(|error| internal(format!("cannot read {path}: {error}")))?;
    if bytes.len() > most_bytes {
        return Err(internal(format!(
            "{path} has more than {most_bytes} bytes to read; read a part of it by `line` and `limit`"
        )));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        invalid(format!("{path} is not UTF-8 text (byte {at} of the lines)"))
    })
}

/// Returns some lines of a text, as [`read`] does of a file.
#[must_use]
pub fn lines(text: &str, line: Option<u32>, limit: Option<u32>) -> String {
    let skip = line.unwrap_or(1).saturating_sub(1);
    let limit = limit.unwrap_or(u32::MAX);
    let lines = text.split_inclusive('\n');
    lines.skip(skip as usize).take(limit as usize).collect()
}

/// Opens a name in a directory for reading. A pipe or device that took the place of the file does
/// not block, and a symbolic link is not followed.
pub(super) fn open(dir: &Dir, name: &OsStr) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;

        let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY;
        // All flags are below 2^31.
        let flags = i32::try_from(flags.bits()).unwrap_or_default();
        cap_std::fs::OpenOptionsExt::custom_flags(&mut options, flags);
    }
    dir.open_with(name, &options)
}

/// Reads some lines; at most one byte more than `most`.
fn read_lines(file: File, skip: u32, limit: Option<u32>, most: usize) -> io::Result<Vec<u8>> {
    let mut reader = BufReader::with_capacity(CHUNK, file);
    for _ in 0..skip {
        if reader.skip_until(b'\n')? == 0 {
            return Ok(Vec::new());
        }
    }
    let mut bytes = Vec::new();
    let mut reader = reader.take(most as u64 + 1);
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
