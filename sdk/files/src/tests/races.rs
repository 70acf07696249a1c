//! What is put into the place of something else between the check and the use.

use std::ffi::OsStr;

use super::super::read::open;
use super::*;

#[test]
fn a_pipe_that_takes_the_place_of_a_file_does_not_block() {
    let case = Case::new();
    let place = case.roots.existing_place(&case.path("in/file")).unwrap();
    fs::remove_file(case.at("in/file")).unwrap();
    fifo(&case.at("in/file"));
    let file = unblocked(|| open(&place.dir, OsStr::new("file"))).unwrap();
    refused(
        regular(&file.metadata().unwrap(), "in/file"),
        "not a regular file",
    );
}

#[test]
fn a_link_that_takes_the_place_of_a_file_is_not_followed() {
    let case = Case::new();
    let place = case.roots.existing_place(&case.path("in/file")).unwrap();
    fs::remove_file(case.at("in/file")).unwrap();
    for target in ["../out/secret", "sub"] {
        symlink(target, case.at("in/file")).unwrap();
        assert!(open(&place.dir, OsStr::new("file")).is_err());
        fs::remove_file(case.at("in/file")).unwrap();
    }
}

#[test]
fn a_link_that_takes_the_place_of_a_directory_leads_nowhere() {
    let case = Case::new();
    case.file("in/sub/secret", "inside");
    let place = case.roots.existing_place(&case.path("in/sub/secret"));
    fs::rename(case.at("in/sub"), case.at("in/moved")).unwrap();
    case.link("in/sub", "out");
    let file = open(&place.unwrap().dir, OsStr::new("secret")).unwrap();
    let text = std::io::read_to_string(file).unwrap();
    assert_eq!(text, "inside", "the directory that was found is held open");
    refused(case.read("in/sub/secret"), "outside");
}

#[test]
fn a_root_that_is_renamed_or_replaced_keeps_its_names() {
    let mut case = Case::new();
    case.link("alias", "in");
    case.roots.add(case.at("alias")).unwrap();
    case.file("in/file", "inside");
    fs::rename(case.at("in"), case.at("moved")).unwrap();
    let all_names = |case: &Case| {
        for path in ["in/file", "alias/file", "in/../in/file", "in/sub/../file"] {
            assert_eq!(case.read(path).unwrap(), "inside", "{path}");
            case.write(path, "inside").unwrap();
        }
        // The new name leads into the same directory, but nobody has said that it is a root.
        refused(case.read("moved/file"), "outside");
    };
    all_names(&case);
    // A link, and another directory.
    case.file("out/file", "secret");
    case.link("in", "out");
    all_names(&case);
    fs::remove_file(case.at("in")).unwrap();
    fs::rename(case.at("out"), case.at("in")).unwrap();
    all_names(&case);
    let text = fs::read_to_string(case.at("in/file")).unwrap();
    assert_eq!(text, "secret", "nothing was written outside");
}

/// It takes the descriptor, not the path.
#[cfg(target_os = "linux")]
#[test]
fn a_command_starts_in_the_directory_that_was_found() {
    let case = Case::new();
    case.file("in/sub/name", "inside");
    case.file("out/name", "secret");
    let directory = case.roots.directory(&case.path("in/sub")).unwrap();
    fs::rename(case.at("in/sub"), case.at("in/moved")).unwrap();
    case.link("in/sub", "out");
    let mut command = std::process::Command::new("cat");
    let command = command.arg("name").current_dir(directory.start_path());
    assert_eq!(command.output().unwrap().stdout, b"inside");
    let mut command = std::process::Command::new("pwd");
    let command = command.arg("-P").current_dir(directory.start_path());
    let expected = format!("{}\n", case.real("in/moved").display());
    assert_eq!(command.output().unwrap().stdout, expected.as_bytes());
}
