use std::io::{Seek as _, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{EntryType, Header};
use zip::write::SimpleFileOptions;

use super::*;

/// A tar file of these entries: name, kind, content.
fn tar_gz(entries: &[(&str, EntryType, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, kind, content) in entries {
        let mut header = Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o755);
        if !matches!(kind, EntryType::Regular | EntryType::Directory) {
            header.set_link_name("/etc/passwd").unwrap();
        }
        // Written as raw bytes, because the setter rejects invalid names.
        let bytes = header.as_mut_bytes();
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        archive.append(&header, *content).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

fn zipped(entries: &[(&str, u32, &[u8])]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
    for (name, mode, content) in entries {
        let options = SimpleFileOptions::default().unix_permissions(*mode);
        match mode & 0o170_000 {
            0o120_000 => archive.add_symlink(*name, "/etc/passwd", options).unwrap(),
            _ => archive.start_file(*name, options).unwrap(),
        }
        if mode & 0o170_000 == 0 {
            archive.write_all(content).unwrap();
        }
    }
    archive.finish().unwrap().into_inner()
}

/// Unpacks below a folder with a secret beside it, and returns the folder.
fn unpacked(archive: &[u8], form: Form) -> (tempfile::TempDir, Result<(), String>) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("files")).unwrap();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(archive).unwrap();
    file.rewind().unwrap();
    let (folder, stop) = (dir.path().join("files"), AtomicBool::new(false));
    let result = unpack(file, form, &folder, Path::new("./program"), &stop);
    (dir, result)
}

#[track_caller]
fn refused(archive: &[u8], form: Form, reason: &str) {
    let (dir, result) = unpacked(archive, form);
    let error = result.unwrap_err();
    assert!(error.contains(reason), "{error}, not {reason}");
    let listed = dir.path().read_dir().unwrap().flatten();
    let names: Vec<_> = listed.map(|entry| entry.file_name()).collect();
    assert_eq!(names, ["files"], "something was written beside the folder");
}

#[test]
fn files_and_folders_are_unpacked() {
    let regular = EntryType::Regular;
    let tar = tar_gz(&[
        ("./", EntryType::Directory, b""),
        ("./bin/", EntryType::Directory, b""),
        ("./bin/agent", regular, b"program"),
        ("lib/deep/data", regular, b"data"),
    ]);
    let zip = zipped(&[
        ("bin/agent", 0o755, b"program"),
        ("lib/deep/data", 0o644, b"data"),
    ]);
    for (archive, form) in [(tar, Form::TarGz), (zip, Form::Zip)] {
        let (dir, result) = unpacked(&archive, form);
        result.unwrap();
        let files = dir.path().join("files");
        assert_eq!(std::fs::read(files.join("bin/agent")).unwrap(), b"program");
        assert_eq!(std::fs::read(files.join("lib/deep/data")).unwrap(), b"data");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = files
                .join("bin/agent")
                .metadata()
                .unwrap()
                .permissions()
                .mode();
            assert_eq!(mode & 0o777, 0o755, "{form:?}");
        }
    }
    let (dir, result) = unpacked(b"program", Form::Plain);
    result.unwrap();
    assert_eq!(
        std::fs::read(dir.path().join("files/program")).unwrap(),
        b"program"
    );
}

#[test]
fn names_that_lead_out_are_refused() {
    for name in ["../evil", "a/../../evil", "/tmp/evil", "a/../b"] {
        let tar = tar_gz(&[
            ("good", EntryType::Regular, b"1"),
            (name, EntryType::Regular, b"x"),
        ]);
        refused(&tar, Form::TarGz, "leads out of the folder");
        refused(
            &zipped(&[(name, 0o644, b"x")]),
            Form::Zip,
            "leads out of the folder",
        );
    }
}

#[test]
fn links_and_devices_are_refused() {
    for kind in [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Fifo,
        EntryType::Char,
    ] {
        let tar = tar_gz(&[("link", kind, b"")]);
        refused(&tar, Form::TarGz, "is a link or a special file");
    }
    refused(
        &zipped(&[("link", 0o120_777, b"")]),
        Form::Zip,
        "is a link or a special file",
    );
    let twice = [
        ("a", EntryType::Regular, &b"1"[..]),
        ("./a", EntryType::Regular, b"2"),
    ];
    refused(&tar_gz(&twice), Form::TarGz, "twice");
}

#[test]
fn an_archive_that_is_cut_off_is_broken() {
    // Hardly compressible, so that every cut is inside of an entry.
    let content: Vec<u8> = (0..20_000_u32)
        .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect();
    let tar = tar_gz(&[("a", EntryType::Regular, &content)]);
    let zip = zipped(&[("a", 0o644, &content)]);
    for (archive, form) in [(tar, Form::TarGz), (zip, Form::Zip)] {
        unpacked(&archive, form).1.unwrap();
        for left in [0, 100, archive.len() / 2, archive.len() - 1] {
            match archive.get(..left) {
                // An empty input is an empty tar file for some programs.
                Some([]) if form == Form::TarGz => continue,
                Some(part) => refused(part, form, "the archive is broken"),
                None => unreachable!(),
            }
        }
    }
}

#[test]
fn what_grows_beyond_measure_is_refused() {
    // A name of 16 MiB that compresses to almost nothing.
    let name = vec![b'a'; 16 << 20];
    let tar = tar_gz(&[("././@LongLink", EntryType::GNULongName, &name)]);
    refused(&tar, Form::TarGz, "a header is too long");
    let stop = AtomicBool::new(false);
    let mut target = Target {
        folder: Path::new("/"),
        left: 10,
        files: MOST_FILES,
        stop: &stop,
    };
    let error = target.copy(&[0; 11][..], &mut io::sink()).unwrap_err();
    assert!(error.contains("more than"), "{error}");
    assert!(target.count().unwrap_err().contains("files"));
    stop.store(true, Ordering::Relaxed);
}

#[test]
fn the_form_follows_from_the_name() {
    for (name, form) in [
        ("https://h/a/b.tar.gz", Form::TarGz),
        ("https://h/b.TGZ?x=.zip", Form::TarGz),
        ("b.zip", Form::Zip),
        ("https://h/v1.2/agent-linux", Form::Plain),
        ("https://h/agent.exe", Form::Plain),
    ] {
        assert_eq!(Form::of(name), Ok(form), "{name}");
    }
    assert!(Form::of("a.tar.xz").unwrap_err().contains(".tar.xz"));
}
