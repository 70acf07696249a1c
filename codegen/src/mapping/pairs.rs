//! The pairs of types: those of equal names, and those that the mapping names.

use std::collections::BTreeSet;

use super::Side;
use super::document::{Both, Mapping, Pair, Place, Version};
use crate::Error;
use crate::lower::escape;

/// All pairs, with their rows in the mapping.
pub(super) struct Pairs<'a>(Vec<(Both<String>, Option<&'a Pair>)>);

impl<'a> Pairs<'a> {
    /// Finds the pairs. `file` is the mapping's; `is_extended`: overlays apply, so that a type that
    /// the mapping calls lost may have an equal.
    ///
    /// # Errors
    /// Fails when a type is in no pair and not lost, and when a row names no type.
    pub(super) fn new(
        sides: &Both<Side<'_>>,
        mapping: &'a Mapping,
        file: &str,
        is_extended: bool,
    ) -> Result<Self, Error> {
        let is_own = |version: Version, name: &str| sides.of(version).model.is_own(name);
        let mut found = Vec::new();
        for pair in &mapping.pairs {
            for version in [Version::V1, Version::V2] {
                exists(&pair.at, version, pair.names.of(version), &is_own)?;
            }
            found.push((pair.names.clone(), Some(pair)));
        }
        let mut lost = BTreeSet::new();
        for row in &mapping.lost {
            exists(&row.at, row.version, &row.name, &is_own)?;
            let is_row = |pair: &Pair| *pair.names.of(row.version) == row.name;
            if !is_extended && mapping.pairs.iter().any(is_row) {
                let message = format!("`{}` is lost and has a pair", row.name);
                return Err(row.at.error(message, "remove one of the two"));
            }
            lost.insert((row.version.name(), row.name.as_str()));
        }
        for ty in sides.of(Version::V1).model.own_types() {
            let name = &ty.name;
            let names = Both::new(name.clone(), name.clone());
            let is_lost = lost.contains(&("v1", name.as_str())) || lost.contains(&("v2", name));
            let is_known = found.iter().any(|(known, _)| *known == names);
            if is_own(Version::V2, name) && !is_lost && !is_known {
                found.push((names, None));
            }
        }
        for version in [Version::V1, Version::V2] {
            let side = sides.of(version);
            for ty in side.model.own_types() {
                let is_lost = lost.contains(&(version.name(), ty.name.as_str()));
                let in_pair = found.iter().any(|(names, _)| *names.of(version) == ty.name);
                if !is_lost && !in_pair {
                    let message =
                        format!("`{}` has no equal in {}", ty.name, version.other().name());
                    let help = format!(
                        "add it to {file}: to `pairs` with the type that is its equal, or to `lost` \
                         with a reason"
                    );
                    return Err(side.error(&ty.at, message, help));
                }
            }
        }
        Ok(Self(found))
    }

    pub(super) fn all(&self) -> &[(Both<String>, Option<&'a Pair>)] {
        &self.0
    }

    /// Returns whether the type `source` has a conversion to `target` of the version `to`.
    pub(super) fn has(&self, source: &str, target: &str, to: Version) -> bool {
        self.0.iter().any(|(names, row)| {
            names.of(to.other()) == source
                && names.of(to) == target
                && row.is_none_or(|row| row.only.is_none_or(|only| only == to))
        })
    }
}

fn exists(
    at: &Place,
    version: Version,
    name: &str,
    is_own: &impl Fn(Version, &str) -> bool,
) -> Result<(), Error> {
    if is_own(version, name) {
        return Ok(());
    }
    let message = format!("{} has no type `{name}`", version.name());
    let help = format!(
        "correct the name, or remove the row (/$defs/{})",
        escape(name)
    );
    Err(at.error(message, help))
}
