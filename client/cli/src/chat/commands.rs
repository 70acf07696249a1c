//! Commands that begin with a slash.

use acp_sdk::v1::{SessionConfigKind, SessionConfigOption};

use super::style::{Face, Paint, fit, wrap};
use crate::selection::values;
use acp_client::SessionSettings;

/// The commands of `acp`: names, arguments, descriptions.
const OWN: [(&str, &str, &str); 22] = [
    ("help", "", "lists the commands and keys"),
    ("mode", "[MODE]", "shows the modes, or changes to one"),
    ("model", "[MODEL]", "shows the models, or chooses one"),
    (
        "option",
        "[OPTION [VALUE]]",
        "shows the options, or changes one",
    ),
    (
        "undo",
        "",
        "brings back the files that the last turn changed",
    ),
    ("redo", "", "changes them again"),
    (
        "output",
        "[NUMBER]",
        "shows the whole output of a tool call, as Ctrl-O does",
    ),
    ("copy", "", "copies the last answer to the clipboard"),
    (
        "edit",
        "[TEXT]",
        "writes the prompt in $VISUAL or $EDITOR, as Ctrl-X Ctrl-E does",
    ),
    (
        "image",
        "[FILE]",
        "attaches an image to the next prompt: that in the clipboard, as Ctrl-V does, or a file",
    ),
    ("plan", "", "shows the plan"),
    ("usage", "", "shows tokens and cost"),
    (
        "session",
        "",
        "shows the session's id, with which it can be resumed",
    ),
    ("new", "", "begins a new session"),
    ("sessions", "", "chooses a stored session of this directory"),
    (
        "resume",
        "[SESSION]",
        "continues a session: its number in /sessions, name or id",
    ),
    (
        "switch",
        "[NUMBER]",
        "changes to another open session, during a turn too",
    ),
    ("fork", "", "goes on in a copy of the session"),
    (
        "steer",
        "TEXT",
        "gives the running turn further input; between turns, a prompt",
    ),
    ("cancel", "", "cancels the turn, as Esc does"),
    ("quit", "", "ends acp, as Ctrl-D does"),
    ("exit", "", "the same"),
];

/// In fewer columns, `/help` has descriptions below the names.
const NARROW: usize = 60;

/// A typed line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Typed {
    Nothing,
    /// A prompt, including the agent's slash commands.
    Prompt(String),
    Help,
    Mode(String),
    Model(String),
    Option(String, String),
    Undo,
    Redo,
    /// The number of a cut output; the last one if it is empty.
    Output(String),
    Copy,
    Edit(String),
    Image(String),
    Plan,
    Usage,
    Session,
    New,
    /// A session by its number, name or id; to be chosen if it is empty.
    Resume(String),
    /// The number of an open session; to be chosen if it is empty.
    Switch(String),
    Fork,
    Cancel,
    Quit,
    /// Neither `acp` nor the agent has this command.
    Unknown(String),
}

impl Typed {
    /// Parses a line as a command or a prompt. `//name` is a prompt that begins with `/name`.
    pub(super) fn parse(line: &str, settings: &SessionSettings) -> Self {
        // A backslash at the end of a line joins the next one.
        let line = line.replace("\\\n", "\n");
        let line = line.trim();
        if line.is_empty() {
            return Self::Nothing;
        }
        let Some(rest) = line.strip_prefix('/') else {
            return Self::Prompt(line.to_owned());
        };
        if rest.starts_with('/') {
            return Self::Prompt(rest.to_owned());
        }
        let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let argument = argument.trim();
        match name {
            "help" | "?" => Self::Help,
            "mode" => Self::Mode(argument.to_owned()),
            "model" => Self::Model(argument.to_owned()),
            "option" => {
                let (id, value) = argument
                    .split_once(char::is_whitespace)
                    .unwrap_or((argument, ""));
                Self::Option(id.to_owned(), value.trim().to_owned())
            }
            "undo" => Self::Undo,
            "redo" => Self::Redo,
            "output" => Self::Output(argument.to_owned()),
            "copy" => Self::Copy,
            "edit" => Self::Edit(argument.to_owned()),
            "image" => Self::Image(argument.to_owned()),
            "plan" => Self::Plan,
            "usage" => Self::Usage,
            "session" => Self::Session,
            "new" => Self::New,
            "sessions" => Self::Resume(String::new()),
            "resume" => Self::Resume(argument.to_owned()),
            "switch" => Self::Switch(argument.to_owned()),
            "fork" => Self::Fork,
            "steer" if !argument.is_empty() => Self::Prompt(argument.to_owned()),
            "steer" => Self::Nothing,
            "cancel" => Self::Cancel,
            "quit" | "exit" => Self::Quit,
            name if settings.commands.iter().any(|command| command.name == name) => {
                Self::Prompt(line.to_owned())
            }
            // A path is not a command.
            name if name.is_empty() || name.contains(['/', '.']) => Self::Prompt(line.to_owned()),
            name => Self::Unknown(name.to_owned()),
        }
    }
}

/// Returns the completions for Tab, with a description each.
pub(super) fn completions(settings: &SessionSettings) -> Vec<(String, String)> {
    let mut list = Vec::new();
    for (name, _, what) in OWN {
        list.push((format!("/{name}"), what.to_owned()));
    }
    for command in &settings.commands {
        let name = fit(&command.name, 100);
        if !OWN.iter().any(|(own, ..)| *own == name) {
            list.push((format!("/{name}"), fit(&command.description, 60)));
        }
    }
    for mode in settings
        .modes
        .iter()
        .flat_map(|modes| &modes.available_modes)
    {
        list.push((
            format!("/mode {}", fit(mode.id.as_str(), 100)),
            fit(&mode.name, 60),
        ));
    }
    for option in settings.config_options.iter().flatten() {
        let id = fit(option.id.as_str(), 100);
        list.push((format!("/option {id}"), fit(&option.name, 60)));
        for (value, name) in values(option) {
            let entry = format!("/option {id} {}", fit(&value, 100));
            list.push((entry, fit(&name, 60)));
            if option.selects_model() {
                list.push((format!("/model {}", fit(&value, 100)), fit(&name, 60)));
            }
        }
    }
    list
}

/// Returns the output of `/help`.
pub(super) fn help(settings: &SessionSettings, width: usize, paint: Paint) -> String {
    let mut text = String::new();
    let mut row = |name: &str, what: &str| {
        if width < NARROW {
            let name = fit(name, width.saturating_sub(3));
            text += &format!("  {}\n", paint.text(Face::BOLD, &name));
            for line in wrap(what, width.saturating_sub(7)) {
                text += &format!("      {line}\n");
            }
            return;
        }
        let name = fit(name, 26);
        let space = " "
            .repeat(28_usize.saturating_sub(unicode_width::UnicodeWidthStr::width(name.as_str())));
        let what = fit(what, width.saturating_sub(31));
        text += &format!("  {}{space}{}\n", paint.text(Face::BOLD, &name), what);
    };
    for (name, arguments, what) in OWN {
        row(format!("/{name} {arguments}").trim_end(), what);
    }
    for command in &settings.commands {
        row(
            &format!("/{}", command.name),
            &format!("agent: {}", command.description),
        );
    }
    for (keys, what) in [
        ("Enter", "sends"),
        ("Alt-Enter, Ctrl-J, \\Enter", "begins a new line"),
        (
            "Tab, Up, Ctrl-R",
            "complete commands, recall prompts, search them",
        ),
        ("@, then Tab", "attaches a file, completed by Tab"),
        ("Ctrl-O", "shows the whole output of the last cut tool call"),
        ("Ctrl-V", "attaches the image in the clipboard"),
        ("Ctrl-X Ctrl-E", "writes the prompt in $VISUAL or $EDITOR"),
        ("Shift-Tab", "changes to the next mode of the agent"),
        ("Esc, Ctrl-C", "cancel the turn; a second Ctrl-C ends acp"),
        ("Ctrl-D", "ends acp"),
    ] {
        row(keys, what);
    }
    text
}

/// Returns the output of `/mode`.
pub(super) fn modes(settings: &SessionSettings, width: usize) -> String {
    let Some(modes) = &settings.modes else {
        return "The agent has no modes.\n".to_owned();
    };
    let rows = modes.available_modes.iter().map(|mode| {
        let about = mode.description.as_deref().unwrap_or(&mode.name);
        row(
            mode.id == modes.current_mode_id,
            mode.id.as_str(),
            about,
            width,
        )
    });
    rows.collect()
}

/// Returns the output of `/option`, for all options or the named ones.
pub(super) fn options(
    settings: &SessionSettings,
    wanted: impl Fn(&SessionConfigOption) -> bool,
    width: usize,
) -> String {
    let mut text = String::new();
    for option in settings
        .config_options
        .iter()
        .flatten()
        .filter(|option| wanted(option))
    {
        text += &format!(
            "{}: {}\n",
            fit(option.id.as_str(), 40),
            fit(&option.name, width.saturating_sub(45))
        );
        match &option.kind {
            SessionConfigKind::Select(select) => {
                for choice in select.choices() {
                    let current = choice.value == select.current_value;
                    text += &row(current, choice.value.as_str(), &choice.name, width);
                }
            }
            SessionConfigKind::Boolean(switch) => {
                text += &row(switch.current_value, "on", "", width);
                text += &row(!switch.current_value, "off", "", width);
            }
            _ => {}
        }
    }
    match text.is_empty() {
        true => "The agent has no such option.\n".to_owned(),
        false => text,
    }
}

fn row(current: bool, id: &str, about: &str, width: usize) -> String {
    let sign = if current { '●' } else { ' ' };
    let line = fit(
        &format!("  {sign} {id:<20} {about}"),
        width.saturating_sub(1),
    );
    format!("{}\n", line.trim_end())
}

#[cfg(test)]
mod tests {
    use acp_sdk::v1::AvailableCommand;

    use super::*;

    fn settings() -> SessionSettings {
        let mut settings = SessionSettings::default();
        settings.commands = vec![AvailableCommand::new("review", "Re\u{1b}[2Jviews")];
        settings
    }

    #[test]
    fn commands_are_told_from_prompts() {
        let settings = settings();
        let parse = |line: &str| Typed::parse(line, &settings);
        let prompt = |text: &str| Typed::Prompt(text.to_owned());
        assert_eq!(parse(" \n"), Typed::Nothing);
        assert_eq!(parse("hi /help"), prompt("hi /help"));
        assert_eq!(parse("a\\\nb"), prompt("a\nb"));
        assert_eq!(parse("/review it"), prompt("/review it"));
        assert_eq!(parse("//help"), prompt("/help"));
        assert_eq!(
            parse("/etc/passwd, what is it?"),
            prompt("/etc/passwd, what is it?")
        );
        assert_eq!(parse("/mode  code"), Typed::Mode("code".to_owned()));
        assert_eq!(
            parse("/option a b c"),
            Typed::Option("a".to_owned(), "b c".to_owned())
        );
        assert_eq!(parse("/qit"), Typed::Unknown("qit".to_owned()));
        for (name, ..) in OWN {
            let typed = parse(&format!("/{name}"));
            assert!(
                !matches!(typed, Typed::Prompt(_) | Typed::Unknown(_)),
                "{name}"
            );
        }
    }

    #[test]
    fn the_agents_commands_are_completed_and_listed() {
        let list = completions(&settings());
        assert!(list.contains(&("/review".to_owned(), "Reviews".to_owned())));
        assert!(list.iter().any(|(line, _)| line == "/help"));
        let text = help(&settings(), 80, Paint { colours: false });
        assert!(
            text.contains("  /review                     agent: Reviews\n"),
            "{text}"
        );
        for width in [40, 80] {
            let text = help(&settings(), width, Paint { colours: false });
            let lines = text.lines().map(unicode_width::UnicodeWidthStr::width);
            assert!(lines.max() < Some(width), "{text}");
            assert!(text.contains("begins a new session"), "{text}");
        }
    }
}
