//! A whole round trip through both ends of a connection in memory: envelope, dispatch, answer.

use acp_sdk::{HandlerResult, v1::*};
use criterion::{Criterion, criterion_group, criterion_main};

struct Echo;

impl Agent for Echo {
    async fn new_session(
        &self,
        _: &AgentContext,
        _: NewSessionRequest,
    ) -> HandlerResult<NewSessionResponse> {
        Ok(NewSessionResponse::new("s"))
    }

    async fn prompt(&self, _: &AgentContext, _: PromptRequest) -> HandlerResult<PromptResponse> {
        Ok(PromptResponse::new(StopReason::EndTurn))
    }

    async fn cancel(&self, _: &AgentContext, _: CancelNotification) -> HandlerResult<()> {
        Ok(())
    }
}

struct Editor;

impl Client for Editor {
    async fn session_update(&self, _: &ClientContext, _: SessionNotification) -> HandlerResult<()> {
        Ok(())
    }

    async fn request_permission(
        &self,
        _: &ClientContext,
        _: RequestPermissionRequest,
    ) -> HandlerResult<RequestPermissionResponse> {
        Ok(RequestPermissionResponse::new(
            RequestPermissionOutcome::Cancelled,
        ))
    }
}

fn round_trip(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be built");
    let agent = runtime.block_on(async {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(theirs);
        tokio::spawn(acp_sdk::serve(Echo, (reader, writer)));
        let (reader, writer) = tokio::io::split(ours);
        let driver = acp_sdk::connect(Editor, (reader, writer));
        let agent = driver.handle().clone();
        tokio::spawn(driver);
        agent
    });
    let request = PromptRequest::new("s", vec![TextContent::new("ping").into()]);
    c.bench_function("session/prompt round trip in memory", |b| {
        b.iter(|| {
            runtime
                .block_on(agent.prompt(request.clone()))
                .expect("the agent answers")
        });
    });
}

criterion_group!(benches, round_trip);
criterion_main!(benches);
