//! The log of `acp-server serve`: what it shows, what it never shows, and where it goes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use crate::serve::{Server, TOKEN, User, text, token_file};

/// Secrets that reach the log in the ways that are possible.
const SECRETS: [&str; 6] = [
    TOKEN,
    "a-token-that-only-reads",
    "value-of-a-variable",
    "after-bearer",
    "in-a-query",
    "of-a-ticket",
];

/// Writes them to standard error, and to standard output, where only messages belong.
const AGENT: &str = r#"
for word in "$NOT_A_NAME" "$NEITHER" "$MY_ApiKey" "Authorization: Bearer after-bearer" \
    "GET /acp?token=in-a-query&ticket=of-a-ticket HTTP/1.1"; do
    echo "agent says $word" >&2
    echo "agent says $word"
done
exec "$0" --store memory --log off
"#;

fn lines(log: &str) -> Vec<Value> {
    let lines = log.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().expect(log)
}

#[test]
fn no_secret_appears_in_the_log() {
    for format in ["text", "json"] {
        let user = User::new();
        let path = |name: &str| user.0.path().join(name).to_str().unwrap().to_owned();
        let (token, errors) = (token_file(&user), path("errors"));
        fs::write(path("reader"), SECRETS[1]).unwrap();
        let mut command = user.command(&["serve", "--store", "memory", "--port", "0"]);
        command.args([
            "--token-file",
            &token,
            "--read-only-token-file",
            &path("reader"),
        ]);
        command.args(["--log-requests", "--log", "debug", "--log-format", format]);
        command.args(["--error-log", &errors]);
        command.args(["--", "sh", "-c", AGENT, env!("CARGO_BIN_EXE_acp-server")]);
        command.env("NOT_A_NAME", TOKEN).env("NEITHER", SECRETS[1]);
        command.env("MY_ApiKey", SECRETS[2]);
        let mut server = Server::start(command);
        server.get("/session/s?ticket=of-a-ticket", Some("after-bearer"));
        server.get("/session/s?token=in-a-query", Some(TOKEN));
        server.says("404");
        let stopped = user.run(&["stop", "--all"]);
        assert!(stopped.status.success(), "{}", text(&stopped.stderr));
        assert_eq!(server.end(), Some(0), "{}", server.said);
        let errors = fs::read_to_string(errors).unwrap();
        for log in [&server.said, &errors] {
            assert!(log.contains("agent says [redacted]"), "{log}");
            for secret in SECRETS {
                assert!(!log.contains(secret), "{secret}: {log}");
            }
        }
        let from_agent = server.said.matches("acp_server::agent").count();
        assert_eq!(from_agent, 6, "{}", server.said);
        let mut warnings = lines(&errors).into_iter();
        let warning = warnings.find(|line| line["target"] == "acp_server::agent");
        let warning = warning.unwrap();
        assert_eq!(warning["level"], "WARN");
        assert_eq!(warning["agent"], "sh");
        if format == "json" {
            assert!(
                lines(&server.said)
                    .iter()
                    .all(|line| line["timestamp"].is_string())
            );
        }
    }
}

#[test]
fn the_first_lines_say_where_things_are() {
    let user = User::new();
    let path = |name: &str| user.0.path().join(name).to_str().unwrap().to_owned();
    let (store, errors) = (path("sessions.db"), path("errors"));
    let mut command = user.command(&["serve", "--port", "0", "--store", &store]);
    command.args([
        "--error-log",
        &errors,
        "--keep",
        "30d",
        "--keep-bytes",
        "1G",
    ]);
    let server = Server::start(command);
    for expected in [
        "listening on http://127.0.0.1:",
        &format!("store: {}", fs::canonicalize(&store).unwrap().display()),
        "log: ",
        &format!("error log: {errors}"),
        "retention: sessions of the last 2592000 s, at most 1073741824 bytes\n",
        "endpoints: /acp",
        "page: http://127.0.0.1:",
        "token: in ",
        "discovery file: ",
    ] {
        assert!(
            server.said.contains(expected),
            "{expected}: {}",
            server.said
        );
    }
    let server = user.serve(&[]);
    assert!(server.said.contains("store: memory"), "{}", server.said);
    assert!(server.said.contains("retention: none"), "{}", server.said);
}

#[test]
fn the_filter_says_what_is_logged() {
    let user = User::new();
    let command = ["serve", "--store", "memory", "--port", "0"];
    let mut quiet = user.command(&command);
    quiet.args(["--log", "warn,acp_server_cli=info"]);
    quiet.args(["--", "sh", "-c", AGENT, env!("CARGO_BIN_EXE_acp-server")]);
    let server = Server::start(quiet);
    assert!(
        server.said.contains("INFO acp_server_cli"),
        "{}",
        server.said
    );
    assert!(
        !server.said.contains("INFO acp_server::agent"),
        "{}",
        server.said
    );
    for (option, value) in [
        ("--log", "a=loud"),
        ("--log-format", "xml"),
        ("--error-log", "/no/x"),
    ] {
        let (code, said) = user.fails(&[&command[..], &[option, value]].concat());
        assert!(code == 2 && said.contains(value), "{said}");
    }
}

#[test]
fn a_failure_is_in_the_error_log_whatever_is_shown() {
    let user = User::new();
    let errors = user.0.path().join("errors");
    let other = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = other.local_addr().unwrap().port().to_string();
    let command = [
        "serve", "--store", "memory", "--port", &port, "--log", "off",
    ];
    let (code, said) =
        user.fails(&[&command[..], &["--error-log", errors.to_str().unwrap()]].concat());
    assert_eq!((code, said.as_str()), (1, ""));
    let lines = lines(&fs::read_to_string(errors).unwrap());
    assert_eq!((lines.len(), &lines[0]["level"]), (1, &"ERROR".into()));
    let message = lines[0]["message"].as_str().unwrap();
    assert!(message.starts_with("cannot listen on"), "{message}");
}

/// Everything that `docs/operations.md` names.
fn document() -> String {
    read("../../docs/operations.md")
}

fn read(path: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn commands_and_options_of_the_document_exist() {
    let document = document();
    let user = User::new();
    let help = |args: &[&str]| text(&user.run(&[args, &["--help"]].concat()).stdout);
    let all = [
        &[][..],
        &["serve"],
        &["host"],
        &["stop"],
        &["status"],
        &["sessions"],
        &["sessions", "backup"],
        &["sessions", "check"],
    ];
    let known = all.map(help).concat();
    let mut options = 0;
    for word in document.split(|c: char| c.is_whitespace() || "`(),;".contains(c)) {
        if word.starts_with("--") && word.len() > 2 {
            let option = word.split(['=', '.', ':']).next().unwrap();
            let listed =
                known.contains(&format!("{option} ")) || known.contains(&format!("{option}\n"));
            assert!(listed, "no command has the option {option}");
            options += 1;
        }
    }
    assert!(options > 10, "{options}");
    for line in document.lines() {
        let Some(command) = line.trim().strip_prefix("acp-server sessions ") else {
            continue;
        };
        let command = command.split(' ').next().unwrap();
        let listed = help(&["sessions"]).contains(&format!("\n  {command} "));
        assert!(listed, "no command `acp-server sessions {command}`");
    }
}

#[test]
fn every_warning_and_error_is_in_the_document() {
    let document = document();
    let server = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let rooms = ["src", "cli/src", "host/src", "reference/src", "remote/src"];
    let mut files = rooms.map(|room| server.join(room)).to_vec();
    let mut found = 0;
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
            continue;
        }
        let source = fs::read_to_string(&path).unwrap();
        let places = ["tracing::warn!(", "tracing::error!(", "log_repeated!("];
        let events = places.iter().flat_map(|place| source.split(place).skip(1));
        for event in events.filter(|event| !event.trim_start().starts_with("info")) {
            let arguments = event.split(");").next().unwrap();
            let Some((_, message)) = arguments.split_once('"') else {
                continue;
            };
            let message = message.split(['"', '{']).next().unwrap().trim();
            // What begins with a value has its text elsewhere.
            if message.len() > 3 {
                let place = path.display();
                assert!(
                    document.contains(message),
                    "{place}: {message:?} is not explained"
                );
                found += 1;
            }
        }
    }
    assert!(found > 5, "{found}");
}

#[test]
fn the_document_has_the_metrics_that_exist() {
    let user = User::new();
    let server = user.serve(&["--token-file", &token_file(&user)]);
    assert_eq!(server.get("/healthz", None).status, 200);
    let metrics = server.get("/metrics", Some(TOKEN)).body;
    let document = document();
    let names = document.split("`acp_server_").skip(1);
    let documented: BTreeSet<&str> = names
        .map(|name| name.split(['`', '{']).next().unwrap())
        .collect();
    let types = metrics.lines().filter_map(|line| {
        let (name, kind) = line.strip_prefix("# TYPE acp_server_")?.split_once(' ')?;
        Some((name, if kind == "counter" { "_total" } else { "" }))
    });
    let existing: BTreeMap<String, &str> = types
        .map(|(name, suffix)| {
            let help = format!("# HELP acp_server_{name} ");
            let help = metrics.lines().find_map(|line| line.strip_prefix(&help));
            (format!("{name}{suffix}"), help.unwrap())
        })
        .collect();
    assert!(existing.len() > 10, "{metrics}");
    let missing = existing
        .iter()
        .filter(|(name, _)| !documented.contains(name.as_str()))
        .map(|(name, help)| format!("| `acp_server_{name}` | {help} |"));
    let missing: Vec<_> = missing.collect();
    assert!(
        missing.is_empty(),
        "add to docs/operations.md:\n{}",
        missing.join("\n")
    );
    // Those of nodes exist with a store that servers share: a test of `acp-server-cluster` compares them.
    let stale = documented
        .iter()
        .filter(|name| !name.starts_with("node") && !existing.contains_key(**name));
    assert_eq!(stale.collect::<Vec<_>>(), [&""; 0], "not in /metrics");
}

#[test]
fn at_debug_events_name_their_request() {
    let user = User::new();
    let mut command = user.command(&[
        "--store",
        "memory",
        "--log",
        "debug",
        "--log-format",
        "json",
    ]);
    let input = user.0.path().join("input");
    let messages = [
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#,
        r#"{"jsonrpc":"2.0","id":"new","method":"session/new","params":{"cwd":"/w","mcpServers":[]}}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"x","prompt":[]}}"#,
    ];
    fs::write(&input, messages.join("\n") + "\n").unwrap();
    command.stdin(fs::File::open(input).unwrap());
    let output = command.output().unwrap();
    let lines = lines(&text(&output.stderr));
    let find = |message: &str| {
        let found = lines.iter().find(|line| line["message"] == message);
        found.unwrap_or_else(|| panic!("{message}: {lines:?}"))
    };
    let opened = find("opened a session");
    assert!(opened["session"].is_string());
    assert_eq!(opened["span"]["method"], "session/new");
    assert_eq!(opened["span"]["id"], "\"new\"");
    let refused = find("answered a request with an error");
    assert_eq!(
        (&refused["method"], &refused["id"]),
        (&"session/prompt".into(), &"2".into())
    );
    assert_eq!(refused["code"], -32002);
}
