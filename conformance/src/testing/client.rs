//! A test of a client.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use super::{Test, names};
use crate::clients::{self, ClientEnv};
#[cfg(unix)]
use crate::clients::{Launched, Within};
use crate::harness::Interruption;
use crate::report::{Document, KnownFinding, Rerun, RunInfo};
use crate::requirements::Choice;
use crate::wire::{Schema, Version};
use crate::{Error, Result};

/// A test of a client, to be run by [`assert_conformant`](crate::assert_conformant).
///
/// The suite plays the agent. It acts a scenario each time: files, terminals, permission,
/// updates of the future, cancellation, the agent's death.
///
/// ```
/// use acp_client::{Client, Policy, Workspace};
/// use acp_conformance::{ClientTest, Launched, assert_conformant};
///
/// async fn say(agent: Launched) -> acp_client::Result<()> {
///     let client = Client::builder()
///         .workspace(Workspace::new())
///         .permissions(Policy::ApproveAll)
///         .connect((agent.reader, agent.writer))
///         .await?;
///     let session = client.new_session(&agent.folder).await?;
///     let mut turn = session.prompt(agent.prompt).await?;
///     loop {
///         tokio::select! {
///             event = turn.next() => if event.is_none() { break },
///             () = agent.interrupt.requested() => turn.cancel(),
///         }
///     }
///     turn.outcome().await?;
///     client.shutdown().await;
///     Ok(())
/// }
///
/// // In a `#[test]`; the whole suite without `only`.
/// assert_conformant(ClientTest::new(say).only(["hello", "cancellation"]));
/// ```
#[derive(Clone, Debug)]
pub struct ClientTest {
    start: Start,
    prompt: String,
    choice: Choice,
    protocol: Version,
    known: Vec<KnownFinding>,
    strict: bool,
    timeout: Duration,
}

#[derive(Clone)]
enum Start {
    Command(Commands),
    #[cfg(unix)]
    Within(Arc<dyn Fn(Arc<Schema>) -> Within + Send + Sync>),
}

/// The commands of a client, and the one that plays the agent.
#[derive(Clone)]
struct Commands {
    words: Vec<OsString>,
    without_terminals: Option<Vec<OsString>>,
    asking: Option<Vec<OsString>>,
    listing: Option<Vec<OsString>>,
    program: PathBuf,
}

impl ClientTest {
    /// A client in Rust: a function that drives the agent it is given, sends the prompt
    /// it is given, and returns. An error stands for a client that exits with code 1.
    ///
    /// It runs once for every scenario, on a runtime of its own, which ends what it leaves.
    #[cfg(unix)]
    #[must_use]
    pub fn new<F, E>(drive: impl Fn(Launched) -> F + Clone + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display,
    {
        Self::of(Start::Within(Arc::new(move |schema| {
            Within::new(drive.clone(), schema)
        })))
    }

    /// A client that is a command which launches an agent. In it, `{agent}` stands for
    /// the agent to launch (as several words when it stands alone), `{cwd}` for the
    /// working directory and `{prompt}` for what to say.
    ///
    /// The agent is played by the command `acp-conformance` of the same version, which
    /// must be installed; [`suite`](Self::suite) says where.
    ///
    /// ```no_run
    /// # use acp_conformance::{ClientTest, assert_conformant};
    /// let words = ["acp", "run", "--approve-all", "--cwd", "{cwd}", "{prompt}", "--", "{agent}"];
    /// assert_conformant(ClientTest::command(words));
    /// ```
    #[must_use]
    pub fn command<S: Into<OsString>>(words: impl IntoIterator<Item = S>) -> Self {
        Self::of(Start::Command(Commands {
            words: owned(words),
            without_terminals: None,
            asking: None,
            listing: None,
            program: "acp-conformance".into(),
        }))
    }

    fn of(start: Start) -> Self {
        Self {
            start,
            prompt: "Hello, agent".to_owned(),
            choice: Choice::default(),
            protocol: Version::V1,
            known: Vec::new(),
            strict: false,
            timeout: Duration::from_secs(30),
        }
    }

    /// Changes the commands; a client in Rust has none.
    fn change(mut self, set: impl FnOnce(&mut Commands)) -> Self {
        match &mut self.start {
            Start::Command(commands) => set(commands),
            #[cfg(unix)]
            Start::Within(_) => {}
        }
        self
    }

    /// Where the command `acp-conformance` is, which plays the agent to a command.
    #[must_use]
    pub fn suite(self, path: impl Into<PathBuf>) -> Self {
        self.change(|commands| commands.program = path.into())
    }

    /// The command that has the client declare no terminals, for the scenario about those that
    /// do without; a client in Rust reads [`Launched::without_terminals`].
    #[must_use]
    pub fn without_terminals<S: Into<OsString>>(self, words: impl IntoIterator<Item = S>) -> Self {
        self.change(|commands| commands.without_terminals = Some(owned(words)))
    }

    /// The command that has the client ask its user for permission, for the scenario in which the turn
    /// is cancelled meanwhile; a client in Rust reads [`Launched::asking`]. The client is started
    /// on a terminal there, whose user types nothing.
    #[must_use]
    pub fn asking<S: Into<OsString>>(self, words: impl IntoIterator<Item = S>) -> Self {
        self.change(|commands| commands.asking = Some(owned(words)))
    }

    /// The command that has the client list its agent's sessions, for the scenario about pages, where
    /// it does not list them in every conversation. A client in Rust is not asked.
    #[must_use]
    pub fn listing<S: Into<OsString>>(self, words: impl IntoIterator<Item = S>) -> Self {
        self.change(|commands| commands.listing = Some(owned(words)))
    }

    /// What the client is to say.
    #[must_use]
    pub fn prompt(mut self, text: impl Into<String>) -> Self {
        self.prompt = text.into();
        self
    }

    /// Runs only these requirements, scenarios or tiers.
    #[must_use]
    pub fn only<S: Into<String>>(mut self, list: impl IntoIterator<Item = S>) -> Self {
        self.choice.only.extend(names(list));
        self
    }

    /// Leaves these requirements, scenarios or tiers out.
    #[must_use]
    pub fn skip<S: Into<String>>(mut self, list: impl IntoIterator<Item = S>) -> Self {
        self.choice.skip.extend(names(list));
        self
    }

    /// The version of the protocol to test; version 1 unless it is said.
    #[must_use]
    pub fn protocol(mut self, version: Version) -> Self {
        self.protocol = version;
        self
    }

    /// Accepts a finding: it stays in the report and does not decide.
    #[must_use]
    pub fn known(mut self, id: impl Into<String>, reason: impl Into<String>) -> Self {
        self.known.push(KnownFinding::new(id, reason));
        self
    }

    /// Lets requirements of the tiers `derived` and `should` decide, too.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// How long a scenario may take (default 30 s).
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = limit;
        self
    }
}

impl Test for ClientTest {
    fn run(self) -> Result<Document> {
        let schema = Schema::of(self.protocol)?;
        let report = match self.start {
            Start::Command(commands) => {
                let env = ClientEnv {
                    command: commands.words,
                    without_terminals: commands.without_terminals,
                    asking: commands.asking,
                    listing: commands.listing,
                    program: installed(commands.program)?,
                    prompt: self.prompt,
                    schema,
                    timeout: self.timeout,
                    interruption: Interruption::default(),
                    transcripts: None,
                };
                clients::run(&env, &self.choice, |_, _| {})?
            }
            #[cfg(unix)]
            Start::Within(make) => {
                let mut within = make(schema);
                within.prompt = self.prompt;
                within.timeout = self.timeout;
                within.run(&self.choice)?
            }
        };
        let setting = RunInfo {
            strict: self.strict,
            choice: &self.choice,
            again: Rerun::Test,
        };
        let mut report = Document::of_client(&report, &setting);
        report.accept(&self.known);
        Ok(report)
    }
}

impl fmt::Debug for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(commands) => f.debug_tuple("Command").field(&commands.words).finish(),
            #[cfg(unix)]
            Self::Within(_) => f.write_str("Within"),
        }
    }
}

/// Owned words of a command.
fn owned<S: Into<OsString>>(words: impl IntoIterator<Item = S>) -> Vec<OsString> {
    words.into_iter().map(Into::into).collect()
}

/// The command that plays the agent, when it is there and is as old as this library: the
/// client would only say that its agent does not start.
fn installed(program: PathBuf) -> Result<PathBuf> {
    let said = Command::new(&program)
        .arg("--version")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let version = format!("acp-conformance {}", env!("CARGO_PKG_VERSION"));
    match said {
        Ok(output) if String::from_utf8_lossy(&output.stdout).trim() == version => {
            // A path is meant from here, not from where the client runs.
            let has_folder = program.components().nth(1).is_some();
            let resolved = has_folder.then(|| std::path::absolute(&program));
            resolved.unwrap_or(Ok(program)).map_err(Error::Folder)
        }
        Ok(_) => Err(Error::NoSuite {
            program,
            reason: format!("it is not {version}"),
        }),
        Err(error) => Err(Error::NoSuite {
            program,
            reason: error.to_string(),
        }),
    }
}
