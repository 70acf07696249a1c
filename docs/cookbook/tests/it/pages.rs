//! The pages have the texts of the recipes, are in the index, and their links lead somewhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the cookbook.
fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The names of the files of a folder with an extension.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    paths.sort();
    paths
}

/// The pages of the cookbook and of the migration guide.
fn pages() -> Vec<PathBuf> {
    let migration = folder().join("../migration");
    [files(&folder(), "md"), files(&migration, "md")].concat()
}

/// Puts the texts of recipes into a page: the block of Rust behind each line `<!-- recipe: NAME -->`.
fn with_recipes(page: &str, recipe: &mut impl FnMut(&str) -> String) -> String {
    let mut lines = page.lines();
    let mut text = String::new();
    while let Some(line) = lines.next() {
        text += line;
        text += "\n";
        let name = line.strip_prefix("<!-- recipe: ");
        let Some(name) = name.and_then(|name| name.strip_suffix(" -->")) else {
            continue;
        };
        assert_eq!(lines.next(), Some("```rust"), "behind {line}");
        let _old = lines.by_ref().take_while(|line| *line != "```").count();
        text += &format!("```rust\n{}```\n", recipe(name));
    }
    text
}

#[test]
fn each_page_has_the_text_of_its_recipe() {
    let sources = files(&folder().join("src"), "rs");
    let names = sources
        .iter()
        .map(|path| path.file_stem().unwrap().to_str().unwrap());
    let mut missing: BTreeSet<_> = names.filter(|name| *name != "lib").collect();
    let mut stale = Vec::new();
    for path in pages() {
        let page = fs::read_to_string(&path).unwrap();
        let mut shown = Vec::new();
        let text = with_recipes(&page, &mut |name| {
            shown.push(name.to_owned());
            let file = folder().join(format!("src/{name}.rs"));
            fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
        });
        for name in shown {
            assert!(
                missing.remove(name.as_str()),
                "{name} is shown twice, or is no recipe"
            );
        }
        if text == page {
            continue;
        }
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&path, text).unwrap();
        } else {
            stale.push(path);
        }
    }
    assert!(missing.is_empty(), "recipes without a page: {missing:?}");
    let remedy = "UPDATE_GOLDEN=1 cargo test -p acp-cookbook pages";
    assert!(
        stale.is_empty(),
        "stale pages: {stale:?}; {remedy} writes them"
    );
}

#[test]
fn a_recipe_replaces_the_old_text_of_its_block() {
    let page = "a\n<!-- recipe: x -->\n```rust\nold\n```\nb\n";
    let text = with_recipes(page, &mut |name| format!("{name}\n"));
    assert_eq!(text, "a\n<!-- recipe: x -->\n```rust\nx\n```\nb\n");
}

#[test]
fn pages_and_recipes_are_short() {
    for path in files(&folder().join("src"), "rs") {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        let is_recipe = !name.starts_with("migration_") && name != "lib";
        assert!(!is_recipe || lines <= 40, "{name} has {lines} lines");
    }
    for path in pages() {
        let page = fs::read_to_string(&path).unwrap();
        let longest = page.lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(160), "{} has a long line", path.display());
    }
}

/// The targets of the links of a page, without those of the web.
fn links(page: &str) -> impl Iterator<Item = &str> {
    let targets = page.split("](").skip(1);
    let targets = targets.filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
    targets.filter(|target| !target.starts_with("https://"))
}

/// The anchor of a heading, as web pages of repositories make it.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().replace(' ', "-")
}

#[test]
fn links_lead_to_files_and_headings() {
    for path in pages() {
        let page = fs::read_to_string(&path).unwrap();
        for link in links(&page) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => path.clone(),
                file => path.parent().unwrap().join(file),
            };
            assert!(target.exists(), "{}: {link} leads nowhere", path.display());
            if heading.is_empty() {
                continue;
            }
            let text = fs::read_to_string(&target).unwrap();
            let headings = text.lines().filter(|line| line.starts_with('#'));
            let mut anchors = headings.map(|line| anchor(line.trim_start_matches('#').trim()));
            assert!(
                anchors.any(|found| found == heading),
                "{}: no heading {link}",
                path.display()
            );
        }
    }
}

#[test]
fn every_page_is_in_the_index() {
    let index = fs::read_to_string(folder().join("README.md")).unwrap();
    let linked: BTreeSet<_> = links(&index).collect();
    for path in files(&folder(), "md") {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(
            name == "README.md" || linked.contains(name),
            "{name} is not in the index"
        );
    }
}
