//! The simulation of many nodes in small: what a fault costs their clients and their database.

#[path = "../../examples/simulate-nodes/database.rs"]
mod database;
#[path = "../../examples/simulate-nodes/node.rs"]
mod node;
#[path = "../../examples/simulate-nodes/simulation.rs"]
mod simulation;

use std::time::Duration;

use simulation::{Fault, Outcome, Sizes, simulate};

/// Forty nodes with 800 sessions, 80 of them in a turn.
async fn outcome(fault: Fault) -> Outcome {
    let sizes = Sizes {
        nodes: 40,
        sessions: 800,
        queries: 1_000,
    };
    simulate(sizes, fault).await.unwrap()
}

fn last(outcome: &Outcome) -> Duration {
    *outcome.open_after.last().unwrap()
}

#[tokio::test(start_paused = true)]
async fn nodes_at_rest_ask_little() {
    let outcome = outcome(Fault::Nothing).await;
    assert!(outcome.open_after.is_empty(), "{outcome:?}");
    // A renewal in 10 s and a question in 5 s for each node.
    let sum: u32 = outcome.queries.iter().sum();
    assert!(sum < 300 * 40 / 2, "{outcome:?}");
    assert_eq!((outcome.fenced, outcome.left), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn sessions_of_dead_nodes_are_opened_once_by_the_others() {
    // Half of the nodes: 400 sessions, 40 of which nobody may be asked for.
    let outcome = outcome(Fault::Kill(20)).await;
    assert_eq!(outcome.open_after.len(), 400);
    assert!(last(&outcome) < Duration::from_secs(50), "{outcome:?}");
    assert_eq!((outcome.fenced, outcome.left), (0, 0), "{outcome:?}");
    // Who asks for a session first has it; the others ask who that is.
    assert!(outcome.late < 15, "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn sessions_of_nodes_that_end_are_open_at_once() {
    let outcome = outcome(Fault::End(20)).await;
    assert_eq!(outcome.open_after.len(), 400);
    assert!(last(&outcome) < Duration::from_secs(3), "{outcome:?}");
    assert_eq!((outcome.fenced, outcome.left), (0, 0), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn a_database_that_stops_for_long_ends_all_leases() {
    let outcome = outcome(Fault::Away(25)).await;
    assert_eq!((outcome.fenced, outcome.left), (40, 0), "{outcome:?}");
    assert_eq!(outcome.open_after.len(), 800);
    assert!(
        outcome.longest_wait >= Duration::from_secs(24),
        "{outcome:?}"
    );
    assert!(last(&outcome) < Duration::from_secs(30), "{outcome:?}");
}
