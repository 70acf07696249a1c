//! Which paths are inside.

use super::*;

const OUTSIDE: &str = "outside of the session's directories";

#[test]
fn what_is_inside_is_resolved() {
    let case = Case::new();
    case.link("in/link", "in/sub");
    assert_eq!(case.existing("in/file").unwrap(), case.real("in/file"));
    assert_eq!(
        case.existing("in/sub/../file").unwrap(),
        case.real("in/file")
    );
    assert_eq!(case.existing("in").unwrap(), case.real("in"));
    assert_eq!(case.writable("in/file").unwrap(), case.real("in/file"));
    assert_eq!(
        case.writable("in/link/a/b").unwrap(),
        case.real("in/sub/a/b")
    );
    // A path that leaves and comes back.
    for path in ["in/../in/file", "out/../in/file", "in/sub/../../in/./file"] {
        assert_eq!(case.existing(path).unwrap(), case.real("in/file"));
    }
}

#[test]
fn what_is_outside_is_refused() {
    let case = Case::new();
    for path in ["out/secret", "in/../out/secret", "in/sub/../../out/secret"] {
        refused(case.existing(path), OUTSIDE);
        refused(case.writable(path), OUTSIDE);
    }
    refused(case.writable("out/new"), OUTSIDE);
    refused(case.writable("in/../new"), OUTSIDE);
    refused(case.existing("missing"), OUTSIDE);
    // A name that begins like the root's is not below it.
    fs::create_dir(case.at("inside")).unwrap();
    refused(case.writable("inside/new"), OUTSIDE);
    let none = Roots::new();
    refused(none.existing(&case.path("in/file")), "none of them exists");
}

#[test]
fn links_that_lead_outside_are_refused() {
    let case = Case::new();
    case.link("in/file-link", "out/secret");
    case.link("in/dir-link", "out");
    case.link("in/twice", "in/dir-link");
    symlink("../out", case.at("in/relative")).unwrap();
    for path in [
        "in/file-link",
        "in/dir-link/secret",
        "in/twice/secret",
        "in/relative/secret",
    ] {
        refused(case.existing(path), OUTSIDE);
        refused(case.writable(path), OUTSIDE);
    }
    refused(case.writable("in/dir-link/new"), OUTSIDE);
    refused(case.writable("in/twice/a/b/new"), OUTSIDE);
}

#[test]
fn links_that_lead_nowhere_are_not_written_through() {
    let case = Case::new();
    case.link("in/dangling", "out/new");
    case.link("in/twice", "in/dangling");
    symlink("sub/new", case.at("in/relative")).unwrap();
    for path in ["in/dangling", "in/twice", "in/relative"] {
        let words = "symbolic link to something that does not exist";
        refused(case.writable(path), words);
        refused(case.writable(&format!("{path}/below")), words);
        fails(case.existing(path), ErrorCode::RESOURCE_NOT_FOUND, path);
    }
}

#[test]
fn dots_below_what_does_not_exist_are_refused() {
    let case = Case::new();
    refused(case.writable("in/missing/../file"), "`..`");
    refused(case.writable("in/missing/../../out/secret"), "`..`");
    refused(case.existing("in/missing/../file"), "`..`");
}

#[test]
fn relative_and_impossible_paths_are_refused() {
    let case = Case::new();
    refused(case.roots.existing("file"), "not an absolute path");
    refused(case.roots.writable(""), "not an absolute path");
    refused(case.existing("in/a\0b"), "NUL byte");
    refused(case.writable("in/a\0b"), "NUL byte");
    let code = ErrorCode::INTERNAL_ERROR;
    fails(
        case.writable(&format!("in/{}", "x".repeat(300))),
        code,
        "cannot use",
    );
    // It would be that many directories.
    fails(
        case.write(&format!("in/{}", "x/".repeat(5000)), ""),
        code,
        "4096",
    );
    case.link("in/loop", "in/loop");
    fails(case.existing("in/loop"), code, "symbolic links");
    fails(case.writable("in/loop"), code, "symbolic links");
}

#[test]
fn what_is_missing_is_named() {
    let case = Case::new();
    let path = case.path("in/missing");
    let error = case.existing("in/missing").unwrap_err();
    assert_eq!(error.code, ErrorCode::RESOURCE_NOT_FOUND);
    let data = error.data.as_ref().unwrap();
    assert_eq!(data.to_value().unwrap(), serde_json::json!({ "uri": path }));
    // A file in the place of a directory means that nothing is there either.
    for path in ["in/file/below", "in/file/../file", "in/file/"] {
        fails(case.existing(path), ErrorCode::RESOURCE_NOT_FOUND, path);
    }
    fails(
        case.writable("in/new/"),
        ErrorCode::RESOURCE_NOT_FOUND,
        "new/",
    );
    assert!(case.existing("in/sub/").is_ok());
}

#[test]
fn several_roots_are_one_workspace() {
    let mut case = Case::new();
    case.link("in/across", "out/secret");
    case.roots.add(case.at("out")).unwrap();
    assert!(case.existing("out/secret").is_ok());
    assert_eq!(case.read("in/across").unwrap(), "secret");
    case.write("in/across", "public").unwrap();
    assert!(case.at("in/across").is_symlink());
    assert_eq!(case.read("out/secret").unwrap(), "public");
    assert!(case.roots.add(case.at("in/file")).is_err());
    assert!(case.roots.add(case.at("missing")).is_err());
    let first = case.roots.first().unwrap();
    assert_eq!(first.path(), case.real("in"));
}

#[test]
fn a_root_has_the_name_it_was_given_and_the_resolved_one() {
    let mut case = Case::new();
    case.link("alias", "in");
    case.roots = Roots::open([case.at("alias")]).unwrap();
    for path in ["alias/file", "in/file", "out/../alias/sub/../file"] {
        assert_eq!(case.existing(path).unwrap(), case.real("in/file"));
    }
    // `..` is the parent of the directory, not of the link.
    fs::create_dir(case.at("deep")).unwrap();
    case.link("deep/alias", "in");
    let roots = Roots::open([case.at("deep/alias")]).unwrap();
    let path = roots.existing(&case.path("deep/alias/../in/file"));
    assert_eq!(path.unwrap(), case.real("in/file"));
}

#[test]
fn a_directory_for_commands_is_found() {
    let case = Case::new();
    let found = |path: &str| case.roots.directory(&case.path(path));
    assert_eq!(found("in/sub").unwrap().path(), case.real("in/sub"));
    assert_eq!(found("in").unwrap().path(), case.real("in"));
    refused(found("in/file"), "is not a directory");
    refused(found("out"), OUTSIDE);
    fails(found("in/no"), ErrorCode::RESOURCE_NOT_FOUND, "in/no");
}
