//! Authentication: by the agent, or by a program in the terminal.

use super::acp::run;
use super::agents::Home;
use super::pty::Terminal;
use super::script::script;

/// An agent without credentials in the file `token`, where its program puts them when it is started
/// with the argument `login`. It offers its methods to clients that declare both forms.
fn agent(folder: &std::path::Path) -> String {
    let folder = folder.display();
    format!(
        r#"
        if [ "$0" = login ]; then
            test -t 0 && test -t 1 && test -t 2 || exit 9
            printf 'Code for %s? ' "$WHO"; read -r code; test "$code" = 42 || exit 3
            echo "$code" > {folder}/token; exit 0
        fi
        message
        case $line in
            *'"auth":{{"terminal":true}}'*'"terminal-auth":true'*) methods='
                {{"id":"tty","name":"Log in","type":"terminal","args":["login"],"env":{{"WHO":"me"}}}},
                {{"id":"whole","name":"Other","_meta":{{"terminal-auth":{{"command":"sh",
                    "args":["-c","echo \"with $WHO\"; touch {folder}/token"],"env":{{"WHO":"whole"}},"label":"Other login"}}}}}},' ;;
            *) methods= ;;
        esac
        send '{{"jsonrpc":"2.0","id":'"$id"',"result":{{"protocolVersion":1,"authMethods":['"$(echo $methods)"'
            {{"id":"alone","name":"By itself"}}]}}}}'
        message
        case $line in *'"authenticate"'*)
            touch {folder}/token; send '{{"jsonrpc":"2.0","id":'"$id"',"result":{{}}}}'; message ;;
        esac
        if ! test -e {folder}/token; then
            send '{{"jsonrpc":"2.0","id":'"$id"',"error":{{"code":-32000,"message":"log in"}}}}'; message; exit
        fi
        send '{{"jsonrpc":"2.0","id":'"$id"',"result":{{"sessionId":"s"}}}}'
        prompt; say 'I know you'; end end_turn; message"#
    )
    .replace("\n            {\"id\":\"alone\"", "{\"id\":\"alone\"")
}

#[tokio::test]
async fn a_run_logs_in_by_the_terminal_and_connects_again() {
    let home = Home::new();
    let agent = script(&agent(home.0.path()));
    let run = [
        "run",
        "--deny-all",
        "--auth",
        "tty",
        "hi",
        "--",
        "sh",
        "-c",
        &agent,
    ];
    let mut terminal = Terminal::acp(&run);
    terminal.shows("acp: Log in: running `sh -c ").await;
    terminal.shows("Code for me? ").await;
    terminal.types("42\r");
    terminal.shows("I know you").await;
    assert_eq!(terminal.code().await, Some(0));
}

#[tokio::test]
async fn a_login_that_fails_is_an_error() {
    let home = Home::new();
    let agent = script(&agent(home.0.path()));
    let mut terminal = Terminal::acp(&["login", "--auth", "tty", "--", "sh", "-c", &agent]);
    terminal.shows("Code for me? ").await;
    terminal.types("7\r");
    terminal.shows("cannot log in by the method `tty`: ").await;
    terminal.shows("ended with exit status: 3").await;
    assert_eq!(terminal.code().await, Some(4));
}

#[tokio::test]
async fn one_of_several_methods_is_chosen() {
    let home = Home::new();
    let agent = script(&agent(home.0.path()));
    for (number, shown) in [
        ("2", "with whole"),
        ("alone", "waiting for the agent to log in"),
    ] {
        let mut terminal = Terminal::acp(&["login", "--", "sh", "-c", &agent]);
        terminal.shows("  1  Log in (tty)").await;
        terminal.shows("Log in by which method? [1-3] ").await;
        terminal.types("4\r");
        terminal.shows("Log in by which method? [1-3] ").await;
        terminal.types(&format!("{number}\r"));
        terminal.shows(shown).await;
        terminal.shows("logged in by `").await;
        assert_eq!(terminal.code().await, Some(0));
        std::fs::remove_file(home.path("token")).unwrap();
    }
}

#[tokio::test]
async fn without_a_terminal_no_method_is_offered_that_needs_one() {
    let home = Home::new();
    let text = agent(home.0.path());
    let agent = script(&text);
    let list = ["login", "--list", "--", "sh", "-c", &agent];
    let ended = home.acp(&list).await;
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "alone  agent  By itself\n")
    );
    let ended = run(&["--deny-all", "hi"], &text).await;
    assert_eq!(ended.code, Some(4));
    assert!(
        ended.stderr.contains("log in by `acp login`"),
        "{}",
        ended.stderr
    );
    let ended = home.acp(&["login", "--", "sh", "-c", &agent]).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(
        run(&["--deny-all", "hi"], &text)
            .await
            .stdout
            .contains("I know you")
    );
    // An agent that offers such a method to any client.
    let pushy = r#"answer '{"protocolVersion":1,"authMethods":[{"id":"t","name":"T","type":"terminal"}]}'; message"#;
    let ended = run(&["--deny-all", "--auth", "t", "hi"], pushy).await;
    assert_eq!(ended.code, Some(4));
    assert!(
        ended.stderr.contains("the method `t` needs a terminal"),
        "{}",
        ended.stderr
    );
}
