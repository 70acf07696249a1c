//! `acp run` with `--mode`, `--model`, `--option`, `--file` and `--image`.

use super::acp::run;

/// An agent with two models, a mode as an option, a switch, and images. It repeats the requests that
/// set something, and the prompt.
const AGENT: &str = r#"
answer '{"protocolVersion":1,"agentCapabilities":{"promptCapabilities":{"image":true}}}'
options='[
  {"id":"llm","name":"Model","category":"model","type":"select","currentValue":"slow","options":[{"value":"slow","name":"Slow"},{"value":"fast","name":"Fast"}]},
  {"id":"how","name":"Mode","category":"mode","type":"select","currentValue":"default","options":[{"value":"default","name":"Default"},{"value":"plan","name":"Plan"}]},
  {"id":"loud","name":"Loud","type":"boolean","currentValue":false}]'
options=$(printf '%s' "$options" | tr -d '\n')
answer '{"sessionId":"s","configOptions":'"$options"'}'
heard=''
while message; do
  case $line in
    *session/prompt*) prompt=$id; say "$heard$(quoted)"; end end_turn ;;
    *session/set*) heard="$heard$(quoted);"; send '{"jsonrpc":"2.0","id":'"$id"',"result":{"configOptions":'"$options"'}}' ;;
  esac
done
"#;

const SAFE: &str = "--approve-all";

#[tokio::test]
async fn what_is_selected_is_set_before_the_prompt() {
    let folder = tempfile::tempdir().unwrap();
    let (file, image) = (folder.path().join("a.txt"), folder.path().join("i"));
    std::fs::write(&file, "text").unwrap();
    std::fs::write(&image, b"\x89PNG").unwrap();
    let args = [
        SAFE,
        "--mode=plan",
        "--model=fast",
        "--option=loud=on",
        "--file",
        file.to_str().unwrap(),
        "--image",
        image.to_str().unwrap(),
        "hello",
    ];
    let ended = run(&args, AGENT).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let position = |text: &str| {
        let found = ended.stdout.find(text);
        found.unwrap_or_else(|| panic!("{text} is not in {}", ended.stdout))
    };
    let in_order = [
        position("'configId':'llm'"),
        position("'value':'fast'"),
        position("'configId':'loud'"),
        position("'value':true"),
        position("'configId':'how'"),
        position("'value':'plan'"),
        position("'text':'hello'"),
        position("'type':'resource_link'"),
        position("'mimeType':'image/png'"),
    ];
    assert!(in_order.is_sorted(), "{in_order:?}: {}", ended.stdout);
}

#[tokio::test]
async fn what_the_agent_does_not_offer_is_refused_with_a_list() {
    for (arg, message) in [
        (
            "--model=other",
            "the agent has no model other. It offers: slow, fast",
        ),
        (
            "--mode=other",
            "the agent has no mode other. It offers: default, plan",
        ),
        (
            "--option=other=1",
            "the agent has no option other. It offers: llm, how, loud",
        ),
        (
            "--option=loud=1",
            "the agent has no loud 1. It offers: on, off",
        ),
        ("--file=/does/not/exist", "cannot attach /does/not/exist"),
        ("--option=loud", "expected OPTION=VALUE"),
    ] {
        let ended = run(&[SAFE, arg, "hello"], AGENT).await;
        assert_eq!(ended.code, Some(2), "{arg}: {}", ended.stderr);
        assert!(ended.stderr.contains(message), "{arg}: {}", ended.stderr);
        assert_eq!(ended.stdout, "", "{arg}");
    }
}
