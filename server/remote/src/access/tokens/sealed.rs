//! Tokens of sessions and tickets that are valid at every node of one secret.
//!
//! They carry what they mean, so a node needs no record of what another one has issued. A node that
//! knows of a later token of a session, or that it was revoked, refuses the earlier one.

use std::time::Duration;

use acp_sdk::v1::SessionId;
pub(super) use acp_server::internal::clock::milliseconds as now;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::super::identity::Identity;
use super::super::seal::Purpose;
use super::super::token::{Hash, Token};
use super::{SESSION_TOKENS, Tokens, end};

/// What a token of a session means, at every node. Times are milliseconds since 1970.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct SessionClaims {
    pub(super) session: SessionId,
    pub(super) issued: u64,
    pub(super) expires: u64,
}

/// What a ticket means, at every node.
#[derive(Serialize, Deserialize)]
pub(super) struct TicketClaims {
    /// The hash of the token that it was issued for.
    pub(super) token: String,
    /// Of a session's token, which the other node may not know yet.
    pub(super) session: Option<SessionClaims>,
    /// Milliseconds since 1970.
    pub(super) expires: u64,
}

impl Tokens {
    /// Returns a ticket that is valid at every node; `None` if there is one node only, or no token that another
    /// node could know.
    pub(super) fn sealed_ticket(
        &self,
        identity: &Identity,
    ) -> Option<Result<Token, getrandom::Error>> {
        let (seal, token) = (self.0.seal.get()?, identity.token?);
        let session = self
            .issued()
            .sessions
            .get(&token)
            .map(|grant| grant.claims.clone());
        let claims = TicketClaims {
            token: token.digits(),
            session,
            expires: now() + milliseconds(Self::TICKET_LIFETIME),
        };
        Some(seal.seal(Purpose::Ticket, &claims).map(Token::issued))
    }

    /// Returns what ends with a session's token that another node has accepted; `None` if this node knows that the
    /// token has ended.
    pub(crate) fn ended_of(&self, session: &SessionId, issued: u64) -> Option<CancellationToken> {
        let tokens = self.issued();
        match tokens.by_session.get(session) {
            Some(latest) if latest.issued > issued => None,
            Some(latest) if latest.issued == issued => {
                let grant = tokens.sessions.get(&latest.token?);
                grant.map(|grant| grant.ended.clone())
            }
            _ => Some(CancellationToken::new()),
        }
    }

    /// Takes over a session's token that another node has issued; `None` for one that has ended, as far as this
    /// node knows.
    pub(super) fn adopt(&self, hash: Hash, claims: SessionClaims) -> Option<Identity> {
        let now = now();
        let mut issued = self.issued();
        let latest = issued.by_session.get(&claims.session);
        if claims.expires <= now || latest.is_some_and(|latest| latest.issued >= claims.issued) {
            return None;
        }
        let expired = match issued.sessions.len() < SESSION_TOKENS || latest.is_some() {
            true => Vec::new(),
            false => issued.remove_expired(now),
        };
        let has_room = issued.sessions.len() < SESSION_TOKENS;
        let earlier = has_room.then(|| issued.grant(hash, claims)).flatten();
        drop(issued);
        expired
            .into_iter()
            .chain(earlier)
            .for_each(|grant| end(Some(grant)));
        self.identify_hash(hash)
    }

    /// Returns who a ticket of any node was issued to, and uses it up at this one.
    pub(super) fn redeem_of_nodes(&self, hash: Hash, ticket: &str) -> Option<Identity> {
        let claims: TicketClaims = self.0.seal.get()?.open(Purpose::Ticket, ticket)?;
        let now = now();
        if claims.expires <= now {
            return None;
        }
        // The ticket does not outlive its token.
        let token = Hash::of_digits(&claims.token)?;
        let known = self.identify_hash(token);
        let identity = known.or_else(|| self.adopt(token, claims.session?))?;
        let mut issued = self.issued();
        if issued.used.contains_key(&hash) {
            return None;
        }
        let take = || self.0.used.take(identity.holder(), 1);
        let mut share = take();
        if share.is_none() {
            issued.used.retain(|_, (expires, _)| *expires > now);
            share = take();
        }
        issued.used.insert(hash, (claims.expires, share?));
        Some(identity)
    }
}

pub(super) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
