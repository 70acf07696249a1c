//! Several agents behind the interface.

use acp_server_remote::ServedAgent;

use super::*;
use crate::login::Closed;

/// Agents `one`, which is the default, and `two`, which works in `/two`.
async fn two() -> Site {
    let server = Server::new(Reference);
    let agents = Agents::new([
        ServedAgent::new("one", server.clone()).description("The first".to_owned()),
        ServedAgent::new("two", Server::new(Reference)).directory(std::path::PathBuf::from("/two")),
    ]);
    Site::of(server, agents.unwrap(), &EndpointSettings::default()).await
}

impl Site {
    async fn create_at(&self, body: Value) -> Created {
        let answer = self.post("/session", body).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        let body = answer.json();
        Created {
            id: body["session_id"].as_str().unwrap().to_owned(),
            token: body["session_token"].as_str().unwrap().to_owned(),
        }
    }

    async fn listed(&self, path: &str) -> Vec<(String, String)> {
        let answer = self.get(path).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let rows = answer.json();
        let rows = rows["sessions"].as_array().or(rows["runs"].as_array());
        let text = |row: &Value, member: &str| row[member].as_str().unwrap().to_owned();
        let rows = rows.unwrap().iter();
        rows.map(|row| (text(row, "session_id"), text(row, "agent")))
            .collect()
    }
}

fn clock() -> u128 {
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_millis()
}

fn pairs(expected: &[(&Created, &str)]) -> Vec<(String, String)> {
    let pair = |(created, agent): &(&Created, &str)| (created.id.clone(), (*agent).to_owned());
    expected.iter().map(pair).collect()
}

#[tokio::test]
async fn a_new_session_names_its_agent() {
    let site = two().await;
    let default = site.create_at(json!({ "working_dir": "/w" })).await;
    let second = site.create_at(json!({ "agent": "two" })).await;
    for (created, agent) in [(&default, "one"), (&second, "two")] {
        let state = site.get(&format!("/session/{}", created.id)).await.json();
        assert_eq!(state["agent"], agent);
        let whole = site.get(&format!("/sessions/{}", created.id)).await.json();
        assert_eq!(whole["summary"]["agent"], agent);
    }
    let state = site.get(&format!("/session/{}", second.id)).await.json();
    assert_eq!(state["working_dir"], "/two", "that of the agent");
    for path in ["/session", "/sessions"] {
        let refused = site
            .post(path, json!({ "agent": "three", "prompt": "hello" }))
            .await;
        assert_eq!(refused.status, 400);
        let refused = refused.json();
        assert_eq!(refused["error"], "agent_not_found");
        assert!(
            refused["message"]
                .as_str()
                .unwrap()
                .ends_with("are: one, two"),
            "{refused}"
        );
    }
}

#[tokio::test]
async fn lists_have_the_sessions_of_all_agents_by_time() {
    let site = two().await;
    let mut created = Vec::new();
    for agent in ["one", "two", "one", "two"] {
        let session = site
            .create_at(json!({ "working_dir": "/w", "agent": agent }))
            .await;
        site.talk(&session.id, "hello").await;
        created.push((session, agent));
        // Times have milliseconds.
        let ended = clock();
        while clock() == ended {
            tokio::task::yield_now().await;
        }
    }
    let all: Vec<_> = created
        .iter()
        .rev()
        .map(|(session, agent)| (session, *agent))
        .collect();
    let of = |name: &str| -> Vec<_> {
        let mine = all.iter().filter(|(_, agent)| *agent == name);
        mine.copied().collect()
    };
    for path in ["/sessions", "/runs"] {
        assert_eq!(site.listed(path).await, pairs(&all), "{path}");
        assert_eq!(
            site.listed(&format!("{path}?limit=3")).await,
            pairs(&all[..3]),
            "{path}"
        );
        for name in ["one", "two"] {
            let listed = site.listed(&format!("{path}?agent={name}")).await;
            assert_eq!(listed, pairs(&of(name)), "{path} {name}");
        }
    }
    let ids = site.get("/session").await.json();
    let expected: Vec<_> = all.iter().map(|(session, _)| json!(session.id)).collect();
    assert_eq!(ids["sessions"], json!(expected));
    let cost = site.get("/runs/cost?agent=two").await.json();
    assert_eq!(
        (&cost["total_runs"], &cost["filters"]["agent"]),
        (&json!(2), &json!("two"))
    );
    assert_eq!(site.get("/runs/cost").await.json()["total_runs"], 4);
    for path in [
        "/session",
        "/sessions",
        "/runs",
        "/runs/cost",
        "/commands",
        "/providers",
    ] {
        let refused = site.get(&format!("{path}?agent=three")).await;
        assert_eq!(refused.status, 400, "{path}");
        assert_eq!(refused.json()["error"], "agent_not_found", "{path}");
    }
}

#[tokio::test]
async fn routes_find_the_agent_of_a_session() {
    let site = two().await;
    let session = site
        .create_at(json!({ "working_dir": "/w", "agent": "two" }))
        .await;
    let id = &session.id;
    let path = format!("/sessions/{id}/turns?wait=60");
    let ended = site.post(&path, json!({ "prompt": "hello" })).await;
    assert_eq!(
        (ended.status, &ended.json()["agent"]),
        (200, &json!("two")),
        "{ended:?}"
    );
    assert!(
        site.frames(id)
            .await
            .iter()
            .any(|frame| frame.event == "agent_result")
    );
    for (method, path, status) in [
        ("GET", format!("/sessions/{id}/transcript?format=md"), 200),
        ("GET", format!("/commands?session_id={id}"), 200),
        ("GET", format!("/providers?session_id={id}"), 200),
        ("POST", format!("/session/{id}/cancel"), 204),
        ("POST", format!("/session/{id}/rotate-token"), 200),
        ("POST", format!("/sessions/{id}/close"), 204),
    ] {
        let answer = site
            .request(method, &path, Some(&site.master), &[], "")
            .await;
        assert_eq!(answer.status, status, "{path}: {answer:?}");
    }
    // It is not in memory now.
    let state = site.get(&format!("/session/{id}")).await.json();
    assert_eq!(
        (&state["state"], &state["agent"]),
        (&json!("stored"), &json!("two"))
    );
    let accepted = site
        .post(
            &format!("/session/{id}/message"),
            json!({ "text": "again" }),
        )
        .await;
    assert_eq!(accepted.status, 202, "{accepted:?}");
    let other = site
        .create_at(json!({ "working_dir": "/w", "agent": "two" }))
        .await;
    let own = format!("/session/{}", other.id);
    let deleted = site
        .request("DELETE", &own, Some(&other.token), &[], "")
        .await;
    assert_eq!(deleted.status, 204);
    let gone = site.request("GET", &own, Some(&other.token), &[], "").await;
    assert_eq!(gone.status, 401, "the token ends with the session");
    assert_eq!(site.get(&own).await.status, 404);
}

#[tokio::test]
async fn a_request_that_is_sent_again_creates_one_session_at_its_agent() {
    let site = two().await;
    let mut ids = Vec::new();
    for agent in ["one", "two", "two", "one"] {
        let body = json!({ "prompt": "hello", "cwd": "/w", "agent": agent }).to_string();
        let key = ["Idempotency-Key: the-same"];
        let answer = site.request("POST", "/sessions?wait=60", Some(&site.master), &key, &body);
        let answer = answer.await.json();
        assert_eq!(answer["agent"], agent, "{answer}");
        ids.push(answer["session_id"].clone());
    }
    assert_eq!((&ids[0], &ids[1]), (&ids[3], &ids[2]));
    assert_ne!(ids[0], ids[1]);
}

#[tokio::test]
async fn agents_are_described() {
    let site = two().await;
    let agents = site.get("/agents").await.json();
    let version = &site.server.info().implementation.version;
    let common = json!({
        "announced_name": site.server.info().implementation.name, "version": version,
        "title": "ACP reference agent", "login_required": false,
    });
    for (agent, own) in agents["agents"].as_array().unwrap().iter().zip([
        json!({ "name": "one", "description": "The first" }),
        json!({ "name": "two", "description": null, "cwd": "/two" }),
    ]) {
        for (member, value) in own
            .as_object()
            .unwrap()
            .iter()
            .chain(common.as_object().unwrap())
        {
            assert_eq!(&agent[member], value, "{member}: {agent}");
        }
    }
    assert_eq!(agents["agents"].as_array().unwrap().len(), 2);
}

/// An agent that requires a login is closed; the others are open.
#[tokio::test]
async fn a_login_is_required_for_the_sessions_of_its_agent_only() {
    let (closed, open) = (Server::new(Closed), Server::new(Reference));
    let agents = Agents::new([
        ServedAgent::new("closed", closed.clone()),
        ServedAgent::new("open", open.clone()),
    ]);
    let hidden = closed.create_session("/w").await.unwrap();
    let site = Site::of(open, agents.unwrap(), &EndpointSettings::default()).await;
    let session = site
        .create_at(json!({ "working_dir": "/w", "agent": "open" }))
        .await;
    assert_eq!(site.listed("/sessions").await, pairs(&[(&session, "open")]));
    let id = hidden.id();
    for (method, path) in [
        ("GET", "/sessions?agent=closed".to_owned()),
        ("GET", format!("/session/{id}")),
        ("GET", format!("/commands?session_id={id}")),
        ("DELETE", format!("/sessions/{id}")),
    ] {
        let refused = site
            .request(method, &path, Some(&site.master), &[], "")
            .await;
        assert_eq!(refused.status, 403, "{path}");
        assert_eq!(refused.json()["error"], "login_required", "{path}");
    }
    let approval = json!({ "session_id": id, "permission_id": "1", "approved": true });
    for (path, body) in [
        ("/session", json!({ "working_dir": "/w" })),
        ("/sessions", json!({ "cwd": "/w", "prompt": "hello" })),
        ("/commands/x/invoke", json!({ "session_id": id })),
        ("/tool/approve", approval),
    ] {
        let refused = site.post(path, body).await;
        assert_eq!(
            refused.json()["error"],
            "login_required",
            "{path}: {refused:?}"
        );
    }
    let talked = site.talk(&session.id, "hello").await;
    assert!(talked.iter().any(|frame| frame.event == "agent_result"));
}
