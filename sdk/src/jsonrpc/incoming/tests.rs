use super::*;

fn code_of(line: &str) -> (i32, Option<String>, bool) {
    match read(line.as_bytes()) {
        Incoming::Invalid {
            code, id, answer, ..
        } => {
            let id = id.map(|id| id.get().to_owned());
            (code.get(), id, answer != Answer::Never)
        }
        other => panic!("{line} was taken as {other:?}"),
    }
}

#[test]
fn requests_keep_their_id_verbatim() {
    for id in [
        "1",
        "-7",
        "\"a\\u0062\"",
        "null",
        "123456789012345678901234567890",
    ] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x"}}"#);
        match read(line.as_bytes()) {
            Incoming::Request {
                id: read,
                method,
                params: None,
            } => {
                assert_eq!((read.get(), &*method), (id, "x"));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_escaped_method_name_is_unescaped() {
    let line = br#"{"jsonrpc":"2.0","method":"session\/update","params":{}}"#;
    assert!(matches!(
        read(line),
        Incoming::Notification { method, params: Some(_) } if method == "session/update"
    ));
}

#[test]
fn members_are_found_in_any_order_and_spelling() {
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":[1]}}"#,
        r#"{"id":1,"method":"x","params":{"a":[1]},"jsonrpc":"2.0"}"#,
        r#"{ "jsonrpc" : "2.0" , "id" : 1 , "method" : "x" , "params" : {"a":[1]} } "#,
        r#"{"jsonrpc":"2.0", "id":1,"more":[{}],"m\u0065thod":"x","params":{"a":[1]}}"#,
    ] {
        let Incoming::Request { id, method, params } = read(line.as_bytes()) else {
            panic!("{line}");
        };
        let params = params.map(RawValue::get);
        assert_eq!(
            (id.get(), &*method, params),
            ("1", "x", Some(r#"{"a":[1]}"#))
        );
    }
}

#[test]
fn invalid_json_anywhere_in_the_line_is_a_parse_error() {
    for line in [
        r#"{"jsonrpc":"2.0",}"#,
        r#"{"jsonrpc":"2.0","#,
        r#"{"jsonrpc":"2.0",,"id":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":tru}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"x","other":[1,]}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"x"} x"#,
        r#"{"jsonrpc":"2.0" "id":1}"#,
        r#"{"jsonrpc":"2.0","id":01,"method":"x"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"\x"}"#,
    ] {
        assert_eq!(code_of(line), (-32700, None, true), "{line}");
    }
    for line in [
        r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"x"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{},"params":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#,
    ] {
        assert_eq!(code_of(line).0, -32600, "{line}");
    }
}

#[test]
fn null_and_absent_members_differ() {
    let null = br#"{"jsonrpc":"2.0","id":1,"result":null}"#;
    assert!(matches!(
        read(null),
        Incoming::Response { outcome: Outcome::Result(raw), .. } if raw.get() == "null"
    ));
    // What JavaScript writes for a result that is undefined. It may end no request of the peer.
    for line in [
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":null}"#,
    ] {
        let Incoming::Response { id, outcome } = read(line.as_bytes()) else {
            panic!("{line} is no response");
        };
        assert_eq!(id.get(), "1");
        assert!(matches!(outcome, Outcome::Malformed(reason) if reason.contains("neither")));
    }
    let request = br#"{"jsonrpc":"2.0","id":1,"params":{}}"#;
    assert!(matches!(
        read(request),
        Incoming::Invalid { id: Some(_), .. }
    ));
}

#[test]
fn a_null_beside_the_other_member_is_absent() {
    let result = |line: &str| match read(line.as_bytes()) {
        Incoming::Response {
            outcome: Outcome::Result(raw),
            ..
        } => Ok(raw.get().to_owned()),
        Incoming::Response {
            outcome: Outcome::Error(raw),
            ..
        } => Err(raw.get().to_owned()),
        other => panic!("{line} was taken as {other:?}"),
    };
    let both = |result: &str, error: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result},"error":{error}}}"#)
    };
    assert_eq!(result(&both("null", "{}")), Err("{}".to_owned()));
    assert_eq!(result(&both("{}", "null")), Ok("{}".to_owned()));
    assert_eq!(result(&both("null", "null")), Ok("null".to_owned()));
    let line = br#"{"jsonrpc":"2.0","id":null,"result":null,"error":{}}"#;
    assert!(matches!(read(line), Incoming::UncorrelatedError { .. }));
}

#[test]
fn what_is_not_a_message_says_why() {
    let id = |id: &str| Some(id.to_owned());
    assert_eq!(code_of("{"), (-32700, None, true));
    assert_eq!(code_of("hello"), (-32700, None, true));
    assert_eq!(code_of("[]"), (-32600, None, true));
    assert_eq!(code_of("17"), (-32600, None, true));
    assert_eq!(code_of(r#"{"id":3,"method":"x"}"#), (-32600, id("3"), true));
    assert_eq!(
        code_of(r#"{"jsonrpc":"1.0","id":3,"method":"x"}"#),
        (-32600, id("3"), true)
    );
    assert_eq!(code_of(r#"{"method":"x"}"#), (-32600, None, false));
    assert_eq!(
        code_of(r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#),
        (-32600, None, true)
    );
    assert_eq!(
        code_of(r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#),
        (-32600, None, true)
    );
    assert_eq!(
        code_of(r#"{"jsonrpc":"2.0","id":1,"method":5}"#),
        (-32600, None, true)
    );
    assert_eq!(
        code_of(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}"#),
        (-32600, None, true)
    );
    assert_eq!(
        code_of(r#"{"jsonrpc":"2.0","result":1}"#),
        (-32600, None, false)
    );
    assert_eq!(code_of("{}"), (-32600, None, true));
}

#[test]
fn errors_without_a_request_are_complaints() {
    for line in [
        r#"{"jsonrpc":"2.0","id":null,"error":{}}"#,
        r#"{"error":{}}"#,
    ] {
        assert!(
            matches!(read(line.as_bytes()), Incoming::UncorrelatedError { .. }),
            "{line}"
        );
    }
}

#[test]
fn a_response_with_both_members_is_malformed() {
    let line = br#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#;
    assert!(matches!(
        read(line),
        Incoming::Response {
            outcome: Outcome::Malformed(_),
            ..
        }
    ));
}

#[test]
fn depth_and_bad_bytes_do_no_harm() {
    let deep = format!(
        r#"{{"jsonrpc":"2.0","method":"x","params":{}{}}}"#,
        "[".repeat(10_000),
        "]".repeat(10_000)
    );
    assert!(matches!(
        read(deep.as_bytes()),
        Incoming::Notification { .. }
    ));
    assert!(matches!(
        read(b"{\"a\":\"\xff\"}"),
        Incoming::Invalid { .. }
    ));
    // Raw text is not decoded here, so a lone surrogate waits for whoever reads the params.
    let lone = br#"{"jsonrpc":"2.0","method":"x","params":{"t":"\ud800"}}"#;
    assert!(matches!(read(lone), Incoming::Notification { .. }));
}

#[test]
fn a_list_of_the_members_of_a_message_is_none() {
    for line in [
        r#"["2.0",1,"session/new",{}]"#,
        r#"["2.0",null,"session/cancel"]"#,
        r#" [1,19,null,19,null]"#,
        r#"["2.0",1,null,null,{},null]"#,
    ] {
        let Incoming::Invalid { code, id: None, .. } = read(line.as_bytes()) else {
            panic!("{line} is a message");
        };
        assert_eq!(code, ErrorCode::INVALID_REQUEST, "{line}");
    }
}
