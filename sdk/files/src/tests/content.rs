//! What is read and written.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;

use super::*;

#[test]
fn content_is_passed_on_exactly() {
    let case = Case::new();
    for content in ["", "\n", "no end", "\u{feff}a\r\nb\rc\n\n", "ü\u{2028}\0\n"] {
        case.file("in/file", content);
        assert_eq!(case.read("in/file").unwrap(), content);
        case.write("in/copy", content).unwrap();
        assert_eq!(fs::read(case.at("in/copy")).unwrap(), content.as_bytes());
    }
}

#[test]
fn lines_count_from_one_and_keep_their_endings() {
    let case = Case::new();
    case.file("in/file", "one\ntwo\r\n\nfour");
    assert_eq!(case.lines("in/file", 1, Some(1)), "one\n");
    assert_eq!(case.lines("in/file", 2, Some(1)), "two\r\n");
    assert_eq!(case.lines("in/file", 2, Some(2)), "two\r\n\n");
    assert_eq!(case.lines("in/file", 3, None), "\nfour");
    assert_eq!(case.lines("in/file", 4, Some(9)), "four");
    assert_eq!(case.lines("in/file", 0, Some(1)), "one\n");
    assert_eq!(case.lines("in/file", 5, None), "");
    assert_eq!(case.lines("in/file", u32::MAX, Some(u32::MAX)), "");
    assert_eq!(case.lines("in/file", 1, Some(0)), "");
}

#[test]
fn a_part_of_a_file_that_is_too_long_can_be_read() {
    let case = Case::new();
    let line = "x".repeat(1023) + "\n";
    case.file("in/long", line.repeat(13 << 10));
    fails(case.read("in/long"), ErrorCode::INTERNAL_ERROR, "`limit`");
    assert_eq!(case.lines("in/long", 13 << 10, None), line);
    assert_eq!(case.lines("in/long", 5, Some(2)), line.repeat(2));
}

#[test]
fn what_is_no_text_file_is_refused() {
    let mut case = Case::new();
    case.file("in/binary", b"abc\xff");
    refused(case.read("in/binary"), "byte 3");
    for path in ["in", "in/.", "in/sub"] {
        refused(case.read(path), "is a directory");
        refused(case.write(path, ""), "is a directory");
    }
    fails(
        case.read("in/missing"),
        ErrorCode::RESOURCE_NOT_FOUND,
        "missing",
    );
    symlink("/dev/null", case.at("in/device")).unwrap();
    refused(case.read("in/device"), "outside");
    fifo(&case.at("in/pipe"));
    let _listener = UnixListener::bind(case.at("in/socket")).unwrap();
    for path in ["in/pipe", "in/socket"] {
        refused(case.read(path), "not a regular file");
        refused(case.write(path, ""), "not a regular file");
    }
    // Where devices are inside.
    case.roots.add("/dev").unwrap();
    for path in ["/dev/null", "/dev/zero", "/dev/tty"] {
        refused(read(&case.roots, path, None, None, 1), "not a regular file");
        refused(write(&case.roots, path, ""), "not a regular file");
    }
}

#[test]
fn files_and_directories_are_created() {
    let case = Case::new();
    case.write("in/a/b/new", "text").unwrap();
    assert_eq!(case.read("in/a/b/new").unwrap(), "text");
    // The same mode as of any file that this process creates.
    let ordinary = case.file("in/ordinary", "").metadata().unwrap().mode();
    let created = case.at("in/a/b/new").metadata().unwrap().mode();
    assert_eq!(created, ordinary);
    refused(case.write("in/a/b", ""), "is a directory");
    fails(
        case.write("in/ordinary/c", ""),
        ErrorCode::RESOURCE_NOT_FOUND,
        "ordinary",
    );
}

#[test]
fn a_file_is_replaced_as_a_whole_and_keeps_its_mode() {
    let case = Case::new();
    let path = case.file("in/sub/script", "old");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
    let mut reader = File::open(&path).unwrap();
    case.write("in/sub/script", "new").unwrap();
    let mut seen = String::new();
    reader.read_to_string(&mut seen).unwrap();
    assert_eq!(seen, "old", "a reader of the old file keeps it");
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o750);
    let names = fs::read_dir(case.at("in/sub")).unwrap().count();
    assert_eq!(names, 1, "no temporary file is left");
}

#[test]
fn special_bits_do_not_pass_to_other_content() {
    let case = Case::new();
    let path = case.file("in/program", "old");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o6755)).unwrap();
    case.write("in/program", "new").unwrap();
    assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o755);
}

#[test]
fn a_file_keeps_its_owner_and_group_where_the_system_allows_it() {
    let case = Case::new();
    let path = case.file("in/file", "old");
    if std::os::unix::fs::chown(&path, Some(12_345), Some(54_321)).is_err() {
        eprintln!("not exercised: only the superuser can give files away");
        return;
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    case.write("in/file", "new").unwrap();
    let metadata = path.metadata().unwrap();
    assert_eq!((metadata.uid(), metadata.gid()), (12_345, 54_321));
    assert_eq!(metadata.mode() & 0o777, 0o640);
}

/// The bits of the group are the mask of a list: alone they would let the group read the file.
#[cfg(target_os = "linux")]
#[test]
fn a_file_keeps_its_access_list_and_takes_none_from_its_directory() {
    use rustix::fs::{XattrFlags, getxattr, setxattr};

    /// Version 2: the owner, user 1234, the group, the mask, others.
    fn list(user: u16, group: u16) -> Vec<u8> {
        let entries = [(1, 6, u32::MAX), (2, user, 1234), (4, group, u32::MAX)];
        let others = [(16, user | group, u32::MAX), (32, 0, u32::MAX)];
        let mut bytes = 2_u32.to_le_bytes().to_vec();
        for (tag, permissions, id) in entries.into_iter().chain(others) {
            bytes.extend(u16::to_le_bytes(tag));
            bytes.extend(permissions.to_le_bytes());
            bytes.extend(id.to_le_bytes());
        }
        bytes
    }
    const LIST: &str = "system.posix_acl_access";
    let case = Case::new();
    let path = case.file("in/sub/listed", "old");
    let before = list(4, 0);
    if setxattr(&path, LIST, &before, XattrFlags::empty()).is_err() {
        eprintln!("not exercised: the file system has no access lists");
        return;
    }
    let plain = case.file("in/sub/plain", "old");
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o640)).unwrap();
    let default = "system.posix_acl_default";
    setxattr(case.at("in/sub"), default, &list(6, 6), XattrFlags::empty()).unwrap();

    let mut buffer = [0; 100];
    case.write("in/sub/listed", "new").unwrap();
    let length = getxattr(&path, LIST, &mut buffer[..]).unwrap();
    assert_eq!(&buffer[..length], before);
    case.write("in/sub/plain", "new").unwrap();
    assert!(getxattr(&plain, LIST, &mut buffer[..]).is_err());
    assert_eq!(plain.metadata().unwrap().mode() & 0o777, 0o640);
}

#[test]
fn a_file_behind_a_link_is_written_and_the_link_stays() {
    let case = Case::new();
    case.file("in/real", "old");
    symlink("real", case.at("in/link")).unwrap();
    case.write("in/link", "new").unwrap();
    assert!(case.at("in/link").is_symlink());
    assert_eq!(case.read("in/real").unwrap(), "new");
}

#[test]
fn a_file_that_is_marked_read_only_is_left_alone() {
    let case = Case::new();
    let path = case.file("in/file", "old");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    fails(
        case.write("in/file", "new"),
        ErrorCode::INTERNAL_ERROR,
        "read-only",
    );
    assert_eq!(case.read("in/file").unwrap(), "old");
}

#[test]
fn a_missing_file_has_the_words_that_agents_look_for() {
    let case = Case::new();
    let error = case.read("in/missing").unwrap_err();
    let path = case.at("in/missing");
    let path = path.to_str().unwrap();
    assert_eq!(error.code, ErrorCode::RESOURCE_NOT_FOUND);
    let message = format!("Resource not found: {path} (No such file or directory)");
    assert_eq!(error.message, message);
}
