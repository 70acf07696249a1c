//! Updates that the handler sends: what they change in the session, and those outside of turns.

use acp_sdk::Patch;
use acp_sdk::v1::{MessageId, SessionUpdate};

use super::Session;
use crate::log::Appender;
use crate::store::RecordChange;
use crate::turn::{Role, chunk, ends_message, push};
use crate::{Error, Result};

impl Session {
    /// Sends an update that belongs to no turn: of work that goes on in the background, or a change
    /// of the agent's own. In a turn, use [`Turn::send`](crate::Turn::send).
    ///
    /// Returns when the event has its number. Clients receive it when it is committed.
    ///
    /// # Errors
    ///
    /// [`Error::SessionClosed`] when the session is closed, and [`Error::Store`] when the store has
    /// failed.
    pub async fn send(&self, update: SessionUpdate) -> Result<()> {
        self.append_outside(|appender| {
            let mut update = update;
            match chunk(&mut update) {
                Some((role, chunk)) if chunk.message_id.is_none() => {
                    chunk.message_id = Some(self.message_outside(role));
                }
                Some(_) => {}
                None => {
                    if ends_message(&update) {
                        self.state().message = None;
                    }
                    self.agree(appender, &update);
                }
            }
            push(appender, &update)
        })
        .await
    }

    /// Sends an update of another agent, with members that [`SessionUpdate`] does not have.
    pub async fn send_raw(&self, update: &mut crate::event::RawUpdate) -> Result<()> {
        self.append_outside(|appender| {
            match update.role {
                Some(role) if update.needs_message() => {
                    update.set_message(&self.message_outside(role));
                }
                Some(_) => {}
                None => {
                    if ends_message(&update.known) {
                        self.state().message = None;
                    }
                    self.agree(appender, &update.known);
                }
            }
            push(appender, &update.to_json())
        })
        .await
    }

    /// Appends to the log, outside of any turn.
    pub(crate) async fn append_outside<T>(
        &self,
        write: impl FnOnce(&mut Appender<'_>) -> Result<T>,
    ) -> Result<T> {
        if self.state().queue.is_closed() {
            return Err(Error::SessionClosed(self.id().clone()));
        }
        self.log().append(self.log().epoch(), write).await
    }

    /// Returns the id of the message that a chunk outside of turns belongs to.
    pub(crate) fn message_outside(&self, role: Role) -> MessageId {
        let mut state = self.state();
        if let Some((speaking, id)) = &state.message
            && *speaking == role
        {
            return id.clone();
        }
        let id = MessageId::from(self.next_id("message"));
        state.message = Some((role, id.clone()));
        id
    }

    /// Makes settings and title agree with an update of the handler. Must be called under the log's
    /// lock before the update is appended.
    pub(crate) fn agree(&self, appender: &mut Appender<'_>, update: &SessionUpdate) {
        match update {
            SessionUpdate::CurrentModeUpdate(update) => {
                self.before_change(appender);
                let changed = {
                    let settings = &mut self.state().settings;
                    settings.mode_updated(&update.current_mode_id);
                    settings.changed().clone()
                };
                self.keep_settings(appender, changed);
            }
            SessionUpdate::ConfigOptionUpdate(update) => {
                self.before_change(appender);
                let changed = {
                    let settings = &mut self.state().settings;
                    settings.options_updated(update.config_options.clone());
                    settings.changed().clone()
                };
                self.keep_settings(appender, changed);
            }
            SessionUpdate::AvailableCommandsUpdate(update) => {
                self.before_change(appender);
                let commands = update.available_commands.clone();
                self.state().settings.set_commands(commands);
            }
            SessionUpdate::SessionInfoUpdate(update) => {
                let title = match &update.title {
                    Patch::Absent => return,
                    Patch::Null => None,
                    Patch::Value(title) => Some(title.clone()),
                };
                self.before_change(appender);
                self.state().title.clone_from(&title);
                appender.change(RecordChange {
                    title: Some(title),
                    ..RecordChange::default()
                });
            }
            _ => {}
        }
    }

    fn keep_settings(
        &self,
        appender: &mut Appender<'_>,
        changed: std::collections::BTreeMap<String, acp_sdk::v1::SessionConfigOptionValue>,
    ) {
        appender.change(RecordChange {
            settings: Some(changed),
            ..RecordChange::default()
        });
    }
}
