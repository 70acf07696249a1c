//! Folders, names, bounds and changes.

use std::fs;

use acp_sdk::v1::{ResourceLink, StopReason};
use acp_server::{Handler, Server, Session, Turn};

use super::*;

/// A project and a user's folder.
struct Site {
    folder: tempfile::TempDir,
}

impl Site {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("project")).unwrap();
        Self { folder }
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn user(&self) -> PathBuf {
        self.folder.path().join("user")
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    async fn load(&self) -> Commands {
        Commands::load(self.project(), [self.user()]).await
    }
}

#[track_caller]
fn expanded(commands: &Commands, prompt: &str) -> String {
    let prompt = [ContentBlock::from(prompt)];
    let expanded = commands.expand(&prompt).unwrap();
    match &expanded.expect("no command").prompt[..] {
        [ContentBlock::Text(text)] => text.text.clone(),
        other => panic!("{other:?}"),
    }
}

fn names(commands: &Commands) -> Vec<String> {
    let available = commands.available().into_iter();
    available.map(|command| command.name).collect()
}

#[tokio::test]
async fn the_project_wins_over_the_user_and_acp_over_opencode() {
    let site = Site::new();
    site.write("project/.acp/commands/a.md", "project acp");
    site.write("project/.opencode/command/a.md", "project opencode");
    site.write("project/.opencode/command/b.md", "project opencode");
    site.write("user/a.md", "user");
    site.write("user/b.md", "user");
    site.write("user/git/tidy.md", "user $1");
    let commands = site.load().await;
    assert_eq!(commands.problems(), []);
    assert_eq!(names(&commands), ["a", "b", "git:tidy"]);
    assert_eq!(expanded(&commands, "/a"), "project acp");
    assert_eq!(expanded(&commands, "/b"), "project opencode");
    assert_eq!(expanded(&commands, " /git:tidy\n'x y'"), "user x y");
    assert_eq!(commands.get("b").unwrap().source(), Source::Project);
    assert_eq!(commands.get("git:tidy").unwrap().source(), Source::User);
}

#[tokio::test]
async fn commands_name_their_source_and_hint() {
    let site = Site::new();
    site.write(
        "project/.acp/commands/a.md",
        "---\ndescription: A\nargument-hint: [x]\n---\n$1",
    );
    site.write("user/b.md", "B $1");
    let commands = site.load().await.builtin("c", "C", "text");
    let available = commands.available();
    let of = |command: &AvailableCommand| {
        let meta: serde_json::Value = command.meta.as_ref().unwrap().get("acp-sdk").unwrap();
        let hint = command.input.as_ref().map(|input| match input {
            AvailableCommandInput::Unstructured(input) => input.hint.clone(),
            other => panic!("{other:?}"),
        });
        (command.description.clone(), hint, meta["source"].clone())
    };
    let hint = |text: &str| Some(text.to_owned());
    assert_eq!(
        of(&available[0]),
        ("A".into(), hint("[x]"), "project".into())
    );
    assert_eq!(
        of(&available[1]),
        ("B $1".into(), hint("arguments"), "user".into())
    );
    assert_eq!(of(&available[2]), ("C".into(), None, "builtin".into()));
}

#[tokio::test]
async fn a_prefix_stands_before_all_names() {
    let site = Site::new();
    site.write("user/a.md", "A");
    let commands = site.load().await.with_prefix("kit").builtin("b", "B", "B");
    assert_eq!(names(&commands), ["kit:a", "kit:b"]);
    assert_eq!(expanded(&commands, "/kit:a"), "A");
    assert_eq!(commands.expand(&["/a".into()]).unwrap(), None);
    assert_eq!(names(&commands.origin.load().await), ["kit:a", "kit:b"]);
    assert_eq!(names(&commands.with_prefix("x")), ["x:a", "x:b"]);
}

#[tokio::test]
async fn no_file_replaces_a_command_of_the_agent() {
    let site = Site::new();
    site.write("project/.acp/commands/undo.md", "rm");
    let commands = site.load().await.builtin("undo", "Undoes", "undo");
    for commands in [commands.origin.load().await, commands] {
        assert_eq!(expanded(&commands, "/undo"), "undo");
        assert_eq!(commands.problems().len(), 1, "{:?}", commands.problems());
    }
}

#[tokio::test]
async fn other_prompts_and_blocks_stay_as_they_are() {
    let site = Site::new();
    site.write("user/a.md", "A $1");
    let commands = site.load().await;
    for other in ["a", "/b", "/ab", "x /a", "/", "/a/b", ""] {
        assert_eq!(commands.expand(&[other.into()]).unwrap(), None, "{other}");
    }
    let link = ContentBlock::ResourceLink(ResourceLink::new("name", "file:///x"));
    assert_eq!(commands.expand(&[link.clone(), "/a".into()]).unwrap(), None);
    assert_eq!(commands.expand(&[]).unwrap(), None);
    let prompt = ["/a x".into(), link.clone()];
    let expanded = commands.expand(&prompt).unwrap().unwrap();
    assert_eq!(expanded.prompt, ["A x".into(), link]);
    let long = format!("/a {}", "x".repeat(1 << 20));
    let error = commands.expand(&[long.into()]).unwrap_err();
    assert!(error.to_string().contains("/a has more than"), "{error}");
}

#[tokio::test]
async fn broken_files_are_named_and_harm_nothing_else() {
    let site = Site::new();
    site.write("user/a.md", "A");
    site.write("user/broken.md", "---\ndescription: [\n---\nx");
    site.write("user/binary.md", [0xff, 0xfe]);
    site.write("user/long.md", "x".repeat(70_000));
    site.write("user/two words.md", "x");
    site.write("user/1/2/3/4/5/deep.md", "x");
    site.write("user/notes.txt", "no command");
    #[cfg(unix)]
    {
        let pipe = site.user().join("pipe.md");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    }
    let commands = site.load().await;
    assert_eq!(names(&commands), ["a"]);
    let mut problems: Vec<_> = commands
        .problems()
        .iter()
        .map(|problem| problem.path.file_name().unwrap().to_str().unwrap())
        .collect();
    problems.sort_unstable();
    let mut expected = vec!["5", "binary.md", "broken.md", "long.md", "two words.md"];
    if cfg!(unix) {
        expected.insert(4, "pipe.md");
    }
    assert_eq!(problems, expected, "{:?}", commands.problems());
}

#[tokio::test]
async fn the_number_of_files_is_bounded() {
    let site = Site::new();
    for number in 0..600 {
        site.write(&format!("user/c{number}.md"), "x");
    }
    let commands = site.load().await;
    assert_eq!(names(&commands).len(), 512);
    assert_eq!(commands.problems().len(), 1);
}

#[cfg(unix)]
#[tokio::test]
async fn links_are_followed_inside_only() {
    use std::os::unix::fs::symlink;

    let site = Site::new();
    site.write("secret/key.md", "secret");
    site.write("project/docs/review.md", "inside");
    site.write("project/.acp/commands/a.md", "A");
    let folder = site.project().join(".acp/commands");
    symlink("../../docs/review.md", folder.join("review.md")).unwrap();
    symlink(
        site.folder.path().join("secret/key.md"),
        folder.join("key.md"),
    )
    .unwrap();
    symlink("../../../secret", folder.join("all")).unwrap();
    symlink(".", folder.join("again")).unwrap();
    symlink("../../secret", site.project().join(".opencode")).unwrap();
    let commands = site.load().await;
    let found = names(&commands);
    assert!(found.contains(&"a".to_owned()) && !found.iter().any(|name| name.contains("key")));
    assert!(
        commands
            .problems()
            .iter()
            .any(|problem| problem.path.ends_with("key.md"))
    );
    assert!(!format!("{commands:?}").contains("secret\""));
}

struct Silent;

impl Handler for Silent {
    type State = ();

    async fn prompt(&self, (): &mut (), _: Turn) -> HandlerResult<StopReason> {
        Ok(StopReason::EndTurn)
    }
}

#[tokio::test(start_paused = true)]
async fn changed_files_are_announced_until_the_session_ends() {
    let site = Site::new();
    let path = site.user().join("a.md");
    let (project, user) = (site.project(), site.user());
    let server = Server::new(Silent);
    let session = server
        .create_session(project.to_str().unwrap())
        .await
        .unwrap();
    let mut commands = Commands::load(&project, [user]).await.watch(&session);
    let shown = |session: &Session| {
        let settings = session.settings();
        let commands = settings.available_commands().iter();
        commands
            .map(|command| command.name.clone())
            .collect::<Vec<_>>()
    };
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "A").unwrap();
    commands.changed().await.unwrap();
    assert_eq!(expanded(&commands.borrow(), "/a"), "A");
    fs::write(&path, "longer").unwrap();
    commands.changed().await.unwrap();
    assert_eq!(expanded(&commands.borrow(), "/a"), "longer");
    assert_eq!(
        shown(&session),
        ["a"],
        "the first change is announced before the second is read"
    );
    fs::remove_file(&path).unwrap();
    commands.changed().await.unwrap();
    assert_eq!(names(&commands.borrow()), [""; 0]);
    server.close_session(session.id()).await.unwrap();
    assert!(
        commands.changed().await.is_err(),
        "the files are still followed"
    );
}
