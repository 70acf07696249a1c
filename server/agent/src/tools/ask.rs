//! A question to the user.

use acp_sdk::runtime::Map;
use acp_sdk::v1::{ElicitationPropertySchema, ElicitationSchema, StringPropertySchema, ToolKind};
use acp_server::Elicitation;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{Call, Output, Tool, ToolError, ToolOutcome};

#[derive(Deserialize, JsonSchema)]
struct Ask {
    /// The question.
    question: String,
    /// The answers to choose from; without them the user writes one.
    #[serde(default)]
    answers: Vec<String>,
}

const ANSWER: &str = "answer";

/// Returns the tool `ask`: a question to the user, who chooses or writes the answer.
#[must_use]
pub fn ask() -> Tool {
    let description = "Asks the user a question that you cannot answer yourself. Give `answers` where there are \
        a few to choose from. Never ask for passwords or keys.";
    Tool::new("ask", description, question)
        .kind(ToolKind::Other)
        // A person answers when it suits them.
        .timeout(std::time::Duration::from_secs(24 * 3600))
        .shown(|ask| super::text_of(ask, "question"), |_| Vec::new())
}

async fn question(ask: Ask, call: Call) -> ToolOutcome {
    let field = StringPropertySchema::new().with_title("Answer");
    let field = match ask.answers.is_empty() {
        true => field.with_min_length(1u32),
        false => field.with_enum(ask.answers),
    };
    let mut fields = Map::new();
    fields.insert(ANSWER, ElicitationPropertySchema::String(field));
    let form = ElicitationSchema::new()
        .with_properties(fields)
        .with_required(vec![ANSWER.to_owned()]);
    Ok(match call.turn().elicit(ask.question, form).await? {
        Elicitation::Accepted(values) => {
            let values = serde_json::to_value(&values).map_err(ToolError::failed)?;
            let answer = values[ANSWER].as_str().unwrap_or_default();
            format!("The user answers: {answer}").into()
        }
        Elicitation::Declined => "The user does not want to answer.".into(),
        Elicitation::Cancelled => "The user has closed the question without an answer.".into(),
        Elicitation::NotOffered => Output::error(
            "The user's client cannot ask questions. Ask in your message and end your turn.",
        ),
    })
}
