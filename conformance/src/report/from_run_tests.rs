//! What a run becomes as a report.

use std::time::Duration;

use super::super::Tally;
use super::*;
use crate::clients;
use crate::harness::Failure;
use crate::requirements;
use crate::requirements::Tier;
use crate::suite::Row;
use crate::wire::Version;

fn failed() -> Verdict {
    Verdict::Fail(Box::new(Failure {
        reason: "it was unkind".to_owned(),
        sent: Some("a question".to_owned()),
        came: Some("an insult".to_owned()),
    }))
}

/// A run in which a requirement of each of these tiers has this verdict.
fn run(verdicts: &[(Tier, Verdict)]) -> suite::Report {
    let row = |(tier, verdict): &(Tier, Verdict)| {
        let mut rows = requirements::all().filter(|(_, row)| row.tier == *tier);
        let (area, requirement) = rows.next().unwrap();
        Row {
            area,
            requirement,
            verdict: verdict.clone(),
            took: Duration::from_micros(1_234_567),
            prompts: 0,
            starts: 0,
            opens_session: false,
            transcripts: vec!["a.jsonl".to_owned()],
        }
    };
    suite::Report {
        command: "an-agent".to_owned(),
        agent: "Agent 1".to_owned(),
        rows: verdicts.iter().map(row).collect(),
        coverage: None,
        root_cause: None,
        prompts: 2,
        cancel_times: None,
        messages: Messages {
            agent: 3,
            client: 2,
            invalid: 1,
        },
        protocol: 2,
        took: Duration::from_secs(5),
        interrupted: false,
        quick: None,
        words: Vec::new(),
    }
}

fn setting(strict: bool, choice: &Choice) -> RunInfo<'_> {
    RunInfo {
        strict,
        choice,
        again: Rerun::Command {
            start: "suite agent",
            rest: " -- an-agent",
        },
    }
}

#[test]
fn must_and_capability_decide_and_should_where_it_is_strict() {
    let choice = Choice::default();
    for (tier, lenient, strict) in [
        (Tier::Must, false, false),
        (Tier::Capability, false, false),
        (Tier::Derived, true, false),
        (Tier::Should, true, false),
        (Tier::Info, true, true),
    ] {
        let run = run(&[(Tier::Must, Verdict::Pass), (tier, failed())]);
        let of = |strict| Document::of_agent(&run, &setting(strict, &choice));
        let found = (of(false).conformant, of(true).conformant);
        assert_eq!(found, (lenient, strict), "{}", tier.as_str());
        let of = (run.is_conformant(false), run.is_conformant(true));
        assert_eq!(found, of, "{}", tier.as_str());
        let junit =
            super::super::junit(&Document::of_agent(&run, &setting(true, &choice))).unwrap();
        let failures = format!("failures=\"{}\"", usize::from(!strict));
        assert!(junit.contains(&failures), "{junit}");
        // Said in full, whether it decides or not.
        assert!(junit.contains("an insult"), "{junit}");
    }
}

#[test]
fn a_run_of_chosen_requirements_is_incomplete_only_if_they_are_blocked() {
    let unclear = Verdict::Inconclusive("the model was overloaded".to_owned());
    let unclear = run(&[(Tier::Must, unclear)]);
    let of = |choice: &Choice| Document::of_agent(&unclear, &setting(false, choice)).verdict;
    assert_eq!(of(&Choice::default()), Conformity::Incomplete);
    let name = || vec!["must".to_owned()];
    for (only, skip) in [(name(), Vec::new()), (Vec::new(), name())] {
        assert_eq!(of(&Choice { only, skip }), Conformity::Conformant);
    }
    let blocked = Verdict::Blocked("needs a login".to_owned());
    let run = run(&[(Tier::Must, blocked)]);
    let only = Choice {
        only: name(),
        skip: Vec::new(),
    };
    let document = Document::of_agent(&run, &setting(false, &only));
    assert_eq!(document.verdict, Conformity::Incomplete);
}

#[test]
fn a_broken_capability_is_counted_with_what_decides() {
    let choice = Choice::default();
    let tiers = Tier::ALL.map(|tier| (tier, failed()));
    let document = Document::of_agent(&run(&tiers), &setting(false, &choice));
    let says = "0 passed; failed: 2 MUST, 1 derived, 1 SHOULD, 1 info";
    assert!(
        document.summary().starts_with(says),
        "{}",
        document.summary()
    );
}

#[test]
fn each_verdict_keeps_its_word_its_reason_and_how_to_look_at_it_again() {
    let choice = Choice {
        only: vec!["must".to_owned()],
        skip: vec!["plan".to_owned()],
    };
    let reason = || "for a reason".to_owned();
    let verdicts = [
        Verdict::Pass,
        failed(),
        Verdict::Inconclusive(reason()),
        Verdict::Skip(reason()),
        Verdict::Excluded("for a reason"),
    ];
    let verdicts = verdicts.map(|verdict| (Tier::Must, verdict));
    let document = Document::of_agent(&run(&verdicts), &setting(false, &choice));
    let entries = document.requirements.iter();
    let found: Vec<_> = entries
        .map(|entry| (entry.verdict, entry.why(), entry.again.is_some()))
        .collect();
    let expected = [
        (Outcome::Pass, "", false),
        (Outcome::Fail, "it was unkind", true),
        (Outcome::Inconclusive, "for a reason", true),
        (Outcome::Skip, "for a reason", false),
        (Outcome::Excluded, "for a reason", false),
    ];
    assert_eq!(found, expected);
    let words = verdicts.map(|(_, verdict)| verdict.as_str());
    let written = expected.map(|(word, ..)| serde_json::to_value(word).unwrap());
    assert_eq!(words.as_slice(), written.as_slice());
    let broken = &document.requirements[1];
    let evidence: Vec<_> = broken.evidence().collect();
    assert_eq!(evidence, [("sent", "a question"), ("came", "an insult")]);
    let again = format!("suite agent --only {} -- an-agent", broken.id);
    assert_eq!(broken.again.as_deref(), Some(again.as_str()));
    let again = "suite agent --only must --skip plan -- an-agent";
    assert_eq!(document.again.as_deref(), Some(again));
    assert_eq!(document.left_out, ["plan"]);
    assert_eq!(broken.seconds, 1.235);
    assert_eq!(document.protocol, 2);
    let tally = Tally::of(&document.requirements);
    let counts = [
        tally.pass,
        tally.fail,
        tally.inconclusive,
        tally.skip,
        tally.excluded,
    ];
    assert_eq!((counts, tally.ratio().as_str()), ([1; 5], "1/2"));
}

#[test]
fn a_report_on_a_client_is_of_its_version_and_counts_its_messages() {
    let row = clients::of(Version::V2).next().unwrap();
    let run = clients::Report {
        command: "a-client".to_owned(),
        client: "Client 1".to_owned(),
        rows: vec![(row, failed())],
        transcripts: vec![(row.scenario, "hello.jsonl".to_owned())],
        messages: Messages {
            agent: 3,
            client: 2,
            invalid: 1,
        },
        protocol: Version::V2,
        interrupted: false,
        took: Duration::from_secs(5),
    };
    let choice = Choice::default();
    let document = Document::of_client(&run, &setting(false, &choice));
    assert_eq!((document.kind, document.protocol), (Party::Client, 2));
    assert_eq!(document.requirements[0].area, row.scenario);
    assert_eq!(document.requirements[0].transcripts, ["hello.jsonl"]);
    let text = super::super::text(&document).unwrap();
    let said = "2 messages of the client, 1 of them invalid; 3 of the agent\n";
    assert!(text.contains(said), "{text}");
    assert!(text.contains("client: Client 1; began: 2"), "{text}");
}

#[test]
fn what_was_not_exercised_is_said_beside_the_verdict() {
    let skip = |reason: &str| Verdict::Skip(reason.to_owned());
    let run = run(&[
        (Tier::Must, skip("not exercised: no tool call")),
        (
            Tier::Capability,
            skip("the agent does not declare `loadSession`"),
        ),
        (Tier::Should, skip("not exercised: no plan")),
    ]);
    let choice = Choice::default();
    let report = Document::of_agent(&run, &setting(false, &choice));
    let id = &report.requirements[0].id;
    let provenance = report.provenance();
    let open = provenance.iter().find(|(name, _)| *name == "not exercised");
    let open = open.map(|(_, text)| text.as_str());
    assert_eq!(open, Some(&*format!("1 requirements that decide: {id}")));
    let says = "3 skipped (1 that decide not exercised)";
    assert!(report.summary().contains(says), "{}", report.summary());
}
