//! PostgreSQL in a temporary folder, which ends with the process of the tests.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use acp_server_postgres::{PostgresOptions, PostgresStore};

/// A shell that owns the server: it does what it reads from the pipe, and ends the server and removes
/// its folder when the pipe ends, also after a kill of this process. `$1` is the folder of the binaries, `$2`
/// the port, `$3` and `$4` certificate and key of a server with TLS.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
dir=$(mktemp -d "${TMPDIR:-/tmp}/acp-postgres.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
"$1/initdb" --no-sync -E UTF8 --locale=C -A trust -U acp -D "$dir/data" >"$dir/log" 2>&1 || {
    cat "$dir/log" >&2
    exit 1
}
bin=$1
port=$2
options='-c listen_addresses='
if [ -n "$3" ]; then
    (umask 077 && printf '%s' "$3" >"$dir/certificate.pem" && printf '%s' "$4" >"$dir/key.pem")
    options="-c listen_addresses=127.0.0.1 -c ssl=on -c ssl_cert_file=$dir/certificate.pem -c ssl_key_file=$dir/key.pem"
fi
start() {
    "$bin/postgres" -D "$dir/data" -p "$port" $options -c unix_socket_directories="$dir" \
        -c fsync=off -c full_page_writes=off -c max_connections=400 -c shared_buffers=64MB \
        </dev/null >>"$dir/log" 2>&1 &
    pid=$!
    tries=0
    until "$bin/pg_isready" -q -h "$dir" -p "$port"; do
        tries=$((tries + 1))
        if [ "$tries" -ge 1200 ] || ! kill -s 0 "$pid" 2>/dev/null; then
            cat "$dir/log" >&2
            exit 1
        fi
        sleep 0.05
    done
}
stop() {
    kill -INT "$pid"
    wait "$pid"
}
# PgBouncer, with fewer connections than its clients.
pooler() {
    cat >"$dir/pooler.ini" <<EOF
[databases]
* = host=$dir port=$port user=acp
[pgbouncer]
listen_port = 6432
unix_socket_dir = $dir
auth_type = any
pool_mode = transaction
default_pool_size = 3
max_client_conn = 100
EOF
    PATH=$PATH:/usr/sbin pgbouncer "$dir/pooler.ini" </dev/null >>"$dir/log" 2>&1 &
    pooler=$!
    until [ -S "$dir/.s.PGSQL.6432" ] || ! kill -s 0 "$pooler" 2>/dev/null; do
        sleep 0.05
    done
}
start
echo "$dir"
while read -r command; do
    $command
    echo done
done
[ -z "$pooler" ] || kill -KILL "$pooler"
kill -QUIT "$pid"
wait "$pid"
"#;

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    /// The folder of its socket.
    folder: PathBuf,
    shell: Mutex<Shell>,
}

#[derive(Debug)]
struct Shell {
    _process: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// Returns the server that the tests share; `None` if PostgreSQL is not installed.
pub(crate) fn shared() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER.get_or_init(Server::start).as_ref()
}

impl Server {
    /// Starts a server that has only a socket; `None` if PostgreSQL is not installed.
    pub(crate) fn start() -> Option<Self> {
        let server = Self::launch(&installed()?, 5432, ["", ""]);
        Some(server.expect("PostgreSQL has not started"))
    }

    /// Starts a server with the PEM texts of certificate and key, and returns its port of 127.0.0.1.
    pub(crate) fn start_with_tls(tls: [&str; 2]) -> Option<(Self, u16)> {
        let binaries = installed()?;
        // Another process may take a port that was free a moment ago.
        let started = (0..5).find_map(|_| {
            let free = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = free.local_addr().unwrap().port();
            drop(free);
            Some((Self::launch(&binaries, port, tls)?, port))
        });
        Some(started.expect("PostgreSQL has not started"))
    }

    /// Returns a running server; `None` if it ended. Its log is on stderr then.
    fn launch(binaries: &Path, port: u16, tls: [&str; 2]) -> Option<Self> {
        // It refuses to run as root.
        let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
        let mut command = match is_root {
            true => {
                let mut command = Command::new("setpriv");
                let user = ["--reuid=nobody", "--regid=nogroup", "--clear-groups"];
                command.args(user).arg("sh");
                command
            }
            false => Command::new("sh"),
        };
        let mut process = command
            .args(["-c", SCRIPT, "acp-postgres"])
            .arg(binaries)
            .arg(port.to_string())
            .args(tls)
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut shell = Shell {
            commands: process.stdin.take().unwrap(),
            answers: BufReader::new(process.stdout.take().unwrap()),
            _process: process,
        };
        let folder = shell.answer();
        if folder.is_empty() {
            return None;
        }
        Some(Self {
            folder: folder.into(),
            shell: Mutex::new(shell),
        })
    }

    /// Ends the server process; connections break.
    pub(crate) fn stop(&self) {
        self.shell.lock().unwrap().order("stop");
    }

    /// Starts it again.
    pub(crate) fn start_again(&self) {
        self.shell.lock().unwrap().order("start");
    }

    /// Starts PgBouncer and returns its URL; `None`, with the reason on stderr, if it is not installed.
    pub(crate) fn pooler(&self) -> Option<String> {
        self.shell.lock().unwrap().order("pooler");
        if self.folder.join(".s.PGSQL.6432").exists() {
            return Some(format!("{} port=6432", self.url()));
        }
        let required = std::env::var_os("ACP_POSTGRES_REQUIRED").is_some();
        assert!(!required, "PgBouncer has not started");
        eprintln!("skipped: PgBouncer is not installed");
        None
    }

    /// Returns the path of the socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join(".s.PGSQL.5432")
    }

    pub(crate) fn url(&self) -> String {
        format!("host={} user=acp dbname=postgres", self.folder.display())
    }

    /// Opens an empty store.
    pub(crate) async fn store(&self) -> PostgresStore {
        self.open(&options()).await
    }

    pub(crate) async fn open(&self, options: &PostgresOptions) -> PostgresStore {
        options.open(&self.url()).await.unwrap()
    }

    /// Opens a store and empties it, which takes less time than creating tables.
    pub(crate) async fn emptied(&self, options: &PostgresOptions) -> PostgresStore {
        let store = self.open(options).await;
        let schema = schema_of(options);
        let empty = format!(
            "TRUNCATE {schema}.acp_sessions, {schema}.acp_batches, {schema}.acp_derived, \
             {schema}.acp_prompts"
        );
        self.client().await.batch_execute(&empty).await.unwrap();
        store
    }

    /// Connects without the store.
    pub(crate) async fn client(&self) -> tokio_postgres::Client {
        let connected = tokio_postgres::connect(&self.url(), tokio_postgres::NoTls).await;
        let (client, connection) = connected.unwrap();
        tokio::spawn(connection);
        client
    }
}

impl Shell {
    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn order(&mut self, command: &str) {
        writeln!(self.commands, "{command}").unwrap();
        assert_eq!(self.answer(), "done", "{command}");
    }
}

/// Returns a schema that no other test has.
fn schema() -> String {
    static SCHEMAS: AtomicUsize = AtomicUsize::new(0);
    format!("t{}", SCHEMAS.fetch_add(1, Ordering::Relaxed))
}

/// Returns options of an empty store, in which nothing expires while a test runs.
pub(crate) fn options() -> PostgresOptions {
    PostgresOptions::new()
        .schema(schema())
        .pool_size(4)
        .heartbeat(Duration::from_secs(100))
        .fence(Duration::from_secs(200))
        .takeover(Duration::from_secs(300))
        .queue_timeout(Duration::from_secs(60))
        .connect_timeout(Duration::from_secs(60))
        .statement_timeout(Duration::from_secs(60))
}

/// Returns the schema of options.
pub(crate) fn schema_of(options: &PostgresOptions) -> String {
    let shown = format!("{options:?}");
    let (_, rest) = shown.split_once("schema: \"").unwrap();
    let (schema, _) = rest.split_once('"').unwrap();
    schema.to_owned()
}

/// Waits until a statement on the tables of a schema waits for a lock.
pub(crate) async fn blocked(server: &Server, schema: &str) {
    let client = server.client().await;
    let waiting = async {
        let sql = "SELECT 1 FROM pg_stat_activity
             WHERE wait_event_type = 'Lock' AND position($1 || '\"' in query) > 0";
        while client.query(sql, &[&schema]).await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    let waiting = tokio::time::timeout(Duration::from_secs(30), waiting).await;
    waiting.expect("no statement waits");
}

/// Returns the folder of the binaries; `None`, with the reason on stderr, if there are none.
fn installed() -> Option<PathBuf> {
    let binaries = binaries();
    if binaries.is_none() {
        let required = std::env::var_os("ACP_POSTGRES_REQUIRED").is_some();
        assert!(!required, "no `initdb` and `postgres` found");
        eprintln!("skipped: PostgreSQL is not installed (no `initdb` and `postgres` found)");
    }
    binaries
}

/// Returns the folder of the binaries of PostgreSQL, the newest that is installed.
fn binaries() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    if let Ok(versions) = Path::new("/usr/lib/postgresql").read_dir() {
        let mut versions: Vec<_> = versions.flatten().map(|entry| entry.path()).collect();
        versions.sort();
        folders.extend(
            versions
                .into_iter()
                .rev()
                .map(|version| version.join("bin")),
        );
    }
    folders.into_iter().find_map(|folder| {
        // `initdb` looks for its siblings where it is, and links lead there.
        let found = folder.join("initdb").canonicalize().ok()?;
        let folder = found.parent()?;
        folder.join("postgres").exists().then(|| folder.to_owned())
    })
}
