//! What most recipes are run with.

use acp_client::{AgentCommand, Client, ClientBuilder, Outcome, Policy, Session};
use acp_server::Server;
use tokio::io::DuplexStream;

use crate::script::script;

/// Runs each test on one thread and on several.
macro_rules! both_runtimes {
    ($($(#[$meta:meta])* async fn $name:ident() $body:block)*) => {$(
        $(#[$meta])*
        #[test]
        fn $name() {
            let guard = std::time::Duration::from_secs(60);
            let mut one = tokio::runtime::Builder::new_current_thread();
            let mut several = tokio::runtime::Builder::new_multi_thread();
            for runtime in [&mut one, several.worker_threads(2)] {
                let runtime = runtime.enable_all().build().unwrap();
                let ran = runtime.block_on(async { tokio::time::timeout(guard, async $body).await });
                ran.expect("the recipe does not end");
            }
        }
    )*};
}
pub(crate) use both_runtimes;

/// Attaches a client to a server, and returns the client's end.
pub fn attach(server: &Server) -> DuplexStream {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let mut connection = server.attach(tokio::io::split(theirs));
    tokio::spawn(async move { connection.closed().await });
    ours
}

pub async fn connect(server: &Server, builder: ClientBuilder) -> Client {
    let ours = attach(server);
    builder.connect(tokio::io::split(ours)).await.unwrap()
}

/// A client that allows everything.
pub fn allowing() -> ClientBuilder {
    Client::builder().permissions(Policy::ApproveAll)
}

pub async fn say(session: &Session, text: &str) -> Outcome {
    session.prompt(text).await.unwrap().outcome().await.unwrap()
}

/// An agent that is a process: a shell script, which answers one prompt after another with a text.
pub fn process(text: &str) -> AgentCommand {
    AgentCommand::new("sh").args(words(text).into_iter().skip(1))
}

/// The command of such an agent. Its sessions have numbers.
pub fn words(text: &str) -> [String; 3] {
    let loop_ = format!(
        r#"
while message; do
    case $line in
        *'"initialize"'*) send '{{"jsonrpc":"2.0","id":'"$id"',"result":{{"protocolVersion":1}}}}' ;;
        *'"session/new"'*)
            sessions=$((sessions + 1))
            send '{{"jsonrpc":"2.0","id":'"$id"',"result":{{"sessionId":"'$sessions'"}}}}' ;;
        *'"session/prompt"'*)
            session=${{line#*'"sessionId":"'}}
            session=${{session%%'"'*}}
            send '{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"'"$session"'","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}}}}}'
            prompt=$id
            end end_turn ;;
    esac
done
"#
    );
    ["sh".into(), "-c".into(), script(&loop_)]
}
