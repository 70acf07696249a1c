use serde_json::json;

use super::*;
use crate::chat::style::clean;

fn form(schema: serde_json::Value) -> Option<Elicited> {
    let request =
        json!({"sessionId": "s", "mode": "form", "message": "m", "requestedSchema": schema});
    Elicited::new(&serde_json::from_value(request).unwrap())
}

fn types(form: &mut Elicited, keys: &str) -> Step {
    let mut step = Step::Open;
    for key in keys.chars() {
        let code = match key {
            '\r' => KeyCode::Enter,
            '↑' => KeyCode::Up,
            letter => KeyCode::Char(letter),
        };
        step = form.key(KeyEvent::from(code));
    }
    step
}

#[test]
fn every_kind_of_field_is_read() {
    // A text, which keeps the order of the fields.
    let schema = r#"{"type": "object", "required": ["name", "size"], "properties": {
        "name": {"type": "string", "title": "Your name", "minLength": 2},
        "age": {"type": "integer", "minimum": 1, "maximum": 9},
        "rate": {"type": "number"},
        "sure": {"type": "boolean", "default": true},
        "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}},
        "none": {"type": "string"}
    }}"#;
    let mut form = Elicited::Form(Form::new(&serde_json::from_str(schema).unwrap()).unwrap());
    let wrong = |form: &mut Elicited, keys: &str, reason: &str| {
        assert_eq!(types(form, keys), Step::Open);
        let lines = form.lines(80, 24).join("\n");
        assert!(lines.contains(&format!("! {reason}")), "{lines}");
        let erase = KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL);
        form.key(erase);
    };
    assert!(form.lines(80, 24)[0].contains("Your name, required (1 of 7)"));
    wrong(&mut form, "\r", "an answer is required");
    wrong(&mut form, "a\r", "needs at least 2 characters");
    types(&mut form, "Eve\r");
    wrong(&mut form, "12\r", "may have at most 9");
    wrong(&mut form, "x\r", "expected a whole number");
    types(&mut form, "7\r");
    wrong(&mut form, "inf\r", "expected a number");
    types(&mut form, "1.5\r");
    wrong(&mut form, "maybe\r", "expected y or n");
    types(&mut form, "\r");
    let lines = form.lines(80, 24).join("\n");
    assert!(lines.contains("2  Large (l)"), "{lines}");
    wrong(&mut form, "3\r", "\"3\" is none of the choices");
    types(&mut form, "2\r");
    types(&mut form, "3, a,c\r");
    assert_eq!(types(&mut form, "\r"), Step::Open, "all is to be confirmed");
    // Back to the last but one, which is changed.
    types(&mut form, "↑↑");
    assert!(form.lines(80, 24).join("\n").contains("› c, a"));
    form.key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL));
    types(&mut form, "2\r\r");
    let Step::Done(action) = types(&mut form, "\r") else {
        panic!("not sent");
    };
    let sent = serde_json::to_value(&action).unwrap();
    let content =
        json!({"name": "Eve", "age": 7, "rate": 1.5, "sure": true, "size": "l", "tags": ["b"]});
    assert_eq!(sent, json!({"action": "accept", "content": content}));
    assert_eq!(form.summary(&action, 80)[0], "  Your name: Eve");
}

#[test]
fn a_form_is_declined_or_dismissed() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let mut form = form(schema).unwrap();
    let escape = KeyEvent::from(KeyCode::Esc);
    assert_eq!(form.key(escape), Step::Done(ElicitationAction::Decline));
    let end = KeyEvent::new(KeyCode::Char('d'), KeyModifiers::CONTROL);
    assert_eq!(form.key(end), Step::Done(ElicitationAction::Cancel));
}

#[test]
fn what_cannot_be_asked_is_no_form() {
    let unknown =
        json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "colour"}}});
    assert!(form(unknown).is_none());
    let absent = json!({"type": "object", "required": ["a"], "properties": {}});
    assert!(form(absent).is_none());
}

#[test]
fn a_form_keeps_to_its_terminal_and_controls_nothing() {
    let choices: Vec<_> = (0..30)
        .map(|n| format!("choice {n}\u{1b}[2J {}", "x".repeat(300)))
        .collect();
    let properties: serde_json::Map<_, _> = (0..50)
        .map(|n| {
            (
                format!("field {n}"),
                json!({"type": "string", "title": "t\u{202e}\n".repeat(90), "enum": choices}),
            )
        })
        .collect();
    let mut form = form(json!({"type": "object", "properties": properties})).unwrap();
    for _ in 0..=50 {
        let lines = form.lines(40, 24);
        assert!(lines.len() <= 24, "{}", lines.len());
        for line in &lines {
            assert!(
                unicode_width::UnicodeWidthStr::width(line.as_str()) <= 40,
                "{line}"
            );
            assert_eq!(&clean(line), line);
        }
        form.paste(&"ü界".repeat(100));
        form.key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL));
        types(&mut form, "1\r");
    }
}

#[test]
fn a_page_needs_consent_and_is_shown_as_a_whole() {
    let url = format!("https://example.com/{}?a=\u{202e}b", "x".repeat(300));
    let request =
        json!({"sessionId": "s", "mode": "url", "message": "m", "elicitationId": "e", "url": url});
    let mut page = Elicited::new(&serde_json::from_value(request).unwrap()).unwrap();
    let shown = page.below().unwrap();
    assert_eq!(shown, url.replace('\u{202e}', "\\u{202e}"));
    assert_eq!(types(&mut page, "x\r"), Step::Open);
    assert_eq!(
        types(&mut page, "n"),
        Step::Done(ElicitationAction::Decline)
    );
    assert_eq!(types(&mut page, "o"), Step::Browse(url));
    let agreed = types(&mut page, "y");
    assert_eq!(agreed, Step::Done(ElicitationAcceptAction::new().into()));
}
