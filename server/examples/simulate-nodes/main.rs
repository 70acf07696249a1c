//! Simulates many nodes over one database: real servers, in paused time, whose store counts and delays what they
//! ask a model of a database.
//!
//! `simulate-nodes [NODES] [SESSIONS] [QUERIES]` (default 1000, 100000, 5000): the nodes, the sessions of all of
//! them, of which a tenth is in a turn, and the queries that the database answers each second. It prints a line for
//! each case: when the sessions of the nodes that had them were open again, and what the database had to do until five
//! minutes after the fault. Clients ask any other node for their sessions, again and again as `acp-client` does.

#![allow(clippy::print_stdout, reason = "the result")]

mod database;
mod node;
mod simulation;

use std::time::Instant;

use simulation::{Fault, Outcome, Sizes, simulate};

fn row(name: &str, outcome: &Outcome) -> String {
    let times = &outcome.open_after;
    let at = |part: f64| match times.len() {
        0 => String::new(),
        len => {
            let time = times[((len - 1) as f64 * part) as usize];
            format!("{:.1} s", time.as_secs_f64())
        }
    };
    let seconds = outcome.queries.len().max(1);
    let sum: u32 = outcome.queries.iter().sum();
    format!(
        "| {name} | {} | {} | {} | {} | {} | {} | {:.1} s | {} | {} | {} |",
        times.len(),
        at(0.5),
        at(0.99),
        at(1.0),
        sum as usize / seconds,
        outcome.queries.iter().max().unwrap_or(&0),
        outcome.longest_wait.as_secs_f64(),
        outcome.fenced,
        outcome.late,
        outcome.left,
    )
}

/// A sign for each 5 s of queries; the highest one: as many as the database answers.
fn chart(outcome: &Outcome, per_second: u32) -> String {
    let signs = outcome.queries.chunks(5).map(|of| {
        let mean = of.iter().sum::<u32>() / of.len() as u32;
        ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'][(mean * 7 / per_second).min(7) as usize]
    });
    signs.collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1).map(|number| number.parse::<u32>());
    let mut number = |or| numbers.next().unwrap_or(Ok(or));
    let sizes = Sizes {
        nodes: number(1000)? as usize,
        sessions: number(100_000)? as usize,
        queries: number(5000)?,
    };
    println!(
        "| fault | sessions to open again | open after: median | p99 | last | queries a second | most in one second | longest wait | nodes without leases | late attempts | left |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    let mut charts = Vec::new();
    for (name, fault) in [
        ("none", Fault::Nothing),
        ("one node dies", Fault::Kill(1)),
        ("one of ten dies", Fault::Kill(sizes.nodes / 10)),
        (
            "one of ten ends by SIGTERM, one each second",
            Fault::End(sizes.nodes / 10),
        ),
        ("the database stops for 8 s", Fault::Away(8)),
        ("the database stops for 25 s", Fault::Away(25)),
    ] {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()?;
        let began = Instant::now();
        let outcome = runtime.block_on(simulate(sizes, fault))?;
        println!("{}", row(name, &outcome));
        eprintln!("{name}: computed in {:.0?}", began.elapsed());
        charts.push((name, chart(&outcome, sizes.queries)));
    }
    for (name, chart) in charts {
        println!("{chart} {name}");
    }
    Ok(())
}
