//! What the suite sees in what was said, live traffic shows too.

use std::collections::BTreeSet;

use super::*;
use crate::broken::{self, Broken};
use crate::harness::{Profile, Silence};
use crate::subject::Subject;
use crate::transcript::{Judge, Record};
use crate::wire::Schema;

/// What a broken agent says on the tours.
fn tours(broken: &Broken, schema: &Arc<Schema>) -> Vec<Recording> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    std::fs::write(path.join("input.txt"), "one\n").unwrap();
    let env = Env {
        subject: Subject::local().behind(broken.filter).telling_losses(),
        profile: Profile::reference().unwrap(),
        schema: schema.clone(),
        folder: path,
        // No sound agent comes near it, however busy the machine is, and a broken one says what
        // it leaves unanswered.
        timeout: Duration::from_secs(20),
        turn_timeout: Duration::from_secs(40),
        quiet: Duration::from_millis(20),
        silence: Silence::default(),
    };
    let mut cx = Cx::new(Arc::new(env));
    // What it comes to is not the question, but what was said.
    let _ = tour::with_everything(&mut cx);
    let _ = tour::with_nothing(&mut cx);
    cx.finish()
}

/// The rules over messages that the suite says are broken.
fn by_suite(recordings: &[Recording], chosen: &[Chosen]) -> BTreeSet<&'static str> {
    let verdicts = watched(chosen, Version::V1, recordings);
    let rows = chosen.iter().zip(verdicts);
    rows.filter(|(_, verdict)| matches!(verdict, Some(Verdict::Fail(_))))
        .map(|((_, row), _)| row.id)
        .collect()
}

/// The same of a judge of live traffic.
fn by_judge(recordings: &[Recording], schema: &Arc<Schema>) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    for recording in recordings {
        let mut judge = Judge::new(schema.clone(), None);
        let mut each = |finding: Finding| {
            if let Rule::Requirement(id) = finding.rule {
                found.insert(id);
            }
        };
        for (place, entry) in (1..).zip(&recording.entries) {
            if entry.raw.is_none() {
                let record = Record::Message(entry.from, entry.value.clone());
                judge.record(place, &record, &mut each);
            }
        }
        judge.finish(&mut each);
    }
    found.retain(|id| !id.starts_with("client."));
    found
}

#[test]
fn live_traffic_is_judged_by_the_same_rules() {
    let schema = Arc::new(Schema::v1().unwrap());
    let chosen: Vec<Chosen> = requirements::all()
        .filter(|(_, row)| match row.check {
            Check::Watch { look, .. } => !matches!(look, Look::Findings(..)),
            Check::Run(_) | Check::Excluded(_) => false,
        })
        .collect();
    let watches = |broken: &&Broken| {
        let mut breaks = broken.breaks.iter();
        breaks.any(|id| chosen.iter().any(|(_, row)| row.id == *id))
    };
    let all: Vec<_> = broken::all().filter(watches).collect();
    let part = |part: usize| -> BTreeSet<&'static str> {
        let mut proven = BTreeSet::new();
        for broken in all.iter().skip(part).step_by(4) {
            let recordings = tours(broken, &schema);
            let found = by_judge(&recordings, &schema);
            let expected = by_suite(&recordings, &chosen);
            // Where the schema forbids a message, a judge says that and no more.
            let invalid = recordings.iter().any(|recording| recording.invalid() > 0);
            let same = found == expected || (invalid && found.is_subset(&expected));
            assert!(same, "{}: {found:?}, not {expected:?}", broken.name);
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
    // No tour lists sessions.
    for (area, row) in &chosen {
        let here = proven.contains(row.id) || area.name == "session-list";
        assert!(here, "{}", row.id);
    }
}
