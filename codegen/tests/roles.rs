//! Protocols that are not ACP, with roles of their own, over a connection in memory.

#![allow(clippy::unwrap_used, reason = "a helper of tests fails by panicking")]

use acp_sdk::ConnectionBuilder;
use acp_sdk::runtime::{HandlerError, HandlerResult, Peer, Service};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;

/// A notebook: a code editor and a kernel.
#[allow(
    dead_code,
    unreachable_pub,
    reason = "generated whole and used in part"
)]
mod notebook {
    include!("cases/roles/expected.rs");
}

/// A protocol whose ends have the same role.
#[allow(
    dead_code,
    unreachable_pub,
    reason = "generated whole and used in part"
)]
mod mesh {
    include!("cases/one_role/expected.rs");
}

use notebook::{
    CodeEditor, CodeEditorContext, CodeEditorHandle, CodeEditorService, ExchangeNotification,
    ExchangeRequest, ExchangeResponse, ExecuteRequest, ExecuteResponse, InputRequest,
    InputResponse, Kernel, KernelContext, KernelHandle, KernelService,
};

/// Connects two services and returns a caller at each end.
fn connect(left: impl Service, right: impl Service) -> (Peer, Peer) {
    let (near, far) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(near);
    let driver = ConnectionBuilder::new().open(left, (reader, writer));
    let to_right = driver.handle().clone();
    tokio::spawn(driver);
    let (reader, writer) = tokio::io::split(far);
    let driver = ConnectionBuilder::new().open(right, (reader, writer));
    let to_left = driver.handle().clone();
    tokio::spawn(driver);
    (to_right, to_left)
}

/// Runs a cell by asking the editor for its input.
struct Interpreter {
    messages: mpsc::Sender<String>,
}

impl Kernel for Interpreter {
    async fn execute(
        &self,
        ctx: &KernelContext,
        req: ExecuteRequest,
    ) -> HandlerResult<ExecuteResponse> {
        if req.code == "wait" {
            ctx.cancelled().await;
            self.messages.send("aborted".to_owned()).await.unwrap();
            return Err(HandlerError::cancelled());
        }
        let input = ctx.code_editor().input(InputRequest::new("name?")).await?;
        let note = ExchangeNotification::new(format!("ran {}", req.cell));
        ctx.code_editor().exchange_notification(note).await?;
        Ok(ExecuteResponse::new(format!("{} {}", req.code, input.line)))
    }

    async fn exchange(
        &self,
        _: &KernelContext,
        req: ExchangeRequest,
    ) -> HandlerResult<ExchangeResponse> {
        Ok(ExchangeResponse::new(format!("kernel: {}", req.text)))
    }

    async fn exchange_notification(
        &self,
        _: &KernelContext,
        note: ExchangeNotification,
    ) -> HandlerResult<()> {
        self.messages.send(note.text).await.unwrap();
        Ok(())
    }
}

struct Notebook {
    messages: mpsc::Sender<String>,
}

impl CodeEditor for Notebook {
    async fn input(
        &self,
        _: &CodeEditorContext,
        req: InputRequest,
    ) -> HandlerResult<InputResponse> {
        Ok(InputResponse::new(format!("{} Ada", req.prompt)))
    }

    async fn exchange(
        &self,
        ctx: &CodeEditorContext,
        req: ExchangeRequest,
    ) -> HandlerResult<ExchangeResponse> {
        let inner = ctx.kernel().exchange(req).await?;
        Ok(ExchangeResponse::new(format!("editor: {}", inner.text)))
    }

    async fn exchange_notification(
        &self,
        _: &CodeEditorContext,
        note: ExchangeNotification,
    ) -> HandlerResult<()> {
        self.messages.send(note.text).await.unwrap();
        Ok(())
    }
}

#[tokio::test]
async fn an_editor_and_a_kernel_call_each_other() {
    let (at_kernel, mut kernel_heard) = mpsc::channel(8);
    let (at_editor, mut editor_heard) = mpsc::channel(8);
    let (to_kernel, to_editor) = connect(
        CodeEditorService::new(Notebook {
            messages: at_editor,
        }),
        KernelService::new(Interpreter {
            messages: at_kernel,
        }),
    );
    let kernel = KernelHandle::new(to_kernel);
    let editor = CodeEditorHandle::new(to_editor);

    // A method of one role, in whose handler a method of the other is called.
    let value = kernel
        .execute(ExecuteRequest::new("c1", "hello"))
        .await
        .unwrap();
    assert_eq!(value.value, "hello name? Ada");
    assert_eq!(editor_heard.recv().await.as_deref(), Some("ran c1"));

    // A method of both roles, in both directions and both forms.
    let answer = kernel.exchange(ExchangeRequest::new("x")).await.unwrap();
    assert_eq!(answer.text, "kernel: x");
    let answer = editor.exchange(ExchangeRequest::new("y")).await.unwrap();
    assert_eq!(answer.text, "editor: kernel: y");
    kernel
        .exchange_notification(ExchangeNotification::new("n"))
        .await
        .unwrap();
    assert_eq!(kernel_heard.recv().await.as_deref(), Some("n"));

    // A method that the other role handles is not found.
    let error = editor
        .peer()
        .call::<notebook::methods::Execute>(&ExecuteRequest::new("c", ""))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("-32601"), "{error}");
}

/// The document names the notification that cancels requests, and its member.
#[tokio::test]
async fn a_request_is_cancelled_as_the_document_says() {
    let (messages, mut heard) = mpsc::channel(8);
    let kernel = KernelService::new(Interpreter { messages });
    let (near, far) = tokio::io::duplex(1 << 16);
    let driver = ConnectionBuilder::new().open(kernel, tokio::io::split(far));
    tokio::spawn(driver);
    let (reader, mut writer) = tokio::io::split(near);
    let mut lines = BufReader::new(reader).lines();
    for line in [
        r#"{"jsonrpc":"2.0","id":7,"method":"cell/execute","params":{"cell":"c","code":"wait"}}"#,
        r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":7}}"#,
        r#"{"jsonrpc":"2.0","id":8,"method":"extension/exchange","params":{"text":"x"}}"#,
    ] {
        writer
            .write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
    }
    let answer = lines.next_line().await.unwrap().unwrap();
    assert!(
        answer.contains("\"id\":8"),
        "cancelled by ACP's name: {answer}"
    );
    let abort = "{\"jsonrpc\":\"2.0\",\"method\":\"job/abort\",\"params\":{\"job\":7}}\n";
    writer.write_all(abort.as_bytes()).await.unwrap();
    assert_eq!(heard.recv().await.as_deref(), Some("aborted"));
    let answer = lines.next_line().await.unwrap().unwrap();
    assert!(answer.contains("-32800"), "{answer}");
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_as_the_document_says() {
    let (messages, _heard) = mpsc::channel(8);
    let (near, far) = tokio::io::duplex(1 << 16);
    let editor = CodeEditorService::new(Notebook { messages });
    let driver = ConnectionBuilder::new().open(editor, tokio::io::split(near));
    let to_kernel = driver.handle().clone();
    tokio::spawn(driver);
    let mut lines = BufReader::new(far).lines();
    let kernel = KernelHandle::new(to_kernel);
    let call = tokio::spawn(async move { kernel.execute(ExecuteRequest::new("c", "wait")).await });
    lines.next_line().await.unwrap().unwrap();
    call.abort();
    assert_eq!(
        lines.next_line().await.unwrap().unwrap(),
        r#"{"jsonrpc":"2.0","method":"job/abort","params":{"job":0}}"#
    );
}

struct Node(&'static str);

impl mesh::Node for Node {
    async fn greet(
        &self,
        _: &mesh::NodeContext,
        _: mesh::GreetRequest,
    ) -> HandlerResult<mesh::GreetResponse> {
        Ok(mesh::GreetResponse::new(self.0))
    }
}

#[tokio::test]
async fn two_ends_of_one_role() {
    let (to_right, to_left) = connect(
        mesh::NodeService::new(Node("left")),
        mesh::NodeService::new(Node("right")),
    );
    for (peer, expected) in [(to_right, "right"), (to_left, "left")] {
        let node = mesh::NodeHandle::new(peer);
        let answer = node.greet(mesh::GreetRequest::new("me")).await.unwrap();
        assert_eq!(answer.name, expected);
    }
}
