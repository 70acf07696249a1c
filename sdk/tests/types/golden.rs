//! What this crate was built from is the text that is kept for review, and for builds
//! without the generator.

#[test]
fn the_build_script_gave_the_kept_text() {
    let built = include_str!(concat!(env!("OUT_DIR"), "/v1.rs"));
    let kept = include_str!("../../generated/v1.rs");
    let line = built
        .lines()
        .zip(kept.lines())
        .position(|(built, kept)| built != kept);
    assert!(
        built == kept,
        "first difference in line {:?}; UPDATE_GOLDEN=1 cargo test -p acp-codegen --test golden",
        line.map(|line| line + 1)
    );
}
