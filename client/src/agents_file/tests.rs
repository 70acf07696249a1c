use super::*;

fn parse(text: &str) -> Result<Vec<AgentEntry>, String> {
    let file = AgentsFile::parse("agents.toml", text);
    file.map(|file| file.agents)
        .map_err(|error| error.to_string())
}

#[test]
fn every_member_is_read() {
    let agents = parse(
        r#"
        theme = "of another program"
        [[agents]]
        name = "all"
        description = "Reviews"
        command = "sh -c 'a b'"
        directory = "/srv"
        env = { KEY = "secret" }
        env_remove = ["PROXY"]
        sandbox = { mechanism = "bubblewrap", write = ["/tmp/x"], network = false }
        model = "fast"
        mode = "ask"
        options = { thought_level = "high" }
        user = "agent"
        agent_process = "session"
        limits = { processes = 2, start_timeout = 1.5, answer_timeout = 3, terminals = 4, idle_timeout = 0, max_age = 60, max_memory = 7 }
        store = "all.db"
        [[agents]]
        name = "few"
        agent = "codex"
        sandbox = "landlock"
        "#,
    );
    let agents = agents.unwrap();
    assert_eq!(
        agents[0],
        AgentEntry {
            name: "all".to_owned(),
            description: Some("Reviews".to_owned()),
            start: AgentStart::Command(["sh", "-c", "a b"].map(OsString::from).to_vec()),
            directory: Some("/srv".into()),
            env: [("KEY".to_owned(), "secret".to_owned())].into(),
            env_remove: vec!["PROXY".to_owned()],
            sandbox: Some(EntrySandbox {
                mechanism: Mechanism::Bubblewrap,
                write: vec!["/tmp/x".into()],
                network: false,
            }),
            model: Some("fast".to_owned()),
            mode: Some("ask".to_owned()),
            options: [("thought_level".to_owned(), "high".to_owned())].into(),
            user: Some("agent".to_owned()),
            process_per_session: Some(true),
            limits: EntryLimits {
                processes: Some(2),
                start_timeout: Some(Duration::from_millis(1500)),
                answer_timeout: Some(Duration::from_secs(3)),
                terminals: Some(4),
                idle_timeout: Some(Duration::ZERO),
                max_age: Some(Duration::from_secs(60)),
                max_memory: Some(7),
            },
            store: Some("all.db".into()),
        }
    );
    assert_eq!(agents[1].start, AgentStart::Configured("codex".to_owned()));
    let sandbox = agents[1].sandbox.as_ref().unwrap();
    assert!(sandbox.mechanism == Mechanism::Landlock && sandbox.network);
    // Each member but those that every program uses can be refused.
    let all = [
        "directory",
        "env",
        "env_remove",
        "sandbox",
        "model",
        "mode",
        "options",
        "user",
        "agent_process",
        "limits",
        "store",
    ];
    for member in all {
        assert_eq!(agents[0].refuse(&[member]), Some(member));
        let has = agents[1].refuse(&[member]);
        assert_eq!(has, (member == "sandbox").then_some(member));
    }
    assert_eq!(agents[1].refuse(&["agent"]), Some("agent"));
    assert_eq!(agents[0].refuse(&["agent"]), None);
}

#[test]
fn errors_name_file_agent_and_member() {
    for (text, place, reason) in [
        ("", "agents.toml: ", "no table [[agents]]"),
        ("agents = 3", "agents.toml: ", "no table [[agents]]"),
        ("agents = [3]", "agent 1: ", "expected a table"),
        (
            "[[agents]]\ncommand = \"x\"",
            "agent 1: ",
            "it has no `name`",
        ),
        ("[[agents]]\nname = 3", "agent 1: member `name`: ", "string"),
        ("[[agents]]\nname = \"\"", "member `name`: ", "empty"),
        (
            "[[agents]]\nname = \"a/b\"",
            "agent `a/b`: member `name`: ",
            "letters, digits",
        ),
        (
            "[[agents]]\nname = \"a\"",
            "agent `a`: ",
            "either `command` or `agent`",
        ),
        (
            &one("command = []"),
            "agent `a`: member `command`: ",
            "empty",
        ),
        (
            &one("command = [\"\"]"),
            "agent `a`: member `command`: ",
            "empty",
        ),
        (
            &one("command = \"'\""),
            "member `command`: ",
            "cannot be split into words",
        ),
        (
            &one("command = 3"),
            "member `command`: ",
            "expected a text or a list of texts",
        ),
        (
            &with("comand = \"x\""),
            "agent `a`: member `comand`: ",
            "it is unknown; known are `name`",
        ),
        (
            &with("directory = \"a\"\nworkdir = \"b\""),
            "agent `a`: member `workdir`: ",
            "another name of `directory`",
        ),
        (
            &with("env = { A = 1 }"),
            "agent `a`: member `env`: ",
            "string",
        ),
        (
            &with("env = { \"A=B\" = \"x\" }"),
            "agent `a`: member `env`: ",
            "\"A=B\" is no variable",
        ),
        (
            &with("sandbox = \"chroot\""),
            "member `sandbox`: ",
            "landlock or bubblewrap",
        ),
        (
            &with("sandbox = { writes = [] }"),
            "member `sandbox.writes`: ",
            "unknown",
        ),
        (&with("sandbox = 3"), "member `sandbox`: ", "map"),
        (
            &with("agent_process = \"own\""),
            "`agent_process`: ",
            "`shared` or `session`, got `own`",
        ),
        (
            &with("limits = { processes = 0 }"),
            "member `limits.processes`: ",
            "from 1 on",
        ),
        (
            &with("limits = { max_age = -1 }"),
            "member `limits.max_age`: ",
            "-1",
        ),
        (
            &with("limits = { start_timeout = \"1\" }"),
            "`limits.start_timeout`: ",
            "seconds above 0",
        ),
        (&with("options = { a = 1 }"), "member `options`: ", "string"),
        (
            &format!("[[agents]]\nname = \"A\"\ncommand = \"x\"\n{}", with("")),
            "agents.toml: ",
            "two agents have the name `a`",
        ),
    ] {
        let error = parse(text).unwrap_err();
        assert!(
            error.starts_with("cannot use agents.toml: "),
            "{text}: {error}"
        );
        assert!(
            error.contains(place) && error.contains(reason),
            "{text}: {error}"
        );
    }
}

#[test]
fn a_value_of_a_variable_is_in_no_error() {
    let error = parse(&with("env = { KEY = \"secret\\u0000\" }")).unwrap_err();
    assert!(
        error.contains("KEY") && !error.contains("secret"),
        "{error}"
    );
}

fn one(line: &str) -> String {
    format!("[[agents]]\nname = \"a\"\n{line}")
}

fn with(line: &str) -> String {
    one(&format!("command = \"x\"\n{line}"))
}
