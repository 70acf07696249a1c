use super::*;

fn pattern(text: &str) -> CommandPattern {
    CommandPattern::new(CommandText::Line(text.to_owned())).unwrap()
}

fn allows(text: &str, line: &str) -> bool {
    let command = Command::line(line);
    command
        .simple()
        .is_some_and(|words| pattern(text).contains(words))
}

fn denies(text: &str, line: &str) -> bool {
    pattern(text).touches(&Command::line(line))
}

fn words(words: &[&str]) -> Command {
    Command::words(
        &words
            .iter()
            .map(|&word| word.to_owned())
            .collect::<Vec<_>>(),
    )
}

#[test]
fn words_are_compared_with_words() {
    assert!(allows("git status", "git  status "));
    assert!(allows("git status **", "git status") && allows("git status **", "git status -s x"));
    assert!(
        allows("cargo test *", "cargo test 'a b'") && allows("git show HEAD~1", "git show HEAD~1")
    );
    assert!(allows("cargo {test,check} **", "cargo check -p \"x\""));
    for line in [
        "git",
        "git stat us",
        "git status -s",
        "gitstatus",
        "'git status'",
        "",
        "'",
    ] {
        assert!(!allows("git status", line), "{line}");
    }
    assert!(!allows("git *", "git a b") && !allows("git *", "/tmp/git a"));
    assert!(!allows("git **", "A=1 git status") && !allows("git **", "GIT status"));
}

#[test]
fn a_line_of_more_than_one_command_is_never_allowed() {
    let tails = [
        "; rm x",
        ";rm x",
        "&& rm x",
        "&rm x",
        "& rm x",
        "| sh",
        "|sh",
        "|| rm x",
        "> x",
        ">x",
        ">> x",
        "< x",
        "<(rm x)",
        "$(rm x)",
        "`rm x`",
        "$IFS",
        "${x}",
        "\nrm x",
        "\r\nrm x",
        "\rrm x",
        "\u{2028}rm",
        "\u{85}rm",
        "\u{a0}rm",
        "\trm",
        "\u{b}rm",
        "\0rm",
        "\\\nrm x",
        "\\; rm",
        "'a; rm x'",
        "\"$(rm x)\"",
        "\"`rm x`\"",
        "\"a\nb\"",
        "'a\nb'",
        "(rm x)",
        "{a,b}",
        "!x",
        "# x",
        "*",
        "?",
        "[a-z]",
        "~",
        "~root",
        "a=~",
        "'unbalanced",
        "\"x",
        "2>&1",
        "^x",
        "&",
        ";",
        "|",
    ];
    for tail in tails {
        for line in [format!("git status {tail}"), format!("git status{tail}")] {
            let one_word = !line.contains(|c: char| SPECIAL.contains(&c) || c.is_control());
            for text in ["git status **", "git **", "* **", "git status*"] {
                // Some tails are harmless when they are part of a word.
                let harmless = one_word && matches!(tail, "~" | "~root" | "a=~");
                assert!(
                    !allows(text, &line) || (harmless && !line.contains(" ~")),
                    "{line:?}"
                );
            }
        }
    }
}

#[test]
fn arguments_without_a_shell_are_judged_likewise() {
    let git = pattern("git status **");
    let allowed = |list: &[&str]| words(list).simple().is_some_and(|w| git.contains(w));
    assert!(allowed(&["git", "status", "a b"]));
    assert!(allowed(&["/bin/bash", "-lc", "git status -s"]));
    assert!(allowed(&["bash", "-c", "git status"]));
    for list in [
        &["git", "status", ";", "rm"][..],
        &["git", "status", "$(rm)"],
        &["git", "status\nrm"],
        &["bash", "-lc", "git status; rm x"],
        &["bash", "-c", "git status", "x"],
        &["/tmp/bash", "-c", "git status"],
        &["bash", "-i", "-c", "git status"],
        &["git status"],
        &[],
    ] {
        assert!(!allowed(list), "{list:?}");
    }
    assert_eq!(
        words(&["bash", "script"]).simple(),
        None,
        "a shell runs anything"
    );
}

#[test]
fn what_is_denied_is_denied_wherever_it_stands() {
    for line in [
        "rm x",
        "rm -rf /",
        "ls; rm x",
        "ls && rm x",
        "ls|rm x",
        "ls &rm x",
        "a\nrm x",
        "$(rm x)",
        "`rm x`",
        "echo `rm x`",
        "(rm x)",
        "{ rm x; }",
        "sudo rm x",
        "A=1 rm x",
        "env rm x",
        "xargs rm x",
        "sh -c 'rm x'",
        "sh -c \"rm x\"",
        "'rm' x",
        "r\\m x",
        "r''m x",
        "/bin/rm x",
        "RM x",
        "rm.exe x",
        "bash -lc \"ls; rm x\"",
        "if true; then rm x; fi",
        "<x rm x",
        "find . -exec rm x",
        "echo \"$(rm x)\"",
        "ls;rm\tx",
    ] {
        assert!(denies("rm *", line), "{line:?}");
        assert!(denies("rm", line), "{line:?}");
    }
    for line in ["rmdir x", "ls rmx", "warm x", "git status"] {
        assert!(!denies("rm *", line), "{line:?}");
    }
    assert!(!denies("git push **", "git pull") && denies("git push **", "a; git push -f"));
    assert!(pattern("rm").touches(&words(&["/bin/bash", "-lc", "ls; rm x"])));
    assert!(pattern("rm").touches(&words(&["bash", "-x", "-c", "ls; rm x"])));
    for line in ["$X -rf /", "r$Y x", "/bin/r? x", "ech`o`", "%X%"] {
        assert!(Command::line(line).expands(), "{line:?}");
    }
    assert!(Command::line(&"x".repeat(LONGEST + 1)).expands());
}

#[test]
fn patterns_that_would_mean_nothing_are_refused() {
    for text in ["", " ", "**", "a ** b", "git ["] {
        let text = CommandText::Line(text.to_owned());
        assert!(CommandPattern::new(text.clone()).is_err(), "{text:?}");
    }
}

#[test]
fn options_before_the_subcommand_hide_nothing() {
    for (text, line) in [
        ("git push **", "git -C . push"),
        ("git push **", "git -c a.b=c -C x push -f"),
        ("git push **", "git --no-pager push"),
        ("git push **", "git --git-dir=x --work-tree y push origin"),
        ("git push", "/usr/bin/git -P push"),
        ("git push", "ls; sudo git -C '/a b' push"),
        ("git push origin", "git push -v origin"),
        ("cargo publish", "cargo +nightly publish"),
        ("cargo publish", "cargo +nightly -Z x --config a=b publish"),
        ("cargo publish", "cargo -C dir publish"),
        ("npm publish", "npm --prefix x publish"),
        ("docker run", "docker --context x -H y run z"),
        (
            "docker compose down",
            "docker compose -f x.yml --project-name y down",
        ),
        ("kubectl delete", "kubectl -n ns --context=x delete pod a"),
    ] {
        assert!(denies(text, line), "{line}");
        let list: Vec<_> = line.split(' ').collect();
        assert!(
            line.contains('\'') || pattern(text).touches(&words(&list)),
            "{line}"
        );
    }
    for (text, line) in [
        ("git push **", "git -C push status"),
        ("git push **", "git status push"),
        ("git push **", "git log --grep push"),
    ] {
        // A value may be the subcommand: it is not known which options have one.
        assert_eq!(denies(text, line), line.contains("-C push"), "{line}");
    }
    for line in [
        "git -C /elsewhere push",
        "git --no-pager push",
        "cargo +x push",
    ] {
        assert!(
            !allows("git push **", line) && !allows("cargo push", line),
            "{line}"
        );
    }
}
