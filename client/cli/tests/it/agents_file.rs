//! `--agents FILE`: agents of a file in TOML, for `acp agents`, `acp run` and others.

use serde_json::json;

use super::agents::{Home, server};
use super::mechanisms::mechanisms;
use super::script::script;

/// Says what it was started with, and what its session is set to.
const TELLER: &str = r#"
answer '{"protocolVersion":1}'
options='[{"id":"llm","name":"Model","category":"model","type":"select","currentValue":"slow","options":[{"value":"slow","name":"Slow"},{"value":"fast","name":"Fast"}]},{"id":"loud","name":"Loud","type":"boolean","currentValue":false}]'
answer '{"sessionId":"s","configOptions":'"$options"'}'
heard="$WHO ${GONE-gone} in ${PWD##*/};"
while message; do
  case $line in
    *session/prompt*) prompt=$id; say "$heard"; end end_turn ;;
    *session/set*) heard="$heard$(quoted);"; send '{"jsonrpc":"2.0","id":'"$id"',"result":{"configOptions":'"$options"'}}' ;;
  esac
done
"#;

fn words(agent: &str) -> String {
    json!(["sh", "-c", script(agent)]).to_string()
}

fn write(home: &Home, text: &str) -> String {
    home.write("agents.toml", text);
    home.path("agents.toml").to_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_agent_of_a_file_is_run_as_the_file_says() {
    let home = Home::new();
    std::fs::create_dir(home.path("project")).unwrap();
    std::fs::create_dir(home.path("other")).unwrap();
    let directory = json!(home.path("project")).to_string();
    let file = write(
        &home,
        &format!(
            "[[agents]]\nname = \"teller\"\ncommand = {}\ndirectory = {directory}\nenv = {{ WHO = \"Bob\" }}\n\
             env_remove = [\"GONE\"]\nmodel = \"fast\"\noptions = {{ loud = \"on\" }}\n",
            words(TELLER)
        ),
    );
    let other = home.path("other").to_str().unwrap().to_owned();
    for (args, said) in [
        (
            &[][..],
            ["Bob gone in project;", "'value':'fast'", "'value':true"],
        ),
        (
            &["--model", "slow", "--option", "loud=off", "--cwd", &other],
            ["Bob gone in other;", "'value':'slow'", "'value':false"],
        ),
    ] {
        let mut command = home.command(&["run", "--approve-all", "--agents", &file]);
        command
            .args(args)
            .args(["teller", "hi"])
            .env("GONE", "here");
        let ended = super::acp::Acp::spawn(command).end().await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        for part in said {
            assert!(ended.stdout.contains(part), "{part}: {}", ended.stdout);
        }
    }
}

#[tokio::test]
async fn the_agents_of_a_file_are_listed_first() {
    let home = Home::new();
    let mut configured = server("start; prompt; say \"$WHO $KEY\"; end end_turn; message");
    configured["env"] = json!({"WHO": "Bob", "KEY": "old"});
    home.configure(&json!({"own": {"command": "sh"}, "bob": configured}));
    let file = write(
        &home,
        "[[agents]]\nname = \"own\"\ncommand = \"no-such-program\"\ndescription = \"It works\"\n\
         [[agents]]\nname = \"bobby\"\nagent = \"bob\"\nenv = { KEY = \"new\" }\n\
         [[agents]]\nname = \"lost\"\nagent = \"nobody\"\n\
         [[agents]]\nname = \"guest\"\ncommand = \"sh\"\nuser = \"guest\"\n",
    );
    let ended = home
        .acp(&["agents", "--agents", &file, "--format", "json"])
        .await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let lines = ended.lines();
    let found: Vec<_> = lines
        .iter()
        .map(|line| ["name", "source", "status"].map(|member| line[member].as_str().unwrap()))
        .collect();
    assert_eq!(
        found,
        [
            ["own", "file", "missing"],
            ["bobby", "file", "found"],
            ["lost", "file", "unusable"],
            ["guest", "file", "unusable"],
            ["bob", "acp", "found"],
            ["own", "acp", "found"],
        ]
    );
    assert_eq!(lines[0]["description"], "It works");
    for (row, reason) in [
        (2, "`agent`: no agent is configured as `nobody`"),
        (3, "`user`"),
    ] {
        let told = lines[row]["reason"].as_str().unwrap();
        assert!(told.contains(reason), "{told}");
    }
    let ended = home
        .acp(&["run", "--deny-all", "--agents", &file, "bobby", "hi"])
        .await;
    assert_eq!(ended.stdout, "Bob new\n", "{}", ended.stderr);
}

#[tokio::test]
async fn what_a_file_cannot_say_is_an_error_with_its_place() {
    let home = Home::new();
    let file = write(
        &home,
        "[[agents]]\nname = \"guest\"\ncommand = \"sh\"\nuser = \"guest\"\n\
         [[agents]]\nname = \"away\"\ncommand = \"sh\"\ndirectory = \"/nonexistent\"\n\
         [[agents]]\nname = \"set\"\ncommand = \"sh\"\nmodel = \"fast\"\n",
    );
    for (args, parts) in [
        (
            &["run", "--agents", &file, "guest", "hi"][..],
            ["agents.toml", "`guest`", "member `user`"],
        ),
        (
            &["chat", "--agents", &file, "guest"],
            ["agents.toml", "`guest`", "member `user`"],
        ),
        (
            &["mcp", "--agents", &file],
            ["agents.toml", "`guest`", "member `user`"],
        ),
        (
            &["mcp", "--agents", &file, "set"],
            ["agents.toml", "`set`", "member `model`"],
        ),
        (
            &["run", "--agents", &file, "away", "hi"],
            ["", "`away`", "member `directory`"],
        ),
        (
            &["run", "--agents", &file, "nobody", "hi"],
            ["guest, away, set", "`nobody`", ""],
        ),
        (
            &["agents", "--agents", "/nonexistent"],
            ["/nonexistent", "", ""],
        ),
        (
            &["run", "--agents", &file, "hi"],
            ["no agent is given", "", ""],
        ),
    ] {
        let ended = home.acp(args).await;
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
        for part in parts {
            assert!(ended.stderr.contains(part), "{args:?}: {}", ended.stderr);
        }
    }
}

/// A file that confines an agent confines it in every command.
#[tokio::test]
async fn the_sandbox_of_a_file_holds_wherever_the_agent_is_started() {
    let writer = "echo x > own; echo x > ../outside/own; echo x > ../added/own; \
                  answer '{\"protocolVersion\":1,\"agentCapabilities\":{\"sessionCapabilities\":{\"list\":{}}}}'; \
                  while message; do send '{\"jsonrpc\":\"2.0\",\"id\":'\"$id\"',\"result\":{\"sessions\":[]}}'; done";
    for mechanism in mechanisms() {
        for args in [
            &["sessions", "list", "--agent", "writer"][..],
            &["agents", "--check", "writer"],
            &["login", "--list", "writer"],
        ] {
            let home = Home::new();
            for name in ["project", "outside", "added"] {
                std::fs::create_dir(home.path(name)).unwrap();
            }
            let [directory, added] = ["project", "added"].map(|name| json!(home.path(name)));
            let file = write(
                &home,
                &format!(
                    "[[agents]]\nname = \"writer\"\ncommand = {}\ndirectory = {directory}\n\
                     sandbox = {{ mechanism = \"{mechanism}\", write = [{added}] }}\n",
                    words(writer)
                ),
            );
            let mut command = home.command(args);
            command.args(["--agents", &file]);
            let ended = super::acp::Acp::spawn(command).end().await;
            assert_eq!(ended.code, Some(0), "{args:?}: {}", ended.stderr);
            let written =
                ["project/own", "added/own", "outside/own"].map(|path| home.path(path).exists());
            assert_eq!(
                written,
                [true, true, false],
                "{args:?} {mechanism}: {}",
                ended.stderr
            );
        }
    }
}
