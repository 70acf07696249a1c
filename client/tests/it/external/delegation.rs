//! An agent that delegates its prompts to another agent.

use std::sync::{Arc, Mutex};

use acp_client::{
    Client, Decision, ExternalAgent, Forward, PermissionRequest, Permissions, Policy,
};
use acp_sdk::v1::*;
use serde_json::json;

use crate::agent::{TestAgent, connect, within};

/// An agent that delegates prompts to another agent and forwards its permission requests.
struct Delegating {
    agent: TestAgent,
}

impl Agent for Delegating {
    async fn new_session(
        &self,
        _: &AgentContext,
        _: NewSessionRequest,
    ) -> acp_sdk::HandlerResult<NewSessionResponse> {
        Ok(NewSessionResponse::new("outer"))
    }

    async fn prompt(
        &self,
        cx: &AgentContext,
        req: PromptRequest,
    ) -> acp_sdk::HandlerResult<PromptResponse> {
        let forward = Forward::new(cx.client().clone(), req.session_id.clone());
        let builder = Client::builder().permissions(forward);
        let tool = ExternalAgent::new(connect(self.agent.clone(), builder).await);
        let result = tool.call(req.prompt).directory("/").await;
        let result = result.map_err(acp_sdk::HandlerError::internal)?;
        Ok(PromptResponse::new(result.metadata.stop_reason))
    }

    async fn cancel(&self, _: &AgentContext, _: CancelNotification) -> acp_sdk::HandlerResult<()> {
        Ok(())
    }
}

/// A policy that records its requests.
#[derive(Clone)]
struct Noting(Policy, Arc<Mutex<Vec<PermissionRequest>>>);

impl Permissions for Noting {
    async fn decide(&self, question: &PermissionRequest) -> Decision {
        self.1.lock().unwrap().push(question.clone());
        self.0.decide(question).await
    }
}

#[tokio::test]
async fn a_delegating_agent_passes_questions_on_to_its_own_client() {
    for (policy, id) in [(Policy::ApproveAll, "4"), (Policy::DenyAll, "3")] {
        let agent = TestAgent::default();
        let delegating = Delegating {
            agent: agent.clone(),
        };
        let asked = Arc::default();
        let noting = Noting(policy, Arc::clone(&asked));
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(theirs);
        tokio::spawn(acp_sdk::serve(delegating, (reader, writer)));
        let (reader, writer) = tokio::io::split(ours);
        let builder = Client::builder().permissions(noting);
        let client = within(builder.connect((reader, writer))).await.unwrap();
        let session = within(client.new_session("/")).await.unwrap();
        let turn = session.prompt("ask edit").await.unwrap();
        within(turn.outcome()).await.unwrap();

        let chosen = json!({"outcome": "selected", "optionId": id});
        assert_eq!(*agent.answered.lock().unwrap(), [chosen]);
        let asked = asked.lock().unwrap();
        assert_eq!(asked.len(), 1);
        assert_eq!(asked[0].request.session_id.as_str(), "outer");
        assert_eq!(asked[0].title.as_deref(), Some("Do it"));
        assert_eq!(asked[0].kind, Some(ToolKind::Edit));
        let call = &asked[0].request.tool_call;
        let input = acp_sdk::Json::from(json!({"text": "new"}));
        assert_eq!(call.raw_input, Some(input));
        assert_eq!(call.locations, Some(vec![ToolCallLocation::new("/w/a")]));
    }
}
