//! One Markdown file with frontmatter.

use serde::Deserialize;

use super::template::Template;

/// Characters of a description that is taken from the text.
const LONGEST_DESCRIPTION: usize = 120;

/// What a file says of its command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Definition {
    pub(super) description: String,
    pub(super) argument_hint: Option<String>,
    pub(super) model: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) template: Template,
}

/// The frontmatter. Members of other systems are ignored.
#[derive(Default, Deserialize)]
struct Frontmatter {
    description: Option<String>,
    #[serde(rename = "argument-hint", alias = "argument_hint")]
    argument_hint: Option<String>,
    model: Option<String>,
    agent: Option<String>,
}

impl Definition {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// The reason why it defines no command.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let (frontmatter, body) = match divide(text)? {
            Some((yaml, body)) => (read(yaml)?, body.trim()),
            None => (Frontmatter::default(), text.trim()),
        };
        if body.is_empty() {
            return Err("it has no text to send".to_owned());
        }
        let description = frontmatter.description.map(|text| text.trim().to_owned());
        let description = description.filter(|text| !text.is_empty());
        Ok(Self {
            description: description.unwrap_or_else(|| first_line(body)),
            argument_hint: frontmatter.argument_hint,
            model: frontmatter.model,
            agent: frontmatter.agent,
            template: Template::parse(body),
        })
    }
}

/// Divides a text that begins with a line `---` at the next one.
fn divide(text: &str) -> Result<Option<(&str, &str)>, String> {
    let mut lines = text.split_inclusive('\n');
    if lines.next().map(str::trim_end) != Some("---") {
        return Ok(None);
    }
    let begin = text.len() - lines.clone().map(str::len).sum::<usize>();
    let mut at = begin;
    for line in lines {
        let next = at + line.len();
        if line.trim_end() == "---" {
            return Ok(Some((&text[begin..at], &text[next..])));
        }
        at = next;
    }
    Err("its frontmatter has no end; close it with a line ---".to_owned())
}

fn read(yaml: &str) -> Result<Frontmatter, String> {
    let (hint, yaml) = unquoted_hint(yaml);
    if yaml.trim().is_empty() {
        return Ok(Frontmatter {
            argument_hint: hint,
            ..Frontmatter::default()
        });
    }
    let read: Result<Option<Frontmatter>, _> = serde_saphyr::from_str(&yaml);
    let read = read.map_err(|error| {
        let error = error.to_string();
        let line = error.lines().next().unwrap_or_default();
        format!("its frontmatter is no YAML of a command: {line}")
    })?;
    let mut frontmatter = read.unwrap_or_default();
    if hint.is_some() {
        frontmatter.argument_hint = hint;
    }
    Ok(frontmatter)
}

/// Takes the line of a hint such as `[file] [line]` out: many files have it without quotes, where it is
/// a list, or no YAML at all.
fn unquoted_hint(yaml: &str) -> (Option<String>, String) {
    let mut hint = None;
    let others = yaml.split_inclusive('\n').filter(|line| {
        let value = line.strip_prefix("argument-hint:").map(str::trim);
        let value = value.filter(|value| value.starts_with(['[', '<']));
        hint = hint.take().or(value.map(str::to_owned));
        value.is_none()
    });
    let others = others.collect();
    (hint, others)
}

/// Returns the first line of a text, for people.
fn first_line(body: &str) -> String {
    let line = body.lines().next().unwrap_or_default();
    let line = line.trim_start_matches('#').trim();
    match line.char_indices().nth(LONGEST_DESCRIPTION) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frontmatter_is_read_and_other_members_are_ignored() {
        let text = "\u{feff}---\r\ndescription: \"Reviews: all\"\r\nargument-hint: FILE\r\nmodel: small\r\nagent: plan\r\nallowed-tools: [a, b]\r\n---\r\n\r\nReview $1.\r\n";
        let definition = Definition::parse(text).unwrap();
        assert_eq!(definition.description, "Reviews: all");
        assert_eq!(definition.argument_hint.as_deref(), Some("FILE"));
        assert_eq!(definition.model.as_deref(), Some("small"));
        assert_eq!(definition.agent.as_deref(), Some("plan"));
        assert_eq!(definition.template, Template::parse("Review $1."));
    }

    #[test]
    fn hints_in_brackets_need_no_quotes() {
        let parse = |hint: &str| {
            let text = format!("---\nargument-hint: {hint}\ndescription: d\n---\nx");
            let definition = Definition::parse(&text).unwrap();
            assert_eq!(definition.description, "d");
            definition.argument_hint.unwrap()
        };
        assert_eq!(parse("[file]"), "[file]");
        assert_eq!(parse("[file] [line]"), "[file] [line]");
        assert_eq!(parse("'[file]'"), "[file]");
        let only = Definition::parse("---\nargument-hint: <x>\n---\nx").unwrap();
        assert_eq!(only.argument_hint.as_deref(), Some("<x>"));
    }

    #[test]
    fn a_file_without_frontmatter_is_described_by_its_first_line() {
        let definition = Definition::parse("# Explain\n\nExplain it.\n---\n").unwrap();
        assert_eq!(definition.description, "Explain");
        let long = "ä".repeat(200);
        let definition = Definition::parse(&long).unwrap();
        assert_eq!(
            definition.description.chars().count(),
            LONGEST_DESCRIPTION + 1
        );
        let definition = Definition::parse("---\n# nothing\n---\nx").unwrap();
        assert_eq!(definition.description, "x");
    }

    #[test]
    fn broken_files_say_what_is_wrong() {
        #[track_caller]
        fn fails(text: &str, expected: &str) {
            let reason = Definition::parse(text).unwrap_err();
            assert!(reason.contains(expected), "{reason}");
            assert!(!reason.contains('\n'), "{reason}");
        }
        fails("---\ndescription: x\n", "no end");
        fails("---\ndescription: [x\n---\nx", "no YAML");
        fails("---\ndescription: {a: b}\n---\nx", "no YAML");
        fails("---\ndescription: x\n---\n \n", "no text");
    }
}
