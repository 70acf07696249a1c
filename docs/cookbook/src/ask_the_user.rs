use acp_sdk::v1::StopReason;
use acp_server::{Elicitation, Handler, HandlerResult, Turn};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Release {
    /// Such as 1.4.0
    version: String,
    channel: Channel,
}

#[derive(Debug, Deserialize, JsonSchema)]
enum Channel {
    Stable,
    Beta,
}

pub struct Publisher;

impl Handler for Publisher {
    type State = ();

    async fn prompt(&self, _: &mut (), turn: Turn) -> HandlerResult<StopReason> {
        let text = match turn.elicit_as::<Release>("What to release?").await? {
            Elicitation::Accepted(it) => format!("{} to {:?}.", it.version, it.channel),
            Elicitation::NotOffered => "Which version, and to which channel?".to_owned(),
            Elicitation::Declined | Elicitation::Cancelled => "Nothing is released.".to_owned(),
        };
        turn.send_text(text).await?;
        Ok(StopReason::EndTurn)
    }
}
