//! The ids of questions.

use acp_sdk::v1::SessionId;
use acp_server::event::QuestionId;
use serde::Deserialize;

/// Names a question of any session: `SESSION/NUMBER`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct RequestId {
    pub(super) session: SessionId,
    pub(super) question: QuestionId,
}

impl std::fmt::Display for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.session, self.question.0)
    }
}

impl TryFrom<String> for RequestId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let parts = text.rsplit_once('/');
        let parts = parts.and_then(|(session, number)| Some((session, number.parse().ok()?)));
        let Some((session, number)) = parts else {
            return Err(format!("{text:?} is not the requestId of an event"));
        };
        Ok(Self {
            session: session.into(),
            question: QuestionId(number),
        })
    }
}
