//! Where the pages of requirements are, which `acp-conformance list --pages` writes.

use std::collections::BTreeMap;
use std::path::Path;

use super::render::file_address;

/// The folder of the pages, beside a report.
const FOLDER: &str = "requirements";

/// The addresses of requirements' sections, relative to a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowPages(BTreeMap<String, String>);

impl RowPages {
    /// Finds the pages in the folder `requirements` beside a report. A requirement without a section there
    /// has no address, because a link would lead nowhere.
    #[must_use]
    pub fn beside(report: &Path) -> Self {
        let folder = report.with_file_name(FOLDER);
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut addresses = BTreeMap::new();
        for file in files {
            let name = file.file_name().to_string_lossy().into_owned();
            if !name.ends_with(".md") {
                continue;
            }
            let text = std::fs::read_to_string(file.path()).unwrap_or_default();
            let ids = text.lines().filter_map(|line| line.strip_prefix("## "));
            let page = file_address(&name, FOLDER);
            addresses.extend(ids.map(|id| (id.to_owned(), format!("{page}#{}", anchor(id)))));
        }
        Self(addresses)
    }

    /// Returns the address of a requirement's section.
    pub(super) fn address(&self, id: &str) -> Option<&str> {
        self.0.get(id).map(String::as_str)
    }
}

/// Returns the anchor of a heading, as GitHub makes it.
fn anchor(id: &str) -> String {
    let kept = |c: &char| c.is_ascii_alphanumeric() || "-_".contains(*c);
    id.to_ascii_lowercase().chars().filter(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requirements_with_a_section_beside_the_report_have_an_address() {
        let folder = tempfile::tempdir().unwrap();
        let report = folder.path().join("report.html");
        assert_eq!(RowPages::beside(&report), RowPages::default());
        let pages = folder.path().join("requirements");
        std::fs::create_dir(&pages).unwrap();
        std::fs::write(pages.join("plan.md"), "# plan\n\n## plan.entries\n\ntext\n").unwrap();
        std::fs::write(pages.join("dev.txt"), "## plan.other\n").unwrap();
        let found = RowPages::beside(&report);
        let address = found.address("plan.entries");
        assert_eq!(address, Some("requirements/plan.md#planentries"));
        assert_eq!(found.address("plan.other"), None);
    }
}
