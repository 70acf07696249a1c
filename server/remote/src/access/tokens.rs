//! The tokens of a server, and what each one permits.

mod sealed;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use acp_sdk::v1::SessionId;
use acp_server::Access;
use subtle::Choice;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::identity::{Identity, Owner};
use super::named::{LOOK, Live, Named, SESSION_TOKENS as KEPT_SESSION_TOKENS};
use super::seal::{Purpose, Seal};
use super::shares::{Share, Shares};
use super::token::{Hash, Token};
use super::token_file::{TokenFile, TokenFileError};
use sealed::{SessionClaims, milliseconds, now};

/// The maximum number of session tokens.
const SESSION_TOKENS: usize = 100_000;

/// The maximum number of tickets that were neither used nor expired.
const TICKETS: usize = 1_024;

/// The maximum number of tickets of all nodes that were used here and have not expired.
const USED_TICKETS: usize = 16_384;

/// The tokens that open a server. Clones are handles to the same tokens.
///
/// - Tokens are kept as SHA-256 hashes. Those of the master and of readers are compared in constant
///   time; those of sessions and tickets are found by their hash, whose bits tell nothing about a
///   token.
/// - Without a master token, read-only tokens and a [`TokenFile`], everybody has [`Access::Full`].
/// - Session tokens and tickets end with the process. Those of sessions do not if they are
///   [kept in the file](Self::keep_session_tokens).
/// - Where several nodes have one secret, session tokens and tickets are valid at all of them: they carry,
///   encrypted, what they mean, and when they expire.
#[derive(Clone)]
pub struct Tokens(Arc<TokensInner>);

#[derive(Clone)]
struct Fixed {
    master: Option<Hash>,
    read_only: Vec<Hash>,
}

struct TokensInner {
    fixed: Fixed,
    named: Option<Arc<Named>>,
    issued: Mutex<Issued>,
    /// Of the tickets.
    tickets: Arc<Shares>,
    /// Of the tickets of all nodes that were used here.
    used: Arc<Shares>,
    /// Set where several nodes have one secret.
    seal: OnceLock<Arc<Seal>>,
    /// Never cancelled.
    valid: CancellationToken,
}

/// The tokens that come and go.
#[derive(Default)]
struct Issued {
    sessions: HashMap<Hash, Grant>,
    by_session: HashMap<SessionId, Latest>,
    tickets: HashMap<Hash, Ticket>,
    /// Tickets of all nodes that were used here, until they expire.
    used: HashMap<Hash, (u64, Share)>,
}

struct Grant {
    claims: SessionClaims,
    ended: CancellationToken,
}

/// The latest token of a session that is known here.
struct Latest {
    issued: u64,
    expires: u64,
    /// `None` after it was revoked.
    token: Option<Hash>,
}

struct Ticket {
    identity: Identity,
    expires: Instant,
    _share: Share,
}

/// Why no token was issued.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IssueError {
    /// As many tokens are valid as the server keeps, or as the share of the token permits.
    #[error(
        "as many {kind} are valid as the limit of {limit}, or the share of this token, permits; \
         try again when one has ended"
    )]
    Full {
        /// `session tokens` or `tickets`.
        kind: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The system has no source of random numbers.
    #[error("no random numbers for a token: {0}")]
    Random(#[from] getrandom::Error),
    /// The file that keeps session tokens cannot be changed.
    #[error(transparent)]
    File(#[from] TokenFileError),
}

impl Tokens {
    /// How long a ticket is valid.
    pub const TICKET_LIFETIME: Duration = Duration::from_secs(60);

    /// How long a session's token is valid where several nodes have one secret, unless it is kept in a file.
    pub const SESSION_TOKEN_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

    /// Creates an empty set: no token is needed.
    #[must_use]
    pub fn open() -> Self {
        let fixed = Fixed {
            master: None,
            read_only: Vec::new(),
        };
        Self::from(fixed, None)
    }

    /// Creates a set with a master token, which has [`Access::Full`].
    #[must_use]
    pub fn new(master: &Token) -> Self {
        let fixed = Fixed {
            master: Some(master.hash()),
            read_only: Vec::new(),
        };
        Self::from(fixed, None)
    }

    /// Adds a token with [`Access::ReadOnly`]. For the start: session tokens and tickets that were
    /// issued before are not valid in the returned set.
    #[must_use]
    pub fn with_read_only(self, token: &Token) -> Self {
        let mut fixed = self.0.fixed.clone();
        fixed.read_only.push(token.hash());
        Self::from(fixed, self.0.named.clone())
    }

    /// Adds the tokens of a file. For the start, as [`with_read_only`](Self::with_read_only).
    ///
    /// A changed file is read again on use, once a second at most or when a token is unknown, and
    /// each second while [`serve`](crate::serve()) runs. What was opened with a token that is revoked
    /// or expires ends then. While the file cannot be used, the tokens before hold, and the log has
    /// one warning.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, is damaged, or others can access it.
    pub fn with_file(self, file: TokenFile) -> Result<Self, TokenFileError> {
        let named = Arc::new(Named::open(file)?);
        Ok(Self::from(self.0.fixed.clone(), Some(named)))
    }

    /// Keeps session tokens in the file, so that they survive the process: 10,000 at most. Without a
    /// [file](Self::with_file), this does nothing. For the start, as
    /// [`with_read_only`](Self::with_read_only).
    #[must_use]
    pub fn keep_session_tokens(self) -> Self {
        let named = self.0.named.as_deref().map(Named::keeping_sessions);
        Self::from(self.0.fixed.clone(), named.map(Arc::new))
    }

    fn from(fixed: Fixed, named: Option<Arc<Named>>) -> Self {
        Self(Arc::new(TokensInner {
            fixed,
            named,
            issued: Mutex::default(),
            tickets: Shares::new(TICKETS),
            used: Shares::new(USED_TICKETS),
            seal: OnceLock::new(),
            valid: CancellationToken::new(),
        }))
    }

    /// Returns whether no token is needed.
    #[must_use]
    pub fn is_open(&self) -> bool {
        let Fixed { master, read_only } = &self.0.fixed;
        master.is_none() && read_only.is_empty() && self.0.named.is_none()
    }

    /// Makes session tokens and tickets valid at every node of one secret, from now on.
    pub(crate) fn share_with_nodes(&self, seal: Arc<Seal>) {
        // Whoever was first has the same secret.
        let _ = self.0.seal.set(seal);
    }

    /// Ends tokens of the file, and of sessions, within a second after they are revoked or expire. Never completes.
    pub(crate) async fn watch(&self) {
        if self.0.named.is_none() && self.0.seal.get().is_none() {
            return std::future::pending().await;
        }
        loop {
            tokio::time::sleep(LOOK).await;
            if let Some(named) = &self.0.named {
                named.look(true);
            }
            let expired = self.issued().remove_expired(now());
            expired.into_iter().for_each(|grant| end(Some(grant)));
        }
    }

    /// Issues a token for one session. The session's earlier token ends, and with it the
    /// connections and streams that were opened with it; so this is also how a token is rotated.
    /// Blocks where the [file](Self::keep_session_tokens) is written.
    ///
    /// # Errors
    ///
    /// When there are too many session tokens, no random numbers, or the file cannot be written.
    pub fn issue(&self, session: &SessionId) -> Result<Token, IssueError> {
        if let Some(named) = &self.0.named {
            if named.keeps_sessions {
                let token = Token::random()?;
                if named.session_tokens() >= KEPT_SESSION_TOKENS && !named.has(session) {
                    return Err(IssueError::Full {
                        kind: "session tokens",
                        limit: KEPT_SESSION_TOKENS,
                    });
                }
                named.issue(session, &token)?;
                return Ok(token);
            }
            // Of an earlier process, which kept it.
            named.revoke(session)?;
        }
        let mut issued = self.issued();
        let latest = issued.by_session.get(session);
        let is_further = latest.is_none_or(|latest| latest.token.is_none());
        if issued.sessions.len() >= SESSION_TOKENS && is_further {
            return Err(IssueError::Full {
                kind: "session tokens",
                limit: SESSION_TOKENS,
            });
        }
        let after = latest.map_or(0, |latest| latest.issued + 1);
        let claims = SessionClaims {
            session: session.clone(),
            issued: now().max(after),
            expires: match self.0.seal.get() {
                Some(_) => now() + milliseconds(Self::SESSION_TOKEN_LIFETIME),
                None => u64::MAX,
            },
        };
        let token = match self.0.seal.get() {
            Some(seal) => Token::issued(seal.seal(Purpose::SessionToken, &claims)?),
            None => Token::random()?,
        };
        let earlier = issued.grant(token.hash(), claims);
        drop(issued);
        end(earlier);
        Ok(token)
    }

    /// Ends the token of a session, if it has one, and what was opened with it.
    pub fn revoke(&self, session: &SessionId) {
        if let Some(named) = &self.0.named {
            named.revoke_soon(session);
        }
        let mut issued = self.issued();
        let latest = issued.by_session.remove(session);
        let after = latest.as_ref().map_or(0, |latest| latest.issued + 1);
        let token = latest.and_then(|latest| latest.token);
        let grant = token.and_then(|token| issued.sessions.remove(&token));
        if self.0.seal.get().is_some() && issued.by_session.len() < 2 * SESSION_TOKENS {
            // What carries its meaning is valid as long as nothing else is known.
            let revoked = Latest {
                issued: now().max(after),
                expires: now() + milliseconds(Self::SESSION_TOKEN_LIFETIME),
                token: None,
            };
            issued.by_session.insert(session.clone(), revoked);
        }
        drop(issued);
        end(grant);
    }

    /// Issues a ticket: a token for one request within 60 seconds, with the rights of `access`.
    ///
    /// For `EventSource` and `WebSocket` in a browser, which cannot send headers. A ticket in an
    /// URL is harmless in a log, because it is used up by then. Where several nodes have one secret, a ticket that
    /// was issued for a token is valid once at each of them; one of this method is known to this process only.
    ///
    /// # Errors
    ///
    /// When 1,024 tickets are valid, or there are no random numbers.
    pub fn issue_ticket(&self, access: Access) -> Result<Token, IssueError> {
        self.ticket_of(Identity {
            access,
            ..self.anybody()
        })
    }

    pub(super) fn ticket_of(&self, identity: Identity) -> Result<Token, IssueError> {
        if let Some(ticket) = self.sealed_ticket(&identity) {
            return Ok(ticket?);
        }
        let ticket = Token::random()?;
        let now = Instant::now();
        let take = || self.0.tickets.take(identity.holder(), 1);
        let mut issued = self.issued();
        let mut share = take();
        if share.is_none() {
            issued.tickets.retain(|_, ticket| ticket.expires > now);
            share = take();
        }
        let share = share.ok_or(IssueError::Full {
            kind: "tickets",
            limit: TICKETS,
        })?;
        let issuing = Ticket {
            identity,
            expires: now + Self::TICKET_LIFETIME,
            _share: share,
        };
        issued.tickets.insert(ticket.hash(), issuing);
        Ok(ticket)
    }

    /// Returns what a token permits; `None` for one that is not valid. Tickets are not tokens here.
    #[must_use]
    pub fn access(&self, secret: &str) -> Option<Access> {
        self.identify(secret).map(|identity| identity.access)
    }

    pub(crate) fn has_master(&self) -> bool {
        self.0.fixed.master.is_some()
    }

    /// Returns whether this is the master token.
    pub(crate) fn is_master(&self, secret: &str) -> bool {
        let master = self.0.fixed.master.as_ref();
        master.is_some_and(|master| master.is_same(&Hash::of(secret)).into())
    }

    pub(super) fn identify(&self, secret: &str) -> Option<Identity> {
        let hash = Hash::of(secret);
        self.identify_hash(hash).or_else(|| {
            let seal = self.0.seal.get()?;
            self.adopt(hash, seal.open(Purpose::SessionToken, secret)?)
        })
    }

    fn identify_hash(&self, hash: Hash) -> Option<Identity> {
        let Fixed { master, read_only } = &self.0.fixed;
        // All are compared, whichever is equal.
        let is_among = |hashes: &[Hash]| {
            let equal = hashes.iter().map(|entry| entry.is_same(&hash));
            bool::from(equal.fold(Choice::from(0), |any, one| any | one))
        };
        let is_master = is_among(master.as_slice());
        let is_reader = is_among(read_only);
        let mut issued = None;
        let (access, owner, ended) = if is_master {
            (Access::Full, Owner::Master, self.0.valid.clone())
        } else if is_reader {
            (Access::ReadOnly, Owner::Reader, self.0.valid.clone())
        } else if let Some(grant) = self.issued().sessions.get(&hash) {
            if grant.claims.expires <= now() {
                return None;
            }
            issued = Some(grant.claims.issued);
            let access = Access::Session(grant.claims.session.clone());
            (access, Owner::Session, grant.ended.clone())
        } else {
            let Live { token, ended } = self.0.named.as_ref()?.find(&hash)?;
            let owner = match token.is_of_session() {
                true => Owner::Session,
                false => Owner::Named(token.name.into()),
            };
            (token.access, owner, ended)
        };
        Some(Identity {
            access,
            owner,
            ended,
            token: Some(hash),
            issued,
            is_passed_on: false,
            is_logged_in: false,
        })
    }

    /// Returns who sends a request where no token is needed.
    pub(super) fn anybody(&self) -> Identity {
        Identity {
            access: Access::Full,
            owner: Owner::Program,
            token: None,
            ended: self.0.valid.clone(),
            issued: None,
            is_passed_on: false,
            is_logged_in: false,
        }
    }

    /// Returns who a ticket was issued to, and uses it up.
    pub(super) fn redeem(&self, ticket: &str) -> Option<Identity> {
        if let Some(named) = &self.0.named {
            named.look(false);
        }
        let hash = Hash::of(ticket);
        let Some(found) = self.issued().tickets.remove(&hash) else {
            return self.redeem_of_nodes(hash, ticket);
        };
        let Ticket {
            identity, expires, ..
        } = found;
        // A ticket does not outlive the token that it was issued for.
        let revoked = identity.ended.is_cancelled();
        (expires > Instant::now() && !revoked).then_some(identity)
    }

    fn issued(&self) -> std::sync::MutexGuard<'_, Issued> {
        // Every change is complete before anything could panic.
        self.0.issued.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Issued {
    /// Adds a session's token. Returns its earlier one.
    fn grant(&mut self, token: Hash, claims: SessionClaims) -> Option<Grant> {
        let latest = Latest {
            issued: claims.issued,
            expires: claims.expires,
            token: Some(token),
        };
        let earlier = self.by_session.insert(claims.session.clone(), latest);
        let ended = CancellationToken::new();
        self.sessions.insert(token, Grant { claims, ended });
        self.sessions.remove(&earlier?.token?)
    }

    /// Removes the tokens of sessions that have expired, and returns them.
    fn remove_expired(&mut self, now: u64) -> Vec<Grant> {
        self.by_session.retain(|_, latest| latest.expires > now);
        let expired = self
            .sessions
            .extract_if(|_, grant| grant.claims.expires <= now);
        expired.map(|(_, grant)| grant).collect()
    }
}

/// Ends what was opened with a token. The caller holds no lock: wakers run.
fn end(grant: Option<Grant>) {
    if let Some(grant) = grant {
        grant.ended.cancel();
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let issued = self.issued();
        f.debug_struct("Tokens")
            .field("master", &self.0.fixed.master.is_some())
            .field("read_only", &self.0.fixed.read_only.len())
            .field("named", &self.0.named.as_ref().map(|named| named.len()))
            .field("sessions", &issued.sessions.len())
            .field("tickets", &issued.tickets.len())
            .finish()
    }
}

#[cfg(test)]
mod tests;
