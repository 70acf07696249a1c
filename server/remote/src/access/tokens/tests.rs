//! Which tokens are valid, and until when.

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
