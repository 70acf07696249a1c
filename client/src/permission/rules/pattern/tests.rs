use super::*;

fn base() -> Base {
    Base::new(Path::new("/home/me/project")).unwrap()
}

fn allowed(pattern: &str, path: &str) -> bool {
    let base = base();
    let path = CallPath::resolve(path, Some(base.lexical()));
    path.is_some_and(|path| {
        PathPattern::new(pattern)
            .unwrap()
            .contains(&path, Some(&base))
    })
}

fn denied(pattern: &str, path: &str) -> bool {
    let base = base();
    let path = CallPath::resolve(path, Some(base.lexical())).unwrap();
    PathPattern::new(pattern)
        .unwrap()
        .touches(&path, Some(&base))
}

#[test]
fn patterns_are_below_the_sessions_directory() {
    for path in [
        "src/a.rs",
        "/home/me/project/src/a.rs",
        "./src//x/../a.rs",
        "src/b/c",
    ] {
        assert!(allowed("src/**", path), "{path}");
    }
    for path in [
        "src",
        "src/../../etc/passwd",
        "src/../Cargo.toml",
        "/home/me/project/src/../../other/src/a",
        "/src/a.rs",
        "/home/me/project2/src/a.rs",
        "/home/me/src/a.rs",
        "SRC/a.rs",
        "src2/a",
        "~/src/a",
        "src/$HOME",
        "src/`id`",
        "src/a\n",
        " src/a",
        "src\\..\\..\\etc",
        "file:///home/me/project/src/a",
        "src/%2e%2e/%2e%2e/etc",
        "",
    ] {
        assert!(!allowed("src/**", path), "{path}");
    }
    assert!(allowed("src/*", "src/a") && !allowed("src/*", "src/a/b"));
    assert!(allowed("**", "a/b/c") && !allowed("**", "/etc/passwd"));
    assert!(allowed("/etc/**", "/etc/passwd") && allowed("/etc/*", "../../../etc/x"));
    assert!(allowed("src/", "src") && allowed("./src/*.{rs,toml}", "src/x.rs"));
    assert!(!allowed("/**", "relative/../../../../..") || allowed("/**", "/"));
}

#[test]
fn what_is_denied_is_denied_in_every_spelling_and_below() {
    for path in [
        "secrets",
        "secrets/a/b",
        "SECRETS/x",
        "src/../secrets/a",
        "./secrets/",
    ] {
        assert!(denied("secrets", path), "{path}");
    }
    assert!(!denied("secrets", "secrets2") && !denied("secrets", "a/secrets"));
    for path in [".env", "a/b/.env", "/elsewhere/.env", "../.env", "/.ENV"] {
        assert!(denied("**/.env", path), "{path}");
    }
    assert!(denied("/etc", "../../../etc/passwd"));
}

#[test]
fn patterns_that_would_mean_nothing_are_refused() {
    for pattern in ["", "../x", "src/../x", "~/x", "a/[", "{a"] {
        assert!(PathPattern::new(pattern).is_err(), "{pattern}");
    }
}

#[test]
fn a_path_leads_where_its_links_lead() {
    let dir = tempfile::tempdir().unwrap();
    let (project, outside) = (dir.path().join("project"), dir.path().join("outside"));
    std::fs::create_dir_all(project.join("src")).unwrap();
    std::fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, project.join("src/link")).unwrap();
    std::os::unix::fs::symlink(outside.join("new"), project.join("src/dangling")).unwrap();
    let mut base = Base::new(&project).unwrap();
    base.follow_links();
    let src = PathPattern::new("src/**").unwrap();
    let judge = |text: &str| {
        let mut path = CallPath::resolve(text, Some(base.lexical())).unwrap();
        path.follow_links();
        src.contains(&path, Some(&base))
    };
    assert!(judge("src/a") && judge("src/new/dir/a"));
    assert!(!judge("src/link/a") && !judge("src/link") && !judge("src/link/new/a"));
    assert!(!judge("src/dangling"));
    // By its text it is `src/b`, for the system it is beside the target of the link.
    assert!(!judge("src/link/../b") && !judge("src/link/../../b"));
    assert!(judge("src/../src/b") && judge("src/new/../b"));
    let out = PathPattern::new(&format!("{}/**", outside.canonicalize().unwrap().display()));
    let mut path = CallPath::resolve("src/link/a", Some(base.lexical())).unwrap();
    path.follow_links();
    assert!(out.unwrap().touches(&path, Some(&base)));
}
