//! The checks of version 2 proven: the reference agent passes each, and a broken one fails it.

use acp_conformance::wire::Version;

use crate::matrix;

#[test]
fn mutants_of_v2_fail_what_they_break_and_nothing_else() {
    matrix::mutants_fail_what_they_break_and_nothing_else(Version::V2);
}

#[test]
fn the_reference_agent_of_v2_breaks_nothing_and_skips_nothing() {
    matrix::the_reference_agent_breaks_nothing_and_skips_nothing(Version::V2);
}

#[test]
fn every_check_of_v2_has_a_mutant() {
    matrix::every_check_has_a_mutant(Version::V2);
}
