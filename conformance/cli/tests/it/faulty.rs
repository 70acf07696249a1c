//! Agents and clients with one defect each (the example `faulty`): which requirements catch them.
//!
//! `faulty.toml` has a row for each. Its requirements must fail, and a defect that is recorded as
//! missed must still be missed, so that a check that finds it is noticed as well. After a change
//! of the data, `UPDATE_GOLDEN=1` writes `docs/faulty-agents.md` anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use acp_conformance::harness::{Conditions, Env, Profile, Unresponsive};
use acp_conformance::requirements::Choice;
use acp_conformance::suite::{Options, run};
use acp_conformance::target::Target;
use acp_conformance::wire::{Schema, Version};
use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;

use crate::command::acp_conformance;

/// Runs of the suite at once.
const RUNS: usize = 6;
/// Runs before a defect counts as missed.
const TRIES: usize = 3;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// The requirements that must fail.
    #[serde(default)]
    caught: Vec<String>,
    /// Why none does.
    missed: Option<String>,
    /// What is run to see that none does; the whole suite when empty.
    #[serde(default)]
    areas: Vec<String>,
}

type Table = BTreeMap<String, Row>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Data {
    agent: Table,
    v2: Table,
    client: Table,
}

/// A line of `faulty list`.
struct Fault {
    group: &'static str,
    name: String,
    defect: String,
}

/// The example, which is built with the tests, beside them.
fn program() -> PathBuf {
    let mut program = std::env::current_exe().unwrap();
    program.pop();
    program.set_file_name("examples");
    let program = program.join("faulty");
    let advice = "build it by `cargo build -p acp-conformance-cli --example faulty`";
    assert!(
        program.exists(),
        "{} is missing: {advice}",
        program.display()
    );
    program
}

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn data() -> Data {
    basic_toml::from_str(include_str!("faulty.toml")).unwrap()
}

fn faults() -> Vec<Fault> {
    let output = Command::new(program()).arg("list").output().unwrap();
    let list = String::from_utf8(output.stdout).unwrap();
    let fault = |line: &str| {
        let mut parts = line.split('\t').map(str::to_owned);
        let (side, name, defect) = (parts.next()?, parts.next()?, parts.next()?);
        let group = match side.as_str() {
            "client" => "client",
            _ if name.starts_with("v2-") => "v2",
            _ => "agent",
        };
        Some(Fault {
            group,
            name,
            defect,
        })
    };
    list.lines().map(|line| fault(line).unwrap()).collect()
}

/// The requirements that fail, of those in `only`, or of all. `caught` expects failures.
fn failures(group: &str, name: &str, only: &[String], caught: bool) -> BTreeSet<String> {
    let (is_conformant, failed) = match group {
        "agent" => failures_of_agent(Version::V1, name, only, caught),
        "v2" => failures_of_agent(Version::V2, name, only, caught),
        _ => failures_of_client(name, only, caught),
    };
    if name.ends_with("base") {
        assert!(is_conformant, "{group} {name}: {failed:?}");
    }
    failed
}

/// Runs the suite in this process, which has the documents of a version once.
fn failures_of_agent(
    version: Version,
    name: &str,
    only: &[String],
    caught: bool,
) -> (bool, BTreeSet<String>) {
    static V1: LazyLock<Arc<Schema>> = LazyLock::new(|| schema(Version::V1));
    static V2: LazyLock<Arc<Schema>> = LazyLock::new(|| schema(Version::V2));
    let (schema, profile) = match version {
        Version::V1 => (&V1, "examples/faulty/profile.toml"),
        Version::V2 => (&V2, "examples/faulty/profile-v2.toml"),
    };
    let folder = TempDir::new().unwrap();
    let path = folder.path().canonicalize().unwrap();
    std::fs::write(path.join("input.txt"), "one\n").unwrap();
    // What is caught by an answer that does not come is caught soon; what passes needs time.
    let limits = if caught { [1, 2] } else { [5, 20] };
    let command = [program().into_os_string(), "agent".into(), name.into()];
    let env = Env {
        target: Target::command(command.to_vec()),
        profile: Profile::read(&self::folder().join(profile)).unwrap(),
        schema: Arc::clone(schema),
        folder: path,
        timeout: Duration::from_secs(limits[0]),
        turn_timeout: Duration::from_secs(limits[1]),
        quiet: Duration::from_millis(100),
        unresponsive: Unresponsive::default(),
        conditions: Conditions {
            cleans_up: true,
            ..Conditions::default()
        },
    };
    let options = Options {
        choice: Choice {
            only: only.to_vec(),
            ..Choice::default()
        },
        jobs: 4,
        tries_setup: true,
        ..Options::default()
    };
    let report = run(&Arc::new(env), &options, |_, _| {});
    let report = report.unwrap_or_else(|error| panic!("no report on {name}: {error}"));
    let failed = report.with("fail");
    let failed = failed.map(|row| row.requirement.id.to_owned()).collect();
    (report.is_conformant(false), failed)
}

fn schema(version: Version) -> Arc<Schema> {
    Schema::of(version).unwrap()
}

fn failures_of_client(name: &str, only: &[String], caught: bool) -> (bool, BTreeSet<String>) {
    let program = program();
    let program = program.to_str().unwrap();
    let limit = if caught { "3" } else { "5" };
    let mut words = vec!["client", "--json", "-", "--timeout", limit];
    words.extend(only.iter().flat_map(|id| ["--only", id]));
    words.extend(["--", program, "client", name]);
    words.extend(["{cwd}", "{prompt}", "--", "{agent}"]);
    let ran = acp_conformance(words);
    let report: Value = serde_json::from_str(&ran.stdout)
        .unwrap_or_else(|_| panic!("no report on {name}: {}{}", ran.stdout, ran.stderr));
    let rows = report["requirements"].as_array().unwrap().iter();
    let failed = rows.filter(|row| row["verdict"] == "fail");
    let failed = failed.map(|row| row["id"].as_str().unwrap().to_owned());
    (report["conformant"] == true, failed.collect())
}

/// What differs between a row and the suite's verdict.
fn compare(fault: &Fault, row: &Row, base: &BTreeSet<String>) -> Option<String> {
    let title = format!("{} {}", fault.group, fault.name);
    match (&row.missed, row.caught.is_empty()) {
        (Some(_), true) => {
            let failed = failures(fault.group, &fault.name, &row.areas, false);
            let new: Vec<&String> = failed.difference(base).collect();
            (!new.is_empty()).then(|| format!("{title}: recorded as missed, caught by {new:?}"))
        }
        (None, false) => {
            let mut lost: BTreeSet<String> = row.caught.iter().cloned().collect();
            // On a busy machine, a message may come too late to be seen as a fault.
            for _ in 0..TRIES {
                if lost.is_empty() {
                    break;
                }
                let failed = failures(fault.group, &fault.name, &row.caught, true);
                lost.retain(|id| !failed.contains(id));
            }
            (!lost.is_empty()).then(|| format!("{title}: recorded as caught, missed by {lost:?}"))
        }
        _ => Some(format!("{title}: give either `caught` or `missed`")),
    }
}

impl Data {
    fn table(&self, group: &str) -> &Table {
        match group {
            "agent" => &self.agent,
            "v2" => &self.v2,
            _ => &self.client,
        }
    }
}

#[test]
fn each_defect_is_caught_or_missed_as_recorded() {
    let data = data();
    let mut faults = faults();
    let bases: BTreeMap<&str, BTreeSet<String>> = std::thread::scope(|scope| {
        let runs = [("agent", "base"), ("v2", "v2-base"), ("client", "base")];
        let runs = runs.map(|(group, name)| {
            (
                group,
                scope.spawn(move || failures(group, name, &[], false)),
            )
        });
        runs.into_iter()
            .map(|(group, run)| (group, run.join().unwrap()))
            .collect()
    });
    faults.retain(|fault| !fault.name.ends_with("base"));
    let (queue, differences) = (Mutex::new(faults.iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..RUNS {
            scope.spawn(|| {
                loop {
                    let Some(fault) = queue.lock().unwrap().next() else {
                        return;
                    };
                    let row = data.table(fault.group).get(&fault.name);
                    let difference = match row {
                        Some(row) => compare(fault, row, &bases[fault.group]),
                        None => Some(format!(
                            "{} {}: not in faulty.toml",
                            fault.group, fault.name
                        )),
                    };
                    differences.lock().unwrap().extend(difference);
                }
            });
        }
    });
    let mut differences = differences.into_inner().unwrap();
    for group in ["agent", "v2", "client"] {
        for name in data.table(group).keys() {
            if !faults
                .iter()
                .any(|fault| fault.group == group && fault.name == *name)
            {
                differences.push(format!("{group} {name}: in faulty.toml, and no such fault"));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn the_page_shows_the_data() {
    let (data, page) = (data(), folder().join("../../docs/faulty-agents.md"));
    let old = std::fs::read_to_string(&page).unwrap_or_default();
    let head = old.split("\n## ").next().unwrap_or_default().trim_end();
    let mut text = format!("{head}\n");
    let groups = [
        ("agent", "Agents"),
        ("v2", "Agents of v2"),
        ("client", "Clients"),
    ];
    for (group, title) in groups {
        let rows: Vec<(Fault, &Row)> = faults()
            .into_iter()
            .filter(|fault| fault.group == group)
            .filter_map(|fault| data.table(group).get(&fault.name).map(|row| (fault, row)))
            .collect();
        let missed = rows.iter().filter(|(_, row)| row.missed.is_some()).count();
        let caught = rows.len() - missed;
        let _ = writeln!(
            text,
            "\n## {title}\n\nCaught: {caught} of {}.\n",
            rows.len()
        );
        text.push_str("| name | defect | caught by |\n|---|---|---|\n");
        for (fault, row) in rows {
            let ids: Vec<String> = row.caught.iter().map(|id| format!("`{id}`")).collect();
            let result = match &row.missed {
                Some(reason) => format!("**missed**: {reason}"),
                None => ids.join(", "),
            };
            let _ = writeln!(text, "| `{}` | {} | {result} |", fault.name, fault.defect);
        }
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&page, &text).unwrap();
    } else {
        assert!(
            text == old,
            "{} is stale: run with UPDATE_GOLDEN=1",
            page.display()
        );
    }
}
