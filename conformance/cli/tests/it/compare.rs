//! `acp-conformance compare` and `report`: reports side by side, and in other formats.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::command::acp_conformance;

/// Writes a report on the reference agent, broken in a way or not; its path.
fn report(folder: &TempDir, broken: Option<&str>) -> String {
    let name = format!("{}.json", broken.unwrap_or("sound"));
    let path = folder.path().join(name).to_str().unwrap().to_owned();
    let page = path.replace(".json", ".html");
    let mut options = vec!["agent", "--strict", "--only", "plan", "--json", &path];
    options.extend(["--html", &page]);
    if let Some(name) = broken {
        options.extend(["--broken", name]);
    }
    let ran = acp_conformance(options);
    assert_eq!(
        ran.code,
        Some(i32::from(broken.is_some())),
        "{}",
        ran.stderr
    );
    path
}

#[test]
fn two_reports_stand_side_by_side() {
    let folder = TempDir::new().unwrap();
    let (sound, broken) = (report(&folder, None), report(&folder, Some(BREAKS_A_PLAN)));
    let page = folder.path().join("page.html");
    let page = page.to_str().unwrap();
    let ran = acp_conformance(["compare", &sound, &broken, "--html", page]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let says = |text: &str| assert!(ran.stdout.contains(text), "{text}: {}", ran.stdout);
    says(": conformant (");
    says(": not conformant (");
    says("They differ in 1 requirement:");
    says("\nRegressions: pass in 1, fail in 2\n");
    says("FAIL\n    2: ");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("Where they differ: 1 requirement"), "{page}");

    let ran = acp_conformance(["compare", &sound, &broken, "--json", "-"]);
    let comparison: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(comparison["subjects"][1]["conformant"], false);
    let cells = &comparison["differences"][0]["cells"];
    assert_eq!(
        (&cells[0]["verdict"], &cells[1]["verdict"]),
        (&"pass".into(), &"fail".into())
    );
}

#[test]
fn other_formats_of_a_report_are_made_without_a_run() {
    let folder = TempDir::new().unwrap();
    let broken = report(&folder, Some(BREAKS_A_PLAN));
    let page = folder.path().join("again.html");
    let ran = acp_conformance(["report", &broken, "--html", page.to_str().unwrap()]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stdout.contains("\nnot conformant: "), "{}", ran.stdout);
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    let first = read(&Path::new(&broken).with_extension("html"));
    assert_eq!(read(&page), first);
}

#[test]
fn a_regression_fails_where_it_is_asked_for() {
    let folder = TempDir::new().unwrap();
    let (sound, broken) = (report(&folder, None), report(&folder, Some(BREAKS_A_PLAN)));
    let code = |reports: [&String; 2]| {
        let [old, new] = reports.map(String::as_str);
        acp_conformance(["compare", "--fail-on-regression", old, new]).code
    };
    assert_eq!(code([&sound, &broken]), Some(1));
    assert_eq!(code([&broken, &sound]), Some(0));
    assert_eq!(code([&broken, &broken]), Some(0));
}

#[test]
fn one_report_and_a_report_that_is_none_are_mistakes() {
    let folder = TempDir::new().unwrap();
    let sound = report(&folder, None);
    assert_eq!(acp_conformance(["compare", &sound]).code, Some(2));
    let other = folder.path().join("other.json");
    std::fs::write(&other, "{\"version\": 1, \"requirements\": []}").unwrap();
    let ran = acp_conformance(["compare", &sound, other.to_str().unwrap()]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("cannot use the report"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("other.json: its format is version 1"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.stdout, "");
}

/// A broken agent that breaks one requirement of plans.
const BREAKS_A_PLAN: &str = "empty-plan";
