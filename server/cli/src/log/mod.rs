//! The log of a server: who reads it, and how much of it.

mod output;
mod redact;

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::{Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use self::output::{LogFile, Output, Target};
use self::redact::Secrets;
use super::Failure;
use super::usage::UsageError;

/// What is logged, and where.
#[derive(Clone, Debug, Args)]
pub struct LogArgs {
    /// What is logged: error, warn, info, debug or off; or levels of parts, such as
    /// `warn,acp_server::agent=off`
    #[arg(long, value_name = "FILTER", default_value = "info", value_parser = checked)]
    pub log: String,
    /// How lines on standard error look
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// File to which warnings and errors are appended, too, a JSON object a line; at 16 MiB it
    /// becomes FILE.1
    #[arg(long, value_name = "FILE")]
    pub error_log: Option<PathBuf>,
}

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people
    Text,
    /// A JSON object
    Json,
}

/// The log of this process. Dropped, it waits a second at most for what is queued.
pub(super) struct Log {
    outputs: Vec<Output>,
    secrets: Secrets,
}

impl Log {
    /// Starts the log of this process.
    ///
    /// # Errors
    ///
    /// Wrong usage, when the error log cannot be written; a failure, when there is no thread, or a log
    /// already.
    pub(super) fn start(args: &LogArgs) -> Result<Self, Failure> {
        let secrets = Secrets::of_environment();
        let stderr = Output::start(Target::Stderr, args.log_format, secrets.clone())?;
        let mut outputs = vec![stderr.clone()];
        let shown = filter(&args.log).map_err(UsageError)?;
        let shown = layer(args.log_format, stderr).with_filter(shown);
        let errors = match &args.error_log {
            Some(path) => {
                let file = LogFile::open(path).map_err(|error| {
                    let path = path.display();
                    UsageError(format!("cannot write the error log {path}: {error}"))
                })?;
                let format = LogFormat::Json;
                let output = Output::start(Target::File(file), format, secrets.clone())?;
                outputs.push(output.clone());
                Some(layer(format, output).with_filter(LevelFilter::WARN))
            }
            None => None,
        };
        tracing_subscriber::registry()
            .with(shown)
            .with(errors)
            .try_init()?;
        Ok(Self { outputs, secrets })
    }

    /// Keeps a secret out of all lines from now on.
    pub(super) fn hide(&self, secret: &str) {
        self.secrets.add(secret);
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.outputs.iter().for_each(Output::flush);
    }
}

fn layer<S>(format: LogFormat, output: Output) -> Box<dyn Layer<S> + Send + Sync>
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
{
    let layer = tracing_subscriber::fmt::layer().with_writer(output);
    match format {
        LogFormat::Text => layer.with_timer(Clock).with_ansi(false).boxed(),
        LogFormat::Json => layer
            .json()
            .with_timer(Clock)
            .flatten_event(true)
            .with_span_list(false)
            .boxed(),
    }
}

struct Clock;

impl FormatTime for Clock {
    fn format_time(&self, writer: &mut Writer<'_>) -> std::fmt::Result {
        writer.write_str(&acp_server::internal::clock::now())
    }
}

fn checked(text: &str) -> Result<String, String> {
    filter(text).map(|_| text.to_owned())
}

/// Reads a filter. A level alone is that of the crates of this project; all others only warn.
fn filter(text: &str) -> Result<Targets, String> {
    if let Ok(level) = LevelFilter::from_str(text) {
        let others = level.min(LevelFilter::WARN);
        let ours = ["acp_client", "acp_sdk", "acp_server"].map(|target| (target, level));
        return Ok(Targets::new().with_default(others).with_targets(ours));
    }
    let expected = "expected a level, or levels of parts such as `warn,acp_server=debug`";
    // Such a word is a part without a level, whose name nobody knows.
    let mut words = text.split(',').map(str::trim);
    if let Some(word) =
        words.find(|word| !word.contains('=') && LevelFilter::from_str(word).is_err())
    {
        return Err(format!("`{word}` is no level; {expected}"));
    }
    Targets::from_str(text).map_err(|error| format!("{error}; {expected}"))
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_level_is_that_of_this_project() {
        let debug = filter("debug").unwrap();
        assert!(debug.would_enable("acp_server::store", &Level::DEBUG));
        assert!(debug.would_enable("acp_sdk::request", &Level::DEBUG));
        assert!(!debug.would_enable("h2", &Level::INFO));
        assert!(debug.would_enable("h2", &Level::WARN));
        let off = filter("off").unwrap();
        assert!(!off.would_enable("acp_server", &Level::ERROR));
        let parts = filter("warn,acp_server::agent=off").unwrap();
        assert!(!parts.would_enable("acp_server::agent", &Level::ERROR));
        assert!(parts.would_enable("acp_server::store", &Level::WARN));
        for wrong in ["a=loud", "warning", "inf", "warn,acp_server"] {
            assert!(filter(wrong).is_err(), "{wrong}");
        }
    }
}
