//! The file of named tokens.

use super::*;

fn file() -> (tempfile::TempDir, TokenFile) {
    let folder = tempfile::tempdir().unwrap();
    let file = TokenFile::new(folder.path().join("new/tokens.json"));
    (folder, file)
}

#[test]
fn tokens_are_kept_as_hashes_in_a_file_of_this_user() {
    let (_folder, file) = file();
    assert_eq!(file.list().unwrap(), []);
    let expires = SystemTime::UNIX_EPOCH + Duration::from_secs(4_000_000_000);
    let secret = file.add("ci", Access::ReadOnly, Some(expires)).unwrap();
    let own = Access::Session("s".into());
    file.add("editor", own.clone(), None).unwrap();
    let tokens = file.list().unwrap();
    assert_eq!(
        (&*tokens[0].name, &tokens[0].access),
        ("ci", &Access::ReadOnly)
    );
    assert_eq!(tokens[0].expires, Some(expires));
    assert_eq!((&tokens[1].access, tokens[1].expires), (&own, None));
    let text = fs::read_to_string(file.path()).unwrap();
    assert!(!text.contains(secret.secret()));
    assert!(text.contains(&secret.hash().digits()), "{text}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(file.path()), 0o600);
        assert_eq!(mode(file.folder()), 0o700);
    }
    file.revoke("ci").unwrap();
    assert_eq!(file.list().unwrap().len(), 1);
    assert!(matches!(
        file.revoke("ci"),
        Err(TokenFileError::Unknown { .. })
    ));
}

#[test]
fn names_are_plain_and_unique() {
    let (_folder, file) = file();
    let long = "a".repeat(NAME_CHARS + 1);
    for name in ["", "a b", "session:s", "ü", "a\n", &long] {
        let refused = file.add(name, Access::Full, None);
        assert!(matches!(refused, Err(TokenFileError::Name(_))), "{name}");
    }
    file.add("a.b-c_9", Access::Full, None).unwrap();
    let refused = file.add("a.b-c_9", Access::Full, None).unwrap_err();
    assert!(
        refused.to_string().contains("tokens revoke a.b-c_9"),
        "{refused}"
    );
}

#[test]
fn a_damaged_file_is_refused_with_the_reason() {
    let (_folder, file) = file();
    file.add("a", Access::Full, None).unwrap();
    let good = fs::read_to_string(file.path()).unwrap();
    let digits = file.list().unwrap()[0].hash.digits();
    let twice = {
        let mut contents: serde_json::Value = serde_json::from_str(&good).unwrap();
        let token = contents["tokens"][0].clone();
        contents["tokens"].as_array_mut().unwrap().push(token);
        contents.to_string()
    };
    for (text, reason) in [
        (String::new(), "EOF"),
        (good[..good.len() / 2].to_owned(), "EOF"),
        (
            good.replace("\"version\": 1", "\"version\": 2"),
            "version 2",
        ),
        (good.replace(&digits, "abc"), "SHA-256"),
        (good.replace("\"full\"", "\"session\""), "disagree"),
        (good.replace("\"full\"", "\"everything\""), "everything"),
        (
            good.replace("\"name\"", "\"only_from\": 1, \"name\""),
            "only_from",
        ),
        (good.replace("\"created\": \"2", "\"created\": \"x"), "time"),
        (twice, "two tokens \"a\""),
    ] {
        fs::write(file.path(), text).unwrap();
        let error = file.list().unwrap_err().to_string();
        assert!(
            error.contains(reason) && error.contains("tokens.json"),
            "{error}"
        );
        assert!(file.add("b", Access::Full, None).is_err());
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_others_can_access_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let (_folder, file) = file();
    file.add("a", Access::Full, None).unwrap();
    fs::set_permissions(file.path(), fs::Permissions::from_mode(0o620)).unwrap();
    let error = file.list().unwrap_err();
    assert!(error.to_string().contains("chmod 600"), "{error}");
}

#[test]
fn changes_come_one_after_the_other() {
    let (_folder, file) = file();
    thread::scope(|scope| {
        for number in 0..8 {
            let file = &file;
            scope.spawn(move || file.add(&format!("n{number}"), Access::Full, None).unwrap());
        }
    });
    assert_eq!(file.list().unwrap().len(), 8);
}
