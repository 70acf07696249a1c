//! Which tokens are valid, and until when.

use super::sealed::TicketClaims;
use super::*;

fn session(id: &str) -> SessionId {
    SessionId::from(id)
}

#[test]
fn each_token_has_its_access() {
    let (master, reader) = (Token::random().unwrap(), Token::random().unwrap());
    let tokens = Tokens::new(&master).with_read_only(&reader);
    let own = tokens.issue(&session("s")).unwrap();
    assert_eq!(tokens.access(master.secret()), Some(Access::Full));
    assert_eq!(tokens.access(reader.secret()), Some(Access::ReadOnly));
    let access = Access::Session(session("s"));
    assert_eq!(tokens.access(own.secret()), Some(access));
    assert_eq!(tokens.access("something else"), None);
    assert_eq!(tokens.access(""), None);
    assert!(!tokens.is_open() && Tokens::open().is_open());
}

#[test]
fn rotation_and_revocation_end_a_token() {
    let tokens = Tokens::new(&Token::random().unwrap());
    let first = tokens.issue(&session("s")).unwrap();
    let other = tokens.issue(&session("t")).unwrap();
    let second = tokens.issue(&session("s")).unwrap();
    assert_eq!(tokens.access(first.secret()), None);
    assert!(tokens.access(second.secret()).is_some());
    tokens.revoke(&session("s"));
    assert_eq!(tokens.access(second.secret()), None);
    assert!(tokens.access(other.secret()).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_ticket_is_valid_once_and_for_a_minute() {
    let tokens = Tokens::new(&Token::random().unwrap());
    let ticket = tokens.issue_ticket(Access::ReadOnly).unwrap();
    assert_eq!(tokens.access(ticket.secret()), None, "a ticket is no token");
    let identity = tokens.redeem(ticket.secret()).unwrap();
    assert_eq!(identity.access, Access::ReadOnly);
    assert!(tokens.redeem(ticket.secret()).is_none());

    let in_time = tokens.issue_ticket(Access::Full).unwrap();
    let late = tokens.issue_ticket(Access::Full).unwrap();
    tokio::time::advance(Tokens::TICKET_LIFETIME - Duration::from_millis(1)).await;
    assert!(tokens.redeem(in_time.secret()).is_some());
    tokio::time::advance(Duration::from_millis(1)).await;
    assert!(tokens.redeem(late.secret()).is_none());
}

#[tokio::test(start_paused = true)]
async fn the_number_of_tickets_is_bounded_until_they_expire() {
    let tokens = Tokens::open();
    for _ in 0..TICKETS {
        tokens.issue_ticket(Access::Full).unwrap();
    }
    let refused = tokens.issue_ticket(Access::Full);
    assert!(
        matches!(refused, Err(IssueError::Full { limit: TICKETS, .. })),
        "{refused:?}"
    );
    tokio::time::advance(Tokens::TICKET_LIFETIME).await;
    tokens.issue_ticket(Access::Full).unwrap();
}

#[test]
fn a_ticket_ends_with_the_session_token_that_it_was_issued_for() {
    let tokens = Tokens::new(&Token::random().unwrap());
    let token = tokens.issue(&session("s")).unwrap();
    let identity = tokens.identify(token.secret()).unwrap();
    let ticket = tokens.ticket_of(identity).unwrap();
    tokens.issue(&session("s")).unwrap();
    assert!(tokens.redeem(ticket.secret()).is_none());
}

/// The tokens of two nodes with one secret.
fn nodes() -> [Tokens; 2] {
    let (master, secret) = (Token::random().unwrap(), Token::random().unwrap());
    [(), ()].map(|()| {
        let tokens = Tokens::new(&master);
        tokens.share_with_nodes(Arc::new(Seal::new(&secret)));
        tokens
    })
}

#[test]
fn a_ticket_is_valid_once_at_each_node() {
    let [first, second] = nodes();
    let own = first.issue(&session("s")).unwrap();
    let identity = first.identify(own.secret()).unwrap();
    let ticket = first.ticket_of(identity).unwrap();
    assert_eq!(second.access(ticket.secret()), None, "a ticket is no token");
    for node in [&first, &second] {
        let identity = node.redeem(ticket.secret()).unwrap();
        assert_eq!(identity.access, Access::Session(session("s")));
        assert_eq!(identity.owner, Owner::Session);
        assert!(node.redeem(ticket.secret()).is_none(), "used twice");
    }
    let foreign = &nodes()[0];
    assert!(foreign.redeem(ticket.secret()).is_none());
}

#[test]
fn a_ticket_ends_at_another_node_with_the_token_that_it_was_issued_for() {
    let [first, second] = nodes();
    let token = first.issue(&session("s")).unwrap();
    let identity = first.identify(token.secret()).unwrap();
    let ticket = first.ticket_of(identity).unwrap();
    second.issue(&session("s")).unwrap();
    assert!(second.redeem(ticket.secret()).is_none());
    // The master of another server, by the same secret of nodes.
    let other = Tokens::new(&Token::random().unwrap());
    other
        .0
        .seal
        .set(first.0.seal.get().unwrap().clone())
        .unwrap();
    let master = Identity {
        token: first.0.fixed.master,
        ..first.anybody()
    };
    let ticket = first.ticket_of(master).unwrap();
    assert!(other.redeem(ticket.secret()).is_none());
    assert_eq!(second.redeem(ticket.secret()).unwrap().owner, Owner::Master);
}

#[test]
fn an_expired_ticket_or_token_of_another_node_is_refused() {
    let [first, second] = nodes();
    let seal = first.0.seal.get().unwrap();
    let claims = |expires| SessionClaims {
        session: session("s"),
        issued: 1,
        expires,
    };
    let late = seal.seal(Purpose::SessionToken, &claims(now())).unwrap();
    assert_eq!(second.access(&late), None);
    let in_time = claims(now() + 60_000);
    let in_time = seal.seal(Purpose::SessionToken, &in_time).unwrap();
    assert!(second.access(&in_time).is_some());
    let ticket = TicketClaims {
        token: first.0.fixed.master.unwrap().digits(),
        session: None,
        expires: now(),
    };
    let ticket = seal.seal(Purpose::Ticket, &ticket).unwrap();
    assert!(second.redeem(&ticket).is_none());
}

#[test]
fn a_session_token_is_valid_at_every_node_until_a_later_one_is_known() {
    let [first, second] = nodes();
    let token = first.issue(&session("s")).unwrap();
    let identity = second.identify(token.secret()).unwrap();
    assert_eq!(identity.access, Access::Session(session("s")));
    let later = first.issue(&session("s")).unwrap();
    assert_eq!(first.access(token.secret()), None);
    assert!(second.access(later.secret()).is_some());
    assert!(identity.ended.is_cancelled(), "what it has opened ends");
    assert_eq!(second.access(token.secret()), None);
    second.revoke(&session("s"));
    assert_eq!(second.access(later.secret()), None);
    assert_eq!(nodes()[0].access(later.secret()), None, "a foreign secret");
}

#[test]
fn used_tickets_are_bounded_for_each_token() {
    let [first, second] = nodes();
    let token = first.issue(&session("s")).unwrap();
    let identity = first.identify(token.secret()).unwrap();
    let ticket = || first.ticket_of(identity.clone()).unwrap();
    for _ in 0..USED_TICKETS / 2 {
        assert!(second.redeem(ticket().secret()).is_some());
    }
    assert!(second.redeem(ticket().secret()).is_none());
}

#[test]
fn expired_session_tokens_end_what_they_have_opened() {
    let [first, _] = nodes();
    let token = first.issue(&session("s")).unwrap();
    let identity = first.identify(token.secret()).unwrap();
    let expired = first.issued().remove_expired(now());
    assert!(expired.is_empty());
    let expires = now() + milliseconds(Tokens::SESSION_TOKEN_LIFETIME);
    let expired = first.issued().remove_expired(expires);
    assert_eq!(expired.len(), 1);
    expired.into_iter().for_each(|grant| end(Some(grant)));
    assert!(identity.ended.is_cancelled());
    assert!(first.issued().by_session.is_empty());
}
