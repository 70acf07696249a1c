//! What the suite sees in what was said, live traffic shows too.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::*;
use crate::harness::{Conditions, Cx, Env, Profile, Unresponsive};
use crate::judge::{Diagnostic, Judge};
use crate::mutants::{self, Mutant};
use crate::requirements::Requirement;
use crate::suite::exploration;
use crate::target::Target;
use crate::transcript::Record;
use crate::wire::Schema;

/// What a broken agent says on the explorations.
fn explorations(broken: &'static Mutant, schema: &Arc<Schema>) -> Vec<Recording> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    std::fs::write(path.join("input.txt"), "one\n").unwrap();
    // A broken agent of version 2 may leave out the end of a turn, which nobody can report.
    let (target, turn_timeout) = match schema.version() {
        Version::V1 => (Target::local(), 40),
        Version::V2 => (Target::local_v2(), 3),
    };
    let env = Env {
        target: target.behind(broken.rewrite().unwrap()).telling_losses(),
        profile: Profile::reference().unwrap(),
        schema: schema.clone(),
        folder: path,
        // No sound agent comes near it, however busy the machine is, and a broken one says what
        // it leaves unanswered.
        timeout: Duration::from_secs(20),
        turn_timeout: Duration::from_secs(turn_timeout),
        quiet: Duration::from_millis(20),
        unresponsive: Unresponsive::default(),
        conditions: Conditions::default(),
    };
    let mut cx = Cx::new(Arc::new(env));
    // Their outcomes do not matter here, but the messages.
    let _ = exploration::with_everything(&mut cx);
    let _ = exploration::with_nothing(&mut cx);
    cx.finish()
}

/// The rules over messages that the suite says are broken.
fn by_suite(
    recordings: &[Recording],
    chosen: &[Chosen],
    version: Version,
) -> BTreeSet<&'static str> {
    let verdicts = verdicts(chosen, version, recordings, None);
    let rows = chosen.iter().zip(verdicts);
    rows.filter(|(_, verdict)| matches!(verdict, Some((Verdict::Fail(_), Some(_)))))
        .map(|((_, row), _)| row.id)
        .collect()
}

/// The same of a judge of live traffic.
fn by_judge(recordings: &[Recording], schema: &Arc<Schema>) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    for recording in recordings {
        let mut judge = Judge::new(schema.clone(), None);
        let mut each = |diagnostic: Diagnostic| {
            let finding = &diagnostic.finding;
            if finding.by == Some(Party::Agent) && finding.excuse.is_none() {
                found.extend(diagnostic.requirement);
            }
        };
        for (place, entry) in (1..).zip(&recording.entries) {
            let from = entry.from;
            let record = match &entry.raw {
                None => Record::Message(from, entry.value.clone()),
                Some(line) => Record::Raw {
                    from,
                    text: line.clone(),
                    // What the client wrote off the protocol is a probe.
                    why: (from == Party::Agent).then(|| "not a message".to_owned()),
                },
            };
            judge.record(place, &record, &mut each);
        }
        judge.finish(&mut each);
    }
    found
}

#[test]
fn live_traffic_of_v1_is_judged_by_the_same_rules() {
    live_traffic_is_judged_by_the_same_rules(Version::V1);
}

#[test]
fn live_traffic_of_v2_is_judged_by_the_same_rules() {
    live_traffic_is_judged_by_the_same_rules(Version::V2);
}

fn live_traffic_is_judged_by_the_same_rules(version: Version) {
    let schema = Schema::of(version).unwrap();
    let chosen: Vec<Chosen> = requirements::of(version)
        .filter(|(_, row)| {
            let mut also = requirements::live::rules(version).iter();
            matches!(row.check, Check::Watch { .. }) || also.any(|(id, _)| *id == row.id)
        })
        .collect();
    let watches = |broken: &&'static Mutant| {
        let mut breaks = broken.breaks.iter();
        breaks.any(|id| chosen.iter().any(|(_, row)| row.id == *id))
    };
    let all: Vec<_> = mutants::agents(version).filter(watches).collect();
    let part = |part: usize| -> BTreeSet<&'static str> {
        let mut proven = BTreeSet::new();
        for broken in all.iter().skip(part).step_by(4) {
            let recordings = explorations(broken, &schema);
            let found = by_judge(&recordings, &schema);
            let expected = by_suite(&recordings, &chosen, version);
            // Where the schema forbids a message, a judge says that and no more.
            let invalid = recordings.iter().any(|recording| recording.invalid() > 0);
            let same = found == expected || (invalid && found.is_subset(&expected));
            assert!(same, "{}: {found:?}, not {expected:?}", broken.name);
            for strict in [false, true] {
                let decides = |ids: &BTreeSet<_>| {
                    let mut rows = chosen.iter().map(|(_, row)| row);
                    rows.any(|row| ids.contains(row.id) && row.tier.decides(strict))
                };
                assert_eq!(decides(&found), decides(&expected), "{}", broken.name);
            }
            proven.extend(expected);
        }
        proven
    };
    let proven: BTreeSet<_> = thread::scope(|scope| {
        let parts = [0, 1, 2, 3].map(|number| scope.spawn(move || part(number)));
        parts
            .into_iter()
            .flat_map(|part| part.join().unwrap())
            .collect()
    });
    // No exploration lists sessions. Findings are made from other situations as well.
    let looks = |row: &Requirement| match row.check {
        Check::Watch { look, .. } => !matches!(look, Rule::Findings(_)),
        _ => false,
    };
    for (area, row) in chosen.iter().filter(|(_, row)| looks(row)) {
        let here = proven.contains(row.id) || area.name == "session-list";
        assert!(here, "{}", row.id);
    }
}
