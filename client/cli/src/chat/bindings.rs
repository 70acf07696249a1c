//! The keys of the line editor.

use crossterm::event::Event;
use reedline::{
    EditCommand, EditMode, Emacs, KeyCode, KeyModifiers, Keybindings, PromptEditMode,
    ReedlineEvent, ReedlineRawEvent, Vi, default_emacs_keybindings, default_vi_insert_keybindings,
    default_vi_normal_keybindings,
};

use crate::args::Editing;

/// The menu of completions.
pub(super) const MENU: &str = "commands";

/// What a key does outside of the editor. The line stays.
pub(super) mod host {
    pub(in crate::chat) const NEXT_MODE: &str = "next mode";
    pub(in crate::chat) const OUTPUT: &str = "output";
    pub(in crate::chat) const IMAGE: &str = "image";
    pub(in crate::chat) const EDIT: &str = "edit";
}

/// The keys of Emacs or vi with those of a chat, and Ctrl-X Ctrl-E, which is a sequence.
pub(super) struct Bindings {
    keys: Box<dyn EditMode>,
    after_ctrl_x: bool,
}

impl Bindings {
    pub(super) fn new(editing: Editing) -> Self {
        let keys: Box<dyn EditMode> = match editing {
            Editing::Emacs => Box::new(Emacs::new(Self::of_chat(default_emacs_keybindings()))),
            Editing::Vi => {
                let insert = Self::of_chat(default_vi_insert_keybindings());
                Box::new(Vi::new(
                    insert,
                    Self::of_chat(default_vi_normal_keybindings()),
                ))
            }
        };
        Self {
            keys,
            after_ctrl_x: false,
        }
    }

    fn of_chat(mut keys: Keybindings) -> Keybindings {
        let command = |name: &str| ReedlineEvent::ExecuteHostCommand(name.to_owned());
        let complete = ReedlineEvent::UntilFound(vec![
            ReedlineEvent::Menu(MENU.to_owned()),
            ReedlineEvent::MenuNext,
        ]);
        let next_mode = vec![ReedlineEvent::MenuPrevious, command(host::NEXT_MODE)];
        let next_mode = ReedlineEvent::UntilFound(next_mode);
        let new_line = ReedlineEvent::Edit(vec![EditCommand::InsertNewline]);
        for (modifier, key, event) in [
            (KeyModifiers::NONE, KeyCode::Tab, complete),
            (KeyModifiers::SHIFT, KeyCode::BackTab, next_mode),
            (
                KeyModifiers::CONTROL,
                KeyCode::Char('o'),
                command(host::OUTPUT),
            ),
            (
                KeyModifiers::CONTROL,
                KeyCode::Char('v'),
                command(host::IMAGE),
            ),
            (KeyModifiers::ALT, KeyCode::Enter, new_line.clone()),
            (KeyModifiers::SHIFT, KeyCode::Enter, new_line.clone()),
            (KeyModifiers::CONTROL, KeyCode::Char('j'), new_line),
        ] {
            keys.add_binding(modifier, key, event);
        }
        keys
    }
}

impl EditMode for Bindings {
    fn parse_event(&mut self, event: ReedlineRawEvent) -> ReedlineEvent {
        let event = Event::from(event);
        let letter = match &event {
            Event::Key(key) if key.modifiers == KeyModifiers::CONTROL => key.code.as_char(),
            _ => None,
        };
        match (std::mem::take(&mut self.after_ctrl_x), letter) {
            (true, Some('e')) => return ReedlineEvent::ExecuteHostCommand(host::EDIT.to_owned()),
            (_, Some('x')) => {
                self.after_ctrl_x = true;
                return ReedlineEvent::None;
            }
            _ => {}
        }
        match ReedlineRawEvent::try_from(event) {
            Ok(event) => self.keys.parse_event(event),
            Err(()) => ReedlineEvent::None,
        }
    }

    fn edit_mode(&self) -> PromptEditMode {
        self.keys.edit_mode()
    }
}
