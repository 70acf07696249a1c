//! The commands `serve`, `status` and `stop`, as processes.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::answer::Answer;

pub(crate) const TOKEN: &str = "a-token-of-some-length";

/// A user's run folder, in which nothing runs yet.
pub(crate) struct User(pub(crate) TempDir);

/// A server, killed when dropped.
pub(crate) struct Server {
    pub(crate) child: Child,
    stderr: BufReader<ChildStderr>,
    /// What it has written to standard error so far.
    pub(crate) said: String,
    pub(crate) port: u16,
}

impl User {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_acp-server"));
        command.args(args).env("XDG_RUNTIME_DIR", self.0.path());
        command
            .env("HOME", self.0.path())
            .env_remove("ACP_SERVER_TOKEN");
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs a command that fails. Returns its exit code and its last words.
    pub(crate) fn fails(&self, args: &[&str]) -> (i32, String) {
        let output = self.run(args);
        (output.status.code().unwrap(), text(&output.stderr))
    }

    pub(crate) fn serve(&self, args: &[&str]) -> Server {
        let mut all = vec!["serve", "--store", "memory", "--port", "0"];
        all.extend(args);
        Server::start(self.command(&all))
    }

    pub(crate) fn file(&self, port: u16) -> PathBuf {
        let name = format!("acp-server/acp-server-{port}.json");
        self.0.path().join(name)
    }

    /// Returns the token that a server has made.
    pub(crate) fn token(&self, server: &Server) -> String {
        let path = self.file(server.port).with_extension("token");
        fs::read_to_string(path).unwrap().trim_end().to_owned()
    }

    fn announcement(&self, port: u16) -> Value {
        serde_json::from_slice(&fs::read(self.file(port)).unwrap()).unwrap()
    }
}

impl Server {
    /// Starts a server and waits until it listens.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains("discovery file") {
            assert_ne!(stderr.read_line(&mut said).unwrap(), 0, "{said}");
        }
        let address = said.split_once("://").unwrap().1;
        let port = address.split_once("/acp").unwrap().0.rsplit(':').next();
        let port = port.unwrap().parse().unwrap();
        Self {
            child,
            stderr,
            said,
            port,
        }
    }

    pub(crate) fn get(&self, path: &str, token: Option<&str>) -> Answer {
        self.send("GET", path, token, "")
    }

    pub(crate) fn post(&self, path: &str, token: &str, body: &str) -> Answer {
        self.send("POST", path, Some(token), body)
    }

    /// Posts with an idempotency key.
    pub(crate) fn post_once(&self, path: &str, token: &str, key: &str, body: &str) -> Answer {
        let key = format!("Idempotency-Key: {key}\r\n");
        self.send_with("POST", path, Some(token), &key, body)
    }

    pub(crate) fn send(&self, method: &str, path: &str, token: Option<&str>, body: &str) -> Answer {
        self.send_with(method, path, token, "", body)
    }

    fn send_with(
        &self,
        method: &str,
        path: &str,
        token: Option<&str>,
        headers: &str,
        body: &str,
    ) -> Answer {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let length = body.len();
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n{headers}"
        );
        if let Some(token) = token {
            request += &format!("Authorization: Bearer {token}\r\n");
        }
        let request = format!("{request}\r\n{body}");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        Answer::parse(&answer)
    }

    /// Reads standard error up to a text.
    pub(crate) fn says(&mut self, text: &str) {
        while !self.said.contains(text) {
            let read = self.stderr.read_line(&mut self.said).unwrap();
            assert_ne!(read, 0, "expected {text:?}, got {}", self.said);
        }
    }

    /// Waits for the end. Returns the exit code.
    pub(crate) fn end(&mut self) -> Option<i32> {
        self.stderr.read_to_string(&mut self.said).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

pub(crate) fn token_file(user: &User) -> String {
    let path = user.0.path().join("token");
    fs::write(&path, format!("{TOKEN}\n")).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn on_loopback_a_token_is_made_and_kept_where_only_the_user_reads_it() {
    let user = User::new();
    let server = user.serve(&[]);
    let file = user.file(server.port);
    assert!(
        server.said.contains(file.to_str().unwrap()),
        "{}",
        server.said
    );
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    let known = user.announcement(server.port);
    assert_eq!(known["pid"], server.child.id());
    assert_eq!(known["port"], server.port);
    assert_eq!(
        (&known["host"], &known["scheme"]),
        (&"127.0.0.1".into(), &"http".into())
    );
    assert_eq!(known["auth"], "generated");
    assert_eq!(known["prefix"], "acp-server");
    assert!(known["started_at"].as_f64().unwrap() > 1e9, "{known}");
    let hash = known["auth_token_hash"].as_str().unwrap();
    let expected = user
        .token(&server)
        .parse::<acp_server_remote::Token>()
        .unwrap();
    assert_eq!(hash, expected.fingerprint());
    let token = &user.token(&server);
    assert_eq!((token.len(), known.get("token")), (64, None));
    assert_eq!(mode(&file.with_extension("token")), 0o600);
    assert!(!server.said.contains(token), "{}", server.said);

    let health = server.get("/healthz", None).body;
    assert!(health.starts_with(r#"{"status":"ok""#), "{health}");
    assert_eq!(server.get("/nothing", None).status, 401);
    assert_eq!(server.get("/nothing", Some(token)).status, 404);
}

#[test]
fn tokens_come_from_a_file_or_the_environment_and_are_not_announced() {
    let user = User::new();
    let file = token_file(&user);
    let server = user.serve(&["--token-file", &file]);
    assert_eq!(server.get("/nothing", Some(TOKEN)).status, 404);
    let answer = server.post("/openoxide/prompt", TOKEN, "{}");
    assert!(answer.body.contains("\"not_found\""), "{}", answer.body);
    let known = user.announcement(server.port);
    assert_eq!(
        (known["auth"].as_str(), known.get("token")),
        (Some("token"), None)
    );
    assert!(!server.said.contains(TOKEN), "{}", server.said);
    assert!(
        server.said.contains("chmod 600"),
        "others can read it: {}",
        server.said
    );

    let mut command = user.command(&["serve", "--store", "memory", "--port", "0"]);
    command.env("ACP_SERVER_TOKEN", "another-token-than-that");
    command.args(["--read-only-token-file", &file]);
    let server = Server::start(command);
    assert_eq!(
        server
            .get("/nothing", Some("another-token-than-that"))
            .status,
        404
    );
    let page = server.get("/", None);
    assert_eq!(page.status, 200, "the page asks for the token itself");
    assert!(page.body.contains("<title>Agent</title>"));
    assert!(!page.body.contains("another-token-than-that"));
    // A reader gets as far as the connection that the request lacks.
    assert_eq!(server.get("/acp", Some(TOKEN)).status, 400);
    assert_eq!(
        server
            .get("/nothing", Some("neither-of-them-at-all"))
            .status,
        401
    );
}

#[test]
fn wrong_usage_ends_with_2_before_anything_is_bound() {
    let user = User::new();
    let file = token_file(&user);
    let elsewhere = [
        "serve", "--store", "memory", "--port", "0", "--host", "0.0.0.0",
    ];
    let with = |more: &[&'static str]| [&elsewhere[..], more].concat();
    for (args, expected) in [
        (elsewhere.to_vec(), "needs a token"),
        (with(&["--insecure"]), "needs a token"),
        (
            vec!["serve", "--tls-cert", "x"],
            "--tls-cert needs --tls-key",
        ),
        (
            vec!["serve", "--tls-key", "x"],
            "--tls-key needs --tls-cert",
        ),
        (
            vec!["serve", "--tls-client-ca", "x"],
            "--tls-client-ca needs",
        ),
        (
            vec!["serve", "--tls-cert", "/no", "--tls-key", "/no"],
            "cannot read /no",
        ),
        (
            vec!["serve", "--token-file", "/no"],
            "cannot read the token file /no",
        ),
        (vec!["serve", "--cors", "*"], "expected an origin"),
        (
            vec!["serve", "--dialect", "otter-acp"],
            "this protocol has no HTTP. Use `acp-server --dialect otter-acp`",
        ),
        (
            vec!["serve", "--dialect", "otter-http-acp"],
            "which need no option",
        ),
        (
            vec!["serve", "--dialect", "lsp"],
            "expected `openoxide` or `auto`",
        ),
        (vec!["serve", "--allow-host", "a b"], "expected a host"),
        (vec!["serve", "--token", TOKEN], "--token"),
        (vec!["stop", "--port", "1", "--all"], "--all"),
    ] {
        let (code, said) = user.fails(&args);
        assert_eq!(code, 2, "{args:?}: {said}");
        assert!(said.contains(expected), "{args:?}: {said}");
    }
    let mut args = elsewhere.to_vec();
    args.extend(["--token-file", &file]);
    let (code, said) = user.fails(&args);
    assert!(code == 2 && said.contains("--insecure"), "{said}");
    fs::write(&file, "short").unwrap();
    let (code, said) = user.fails(&["serve", "--token-file", &file]);
    assert!(
        code == 2 && said.contains("16 to 1024") && !said.contains("short"),
        "{said}"
    );
    assert!(!user.file(5173).exists());
}

#[test]
fn with_token_and_consent_other_machines_are_served() {
    let user = User::new();
    let file = token_file(&user);
    let server = user.serve(&["--host", "0.0.0.0", "--token-file", &file, "--insecure"]);
    assert_eq!(server.get("/healthz", None).status, 200);
    assert_eq!(user.announcement(server.port)["host"], "0.0.0.0");
}

#[test]
fn a_second_server_on_a_port_names_the_first() {
    let user = User::new();
    let server = user.serve(&[]);
    let port = server.port.to_string();
    let (code, said) = user.fails(&["serve", "--store", "memory", "--port", &port]);
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains(&port) && said.contains(&server.child.id().to_string()),
        "{said}"
    );
    assert_eq!(user.announcement(server.port)["pid"], server.child.id());

    // A port that another program has.
    let other = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = other.local_addr().unwrap().port();
    let (code, said) = user.fails(&["serve", "--store", "memory", "--port", &port.to_string()]);
    assert!(code == 1 && said.contains("cannot listen on"), "{said}");
    assert!(!user.file(port).exists());
}

#[test]
fn a_killed_server_is_stale_and_replaced() {
    let user = User::new();
    let mut server = user.serve(&[]);
    let port = server.port.to_string();
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let shown = text(&user.run(&["status"]).stdout);
    assert!(shown.contains(&port) && shown.contains("stale"), "{shown}");

    let again = user.command(&["serve", "--store", "memory", "--port", &port]);
    let again = Server::start(again);
    assert_eq!(user.announcement(again.port)["pid"], again.child.id());
    let shown = text(&user.run(&["status"]).stdout);
    assert!(
        shown.contains("alive") && !shown.contains("stale"),
        "{shown}"
    );
    drop(again);
    let output = user.run(&["stop"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(!user.file(server.port).exists(), "stale files are removed");
}

#[test]
fn status_and_stop_find_all_servers_of_the_user() {
    let user = User::new();
    let output = user.run(&["status"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout), "No acp-server is running.\n");
    assert_eq!(user.run(&["stop"]).status.code(), Some(0));
    let output = user.run(&["stop", "--port", "1", "--serve-timeout", "1"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout), "No acp-server runs on port 1.\n");

    let (mut first, mut second) = (user.serve(&[]), user.serve(&[]));
    let mut third = user.serve(&[]);
    let shown = text(&user.run(&["status"]).stdout);
    for server in [&first, &second, &third] {
        let pid = server.child.id().to_string();
        let line = shown.lines().find(|line| line.contains(&pid)).unwrap();
        assert!(line.starts_with(&server.port.to_string()), "{shown}");
        assert!(line.contains("alive") && line.contains("http") && line.contains("generated"));
    }
    assert!(!shown.contains("token\""), "{shown}");
    let (code, said) = user.fails(&["stop"]);
    assert!(code == 2 && said.contains("--all"), "{said}");

    let output = user.run(&["stop", "--port", &second.port.to_string()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(second.end(), Some(0));
    assert!(!user.file(second.port).exists());
    assert_eq!(user.run(&["stop", "--all"]).status.code(), Some(0));
    assert_eq!((first.end(), third.end()), (Some(0), Some(0)));
    assert_eq!(
        text(&user.run(&["status"]).stdout),
        "No acp-server is running.\n"
    );
}

#[cfg(unix)]
#[test]
fn signals_end_a_server_and_remove_its_file() {
    use rustix::process::{Pid, Signal, kill_process};
    let user = User::new();
    for signal in [Signal::TERM, Signal::INT] {
        let mut server = user.serve(&[]);
        let idle = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        let pid = i32::try_from(server.child.id()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
        assert_eq!(server.end(), Some(0), "{}", server.said);
        assert!(server.said.contains("stopping"), "{}", server.said);
        assert!(!user.file(server.port).exists());
        drop(idle);
    }
}

#[cfg(unix)]
#[test]
fn an_open_stream_does_not_delay_the_end() {
    use rustix::process::{Pid, Signal, kill_process};
    let user = User::new();
    let mut server = user.serve(&[]);
    let token = user.token(&server);
    let open = |method: &str, headers: &str, body: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        let length = body.len();
        let request = format!(
            "{method} /acp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
             {headers}Content-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        stream
    };
    let initialize =
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
    let headers = "Content-Type: application/json\r\nConnection: close\r\n";
    let mut answer = String::new();
    let mut stream = open("POST", headers, initialize);
    stream.read_to_string(&mut answer).unwrap();
    let answer = Answer::parse(&answer);
    assert_eq!(answer.status, 200, "{answer:?}");
    let id = answer.header("acp-connection-id").unwrap();

    let headers = format!("Acp-Connection-Id: {id}\r\nAccept: text/event-stream\r\n");
    let mut events = BufReader::new(open("GET", &headers, ""));
    let mut first = String::new();
    events.read_line(&mut first).unwrap();
    assert!(first.contains("200"), "{first}");

    let pid = i32::try_from(server.child.id()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
    let mut rest = String::new();
    events.read_to_string(&mut rest).unwrap();
    assert!(
        rest.ends_with("0\r\n\r\n"),
        "the stream ends as it should: {rest:?}"
    );
    assert_eq!(server.end(), Some(0), "{}", server.said);
}

#[cfg(unix)]
#[test]
fn a_hangup_loads_the_certificate_again() {
    use rustix::process::{Pid, Signal, kill_process};
    let user = User::new();
    let key = rcgen::KeyPair::generate().unwrap();
    let names = vec!["localhost".to_owned()];
    let params = rcgen::CertificateParams::new(names).unwrap();
    let path = |name: &str| user.0.path().join(name).to_str().unwrap().to_owned();
    let (cert, key_file) = (path("cert.pem"), path("key.pem"));
    fs::write(&cert, params.self_signed(&key).unwrap().pem()).unwrap();
    fs::write(&key_file, key.serialize_pem()).unwrap();
    let mut server = user.serve(&["--tls-cert", &cert, "--tls-key", &key_file]);
    assert!(
        server.said.contains("listening on https://"),
        "{}",
        server.said
    );
    assert_eq!(user.announcement(server.port)["scheme"], "https");
    let pid = Pid::from_raw(i32::try_from(server.child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::HUP).unwrap();
    server.says("loaded the TLS certificate again");
}

#[cfg(unix)]
#[test]
fn a_server_without_run_folder_of_the_session_uses_the_state_folder() {
    let user = User::new();
    let mut command = user.command(&["serve", "--store", "memory", "--port", "0"]);
    command
        .env_remove("XDG_RUNTIME_DIR")
        .env_remove("XDG_STATE_HOME");
    let server = Server::start(command);
    let folder = user.0.path().join(".local/state/acp-server");
    assert!(
        folder
            .join(format!("acp-server-{}.json", server.port))
            .exists()
    );
}

#[test]
fn requests_are_logged_without_what_is_secret_if_that_is_wanted() {
    let user = User::new();
    let file = token_file(&user);
    let dialect = ["--dialect", "openoxide"];
    let mut server =
        user.serve(&[&["--token-file", &file, "--log-requests"][..], &dialect].concat());
    let prompt = r#"{"session_id":"none","content":[{"type":"text","text":"ping"}]}"#;
    let answer = server.post("/openoxide/prompt", TOKEN, prompt);
    assert_eq!(answer.status, 404);
    assert!(answer.body.contains("session_not_found"), "{}", answer.body);
    assert_eq!(server.get("/session/s?ticket=secret", None).status, 401);
    assert_eq!(server.get("/metrics", Some(TOKEN)).status, 200);
    server.says("path=\"/metrics\" status=200");
    let said = &server.said;
    assert!(
        said.contains("method=GET path=\"/session/s\" status=401 milliseconds="),
        "{said}"
    );
    assert!(!said.contains("ticket") && !said.contains(TOKEN), "{said}");
}
