//! Clients that get cursors wrong, or fetch URLs.

use std::net::TcpStream;

use serde_json::{Value, json};

use crate::target::{Filter, Passing, Tap};
use crate::wire::Party;

pub(super) const FUNCTIONS: &[(&str, Filter)] = &[
    ("tidies_cursors", tidies_cursors),
    ("asks_for_more_pages", asks_for_more_pages),
    ("fetches_urls", fetches_urls),
    ("v2_fetches_urls", fetches_urls),
];

fn tidies_cursors(tap: &mut Tap<'_>, it: &Passing) {
    let hit = it.asks("session/list") && it.params["cursor"].is_string();
    tap.edit(it, hit, |value| {
        let cursor = value["params"]["cursor"].as_str().unwrap_or_default();
        value["params"]["cursor"] = json!(cursor.trim());
    });
}

/// Goes on after the last page, as if its cursor led to more.
fn asks_for_more_pages(tap: &mut Tap<'_>, it: &Passing) {
    let is_page = it.succeeds("session/list");
    let next = it.value.pointer("/result/nextCursor").cloned();
    tap.forward();
    match next.unwrap_or_default() {
        Value::Null if is_page => {
            let params = json!({"cursor": tap.kept("cursor").take()});
            tap.ask(Party::Agent, "session/list", &params);
        }
        cursor if is_page => *tap.kept("cursor") = cursor,
        _ => {}
    }
}

/// Connects to the URL of a question before the client reads it.
fn fetches_urls(tap: &mut Tap<'_>, it: &Passing) {
    if it.tells("elicitation/create") {
        let url = it.params["url"].as_str().unwrap_or_default();
        let address = url.trim_start_matches("http://").split('/').next();
        // The scenario reports the connection; a failure shows in its silence.
        drop(address.map(TcpStream::connect));
    }
    tap.forward();
}
