//! What a confined process can and cannot do, by each mechanism that this machine has.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod mechanisms;

use std::fs;
use std::process::{Command, Output};

use acp_sandbox::{Mechanism, Sandbox, SandboxErrorKind, SandboxSettings};
use tempfile::TempDir;

use self::mechanisms::mechanisms;

/// A project that is writable, beside a folder that is not.
struct Place {
    root: TempDir,
}

impl Place {
    fn new() -> Self {
        // Not in the directory for temporary files, which another test might make writable.
        let root = TempDir::new().unwrap();
        for name in ["project", "outside"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        fs::write(root.path().join("outside/kept"), "as it was").unwrap();
        fs::write(root.path().join("project/mine"), "as it was").unwrap();
        Self { root }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.root.path().join(name)
    }

    fn sandbox(&self, mechanism: Mechanism) -> Sandbox {
        let settings = SandboxSettings::new(mechanism).writable(self.path("project"));
        settings.prepare().unwrap()
    }
}

fn run(sandbox: &Sandbox, place: &Place, script: &str) -> Output {
    let (program, before) = sandbox.program("sh".as_ref());
    let mut command = Command::new(program);
    command
        .args(before)
        .args(["-c", script])
        .envs(sandbox.variables())
        .current_dir(place.path("project"));
    sandbox.spawn(|| command.output()).unwrap()
}

/// Commands that change something outside. Confined, each must fail and change nothing.
const FORBIDDEN: &[&str] = &[
    "echo x > ../outside/new",
    "echo x > ../outside/kept",
    "echo x >> ../outside/kept",
    "truncate -s 0 ../outside/kept",
    "rm ../outside/kept",
    "mv ../outside/kept .",
    "mv mine ../outside/mine",
    "mkdir ../outside/folder",
    "rmdir ../outside/empty",
    "ln mine ../outside/linked",
    "ln -s mine ../outside/linked",
    "mkfifo ../outside/pipe",
    // Through a link inside, which the process makes itself.
    "ln -s ../outside door && echo x > door/new",
    "ln -s ../outside/kept file && echo x > file",
    // A hard link to what it cannot write.
    "ln ../outside/kept hard && echo x > hard",
    // A process of a process, in another session.
    "setsid sh -c 'echo x > ../outside/new'",
    "nohup sh -c 'echo x > ../outside/new'",
    // What is in the project can be replaced, but not the project itself.
    "mv ../project ../moved",
];

#[test]
fn each_of_the_forbidden_commands_works_without_a_sandbox() {
    for script in FORBIDDEN {
        let place = Place::new();
        fs::create_dir(place.path("outside/empty")).unwrap();
        let mut command = Command::new("sh");
        command
            .args(["-c", script])
            .current_dir(place.path("project"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{script}: {output:?}");
    }
}

#[test]
fn nothing_outside_is_changed() {
    for mechanism in mechanisms() {
        for script in FORBIDDEN {
            let place = Place::new();
            fs::create_dir(place.path("outside/empty")).unwrap();
            let sandbox = place.sandbox(mechanism);
            let output = run(&sandbox, &place, script);
            assert!(
                !output.status.success(),
                "{mechanism}: {script}: {output:?}"
            );
            let mut names: Vec<_> = fs::read_dir(place.path("outside"))
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            assert_eq!(names, ["empty", "kept"], "{mechanism}: {script}");
            let kept = fs::read_to_string(place.path("outside/kept")).unwrap();
            assert_eq!(kept, "as it was", "{mechanism}: {script}");
            assert!(place.path("project").is_dir(), "{mechanism}: {script}");
        }
    }
}

#[test]
fn what_is_inside_is_written_and_everything_is_read() {
    let script = "set -e
        echo x > new; echo x >> mine; mkdir -p a/b; mv new a/b; ln -s a link; rm mine
        cat ../outside/kept > /dev/null
        file=$(mktemp); echo x > $file; mv $file kept-of-temporary
        cd / && sh -c 'exit 0'";
    for mechanism in mechanisms() {
        let place = Place::new();
        let output = run(&place.sandbox(mechanism), &place, script);
        assert!(output.status.success(), "{mechanism}: {output:?}");
        assert!(place.path("project/a/b/new").exists());
        assert!(place.path("project/kept-of-temporary").exists());
    }
}

#[test]
fn this_process_is_not_confined() {
    for mechanism in mechanisms() {
        let place = Place::new();
        let sandbox = place.sandbox(mechanism);
        assert!(run(&sandbox, &place, "true").status.success());
        fs::write(place.path("outside/new"), "by the process that confines").unwrap();
        let output = Command::new("touch")
            .arg(place.path("outside/other"))
            .status();
        assert!(output.unwrap().success());
    }
}

/// A confined process may put a link in the place of a writable directory below another one; the next
/// process must not be permitted what it leads to.
#[test]
fn a_link_in_the_place_of_a_writable_path_gains_nothing() {
    for mechanism in mechanisms() {
        let place = Place::new();
        fs::create_dir(place.path("project/inner")).unwrap();
        let settings = SandboxSettings::new(mechanism)
            .writable(place.path("project"))
            .writable(place.path("project/inner"));
        let sandbox = settings.prepare().unwrap();
        let output = run(&sandbox, &place, "rmdir inner && ln -s ../outside inner");
        assert!(output.status.success(), "{mechanism}: {output:?}");
        let output = run(&sandbox, &place, "echo x > inner/new");
        assert!(!output.status.success(), "{mechanism}: {output:?}");
        assert!(!place.path("outside/new").exists());
    }
}

#[test]
fn processes_outside_are_not_signalled() {
    for mechanism in mechanisms() {
        let place = Place::new();
        let sandbox = place.sandbox(mechanism);
        let mut other = Command::new("sleep").arg("60").spawn().unwrap();
        let output = run(&sandbox, &place, &format!("kill -9 {}", other.id()));
        let lives = other.try_wait().unwrap().is_none();
        other.kill().unwrap();
        other.wait().unwrap();
        if mechanism == Mechanism::Landlock && output.status.success() {
            eprintln!("not tested: this kernel does not restrict signals");
            continue;
        }
        assert!(lives, "{mechanism}: {output:?}");
    }
}

/// What the table of the crate says of the two mechanisms.
#[test]
fn bubblewrap_alone_keeps_the_permissions_of_files_outside() {
    for mechanism in mechanisms() {
        let place = Place::new();
        let output = run(
            &place.sandbox(mechanism),
            &place,
            "chmod 600 ../outside/kept",
        );
        let refuses = mechanism == Mechanism::Bubblewrap;
        assert_eq!(!output.status.success(), refuses, "{mechanism}: {output:?}");
    }
}

#[test]
fn a_single_file_can_be_made_writable() {
    for mechanism in mechanisms() {
        let place = Place::new();
        let settings = SandboxSettings::new(mechanism).writable(place.path("outside/kept"));
        let sandbox = settings.prepare().unwrap();
        let output = run(&sandbox, &place, "echo y > ../outside/kept");
        assert!(output.status.success(), "{mechanism}: {output:?}");
        let output = run(&sandbox, &place, "echo y > ../outside/new");
        assert!(!output.status.success(), "{mechanism}: {output:?}");
        let output = run(&sandbox, &place, "echo y > mine");
        assert!(!output.status.success(), "{mechanism}: {output:?}");
    }
}

#[test]
fn without_network_there_is_none_or_an_error() {
    let settings = SandboxSettings::new(Mechanism::Landlock).without_network();
    let error = settings.prepare().unwrap_err();
    assert_eq!(error.kind(), SandboxErrorKind::Unenforceable);
    assert!(error.to_string().contains("bubblewrap"), "{error}");
    if !mechanisms().contains(&Mechanism::Bubblewrap) {
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let place = Place::new();
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
    for (has_network, settings) in [
        (true, SandboxSettings::new(Mechanism::Bubblewrap)),
        (
            false,
            SandboxSettings::new(Mechanism::Bubblewrap).without_network(),
        ),
    ] {
        let sandbox = settings.prepare().unwrap();
        let output = run(&sandbox, &place, &format!("bash -c '{script}'"));
        assert_eq!(output.status.success(), has_network, "{output:?}");
    }
}

#[test]
fn the_temporary_directory_is_private_and_removed() {
    use std::os::unix::fs::MetadataExt as _;

    for mechanism in mechanisms() {
        let place = Place::new();
        let sandbox = place.sandbox(mechanism);
        let (_, path) = sandbox.variables().next().unwrap();
        let path = path.to_owned();
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o700);
        assert!(run(&sandbox, &place, "echo x > $TMPDIR/x").status.success());
        let clone = sandbox.clone();
        drop(sandbox);
        assert!(path.exists());
        drop(clone);
        assert!(!path.exists());
    }
}

#[test]
fn a_path_that_does_not_exist_is_named() {
    for mechanism in mechanisms() {
        let settings = SandboxSettings::new(mechanism).writable("/no/such/path");
        let error = settings.prepare().unwrap_err();
        assert_eq!(error.kind(), SandboxErrorKind::Path);
        assert!(
            error.to_string().starts_with("/no/such/path cannot"),
            "{error}"
        );
    }
}
