//! Which requirements are run.

use super::Tier;
use crate::{Error, Result};

/// Requirements by name: their id, their area (of clients: the scenario) or their tier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Only these; empty for all.
    pub only: Vec<String>,
    /// Not these.
    pub skip: Vec<String>,
}

impl Choice {
    /// Whether nothing but what is named is run.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        !self.only.is_empty()
    }

    /// Whether anything is left out.
    #[must_use]
    pub fn is_narrowed(&self) -> bool {
        !self.only.is_empty() || !self.skip.is_empty()
    }

    /// The chosen ones of `rows`; `facts` yields id, area and tier of one.
    ///
    /// # Errors
    /// When a name is that of none of them.
    pub fn of<T>(
        &self,
        rows: impl IntoIterator<Item = T>,
        facts: impl Fn(&T) -> (&str, &str, Tier),
    ) -> Result<Vec<T>> {
        let rows: Vec<T> = rows.into_iter().collect();
        let names = |name: &String, row: &T| {
            let (id, area, tier) = facts(row);
            [id, area, tier.as_str()].contains(&name.as_str())
        };
        for name in self.only.iter().chain(&self.skip) {
            if !rows.iter().any(|row| names(name, row)) {
                return Err(Error::NoRequirement(name.clone()));
            }
        }
        let in_any = |list: &[String], row: &T| list.iter().any(|name| names(name, row));
        let wanted =
            |row: &T| (self.only.is_empty() || in_any(&self.only, row)) && !in_any(&self.skip, row);
        Ok(rows.into_iter().filter(wanted).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: [(&str, &str, Tier); 3] = [
        ("a.one", "a", Tier::Must),
        ("a.two", "a", Tier::Info),
        ("b.one", "b", Tier::Must),
    ];

    fn chosen(only: &[&str], skip: &[&str]) -> Result<Vec<&'static str>> {
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let (only, skip) = (own(only), own(skip));
        let rows = Choice { only, skip }.of(ROWS, |row| *row)?;
        Ok(rows.into_iter().map(|(id, ..)| id).collect())
    }

    #[test]
    fn requirements_go_by_id_area_and_tier() {
        assert_eq!(chosen(&[], &[]).unwrap(), ["a.one", "a.two", "b.one"]);
        assert_eq!(chosen(&["b.one", "info"], &[]).unwrap(), ["a.two", "b.one"]);
        assert_eq!(chosen(&["a"], &["info"]).unwrap(), ["a.one"]);
        assert_eq!(chosen(&[], &["a", "b.one"]).unwrap(), [""; 0]);
    }

    #[test]
    fn a_name_of_nothing_is_a_mistake() {
        let error = chosen(&[], &["a.three"]).unwrap_err().to_string();
        assert!(error.contains("a.three"), "{error}");
    }
}
