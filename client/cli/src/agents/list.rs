//! `acp agents`: lists configured agents and checks them.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::{Agents, Configured, Source};
use crate::args::{AgentsArgs, ListFormat};
use crate::exit::Code;
use crate::launch::Launch;
use crate::open;
use crate::task::{Failure, Results, say};
use acp_sdk::text::one_line;

/// Maximum number of agents that run at the same time.
const AT_ONCE: usize = 4;

/// Maximum number of characters of each column except the last.
const WIDEST: usize = 40;

/// Maximum number of characters of a command line or a reason.
const LONGEST: usize = 300;

/// A row of the list.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    source: &'static str,
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    installed: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Found,
    Missing,
    Unusable,
    Ready,
    Failed,
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Self::Found => "found",
            Self::Missing => "missing",
            Self::Unusable => "unusable",
            Self::Ready => "ready",
            Self::Failed => "failed",
        }
    }
}

/// Lists the configured agents.
pub(crate) async fn agents(args: &AgentsArgs, results: &mut Results) -> Result<Code, Failure> {
    let agents = Agents::read(args.agents.as_deref()).map_err(Failure::usage)?;
    for problem in &agents.problems {
        say(problem).await;
    }
    let listed: Vec<&Configured> = if args.names.is_empty() {
        let entries = agents.entries.iter();
        entries
            .filter(|entry| args.all || entry.source != Source::Registry)
            .collect()
    } else {
        let found = args.names.iter().map(|name| agents.find(name));
        found.collect::<Result<_, _>>().map_err(Failure::usage)?
    };
    if listed.is_empty() && agents.problems.is_empty() {
        say("no agent is configured; `acp agents --help` names the files").await;
    }
    let mut rows: Vec<Row> = listed.iter().map(|entry| row(entry)).collect();
    if args.check {
        check(&listed, &mut rows, args.timeout).await;
    }
    match args.format {
        ListFormat::Text => table(&rows, results).await?,
        ListFormat::Json => {
            for row in &rows {
                let line =
                    serde_json::to_string(row).map_err(|error| Failure::Output(error.into()))?;
                results.json(&line).await?;
            }
        }
    }
    let all_ready =
        agents.problems.is_empty() && rows.iter().all(|row| row.status == Status::Ready);
    Ok(if args.check && !all_ready {
        Code::NoAgent
    } else {
        Code::EndTurn
    })
}

/// Returns the state that is known without starting the agent.
fn row(entry: &Configured) -> Row {
    let (status, reason) = match &entry.launch {
        Ok(launch) if launch.exists() => (Status::Found, None),
        Ok(_) => (Status::Missing, None),
        Err(reason) => (Status::Unusable, Some(reason.clone())),
    };
    let command = entry.launch.as_ref().ok();
    Row {
        name: entry.name.clone(),
        source: entry.source.name(),
        file: entry.file.display().to_string(),
        command: command.map(|launch| launch.command().to_string()),
        version: entry.version.clone(),
        installed: entry.installed.clone(),
        description: entry.description.clone(),
        status,
        reason,
    }
}

/// Starts a bounded number of agents at once and records their versions.
async fn check(listed: &[&Configured], rows: &mut [Row], limit: Duration) {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut checks = JoinSet::new();
    for (number, entry) in listed.iter().enumerate() {
        if let Ok(launch) = entry.launch.clone() {
            let places = places.clone();
            checks.spawn(async move {
                // The semaphore is never closed.
                let _place = places.acquire().await;
                (number, ask(&launch, limit).await)
            });
        }
    }
    while let Some(checked) = checks.join_next().await {
        let Ok((number, answer)) = checked else {
            continue;
        };
        let Some(row) = rows.get_mut(number) else {
            continue;
        };
        match answer {
            Ok(version) => {
                row.status = Status::Ready;
                row.version = version.or(row.version.take());
            }
            Err(reason) => {
                row.status = Status::Failed;
                row.reason = Some(reason);
            }
        }
    }
}

/// Returns the version that an agent reports.
async fn ask(launch: &Launch, limit: Duration) -> Result<Option<String>, String> {
    let client = open::builder()
        .answer_within(limit)
        .spawn(launch.prepared()?)
        .await
        .map_err(|error| error.to_string())?;
    let info = client.agent_info().agent_info.as_ref();
    let version = info.map(|info| info.version.clone());
    client.shutdown().await;
    Ok(version)
}

async fn table(rows: &[Row], results: &mut Results) -> Result<(), Failure> {
    let cells = |row: &Row| {
        let known = row.version.as_deref();
        let version = match row.installed.as_deref() {
            Some(installed) if Some(installed) != known && row.status != Status::Ready => {
                &format!("{installed} (new: {})", known.unwrap_or("-"))
            }
            _ => known.unwrap_or("-"),
        };
        [row.name.as_str(), row.source, version, row.status.name()]
            .map(|text| one_line(text, WIDEST))
    };
    let heading = ["NAME", "SOURCE", "VERSION", "STATUS"].map(str::to_owned);
    let lines = rows.iter().map(|row| {
        let told = row
            .reason
            .as_deref()
            .or(row.command.as_deref())
            .unwrap_or_default();
        (cells(row), one_line(told, LONGEST))
    });
    let heading = (!rows.is_empty()).then(|| (heading, "COMMAND".to_owned()));
    let lines: Vec<_> = heading.into_iter().chain(lines).collect();
    let widths: [usize; 4] = std::array::from_fn(|column| {
        let widths = lines
            .iter()
            .map(|(cells, _)| cells.get(column).map_or(0, |cell| cell.chars().count()));
        widths.max().unwrap_or(0)
    });
    for (cells, last) in &lines {
        let mut line = String::new();
        for (cell, width) in cells.iter().zip(widths) {
            line.push_str(&format!("{cell:width$}  "));
        }
        results.line((line + last).trim_end()).await?;
    }
    Ok(())
}
