//! The tokens of a file, in a server that runs: the latest good state of the file.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use acp_sdk::v1::SessionId;
use tokio::runtime::Handle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::token::{Hash, Token};
use super::token_file::{NamedToken, Stamp, TokenFile, TokenFileError, session_name};

/// Time between two looks at the file, unless a token is unknown.
pub(super) const LOOK: Duration = Duration::from_secs(1);

/// The maximum number of session tokens in a file, which is written as a whole for each.
pub(super) const SESSION_TOKENS: usize = 10_000;

/// The tokens of a file.
pub(super) struct Named {
    file: TokenFile,
    /// Whether tokens of sessions are kept in the file.
    pub(super) keeps_sessions: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    tokens: HashMap<Hash, Live>,
    /// The file that was read last, readable or not.
    stamp: Option<Stamp>,
    looked: Option<Instant>,
    /// Whether somebody was warned that the file cannot be used.
    is_warned: bool,
}

/// A token that is valid.
#[derive(Clone)]
pub(super) struct Live {
    pub(super) token: NamedToken,
    /// Cancelled when the token ends.
    pub(super) ended: CancellationToken,
}

impl Named {
    /// Reads a file.
    pub(super) fn open(file: TokenFile) -> Result<Self, TokenFileError> {
        let mut state = State::default();
        let (tokens, stamp) = file.read()?;
        state.replace(tokens, SystemTime::now());
        state.stamp = Some(stamp);
        Ok(Self {
            file,
            keeps_sessions: false,
            state: Mutex::new(state),
        })
    }

    /// Returns the same tokens, with those of sessions kept in the file.
    pub(super) fn keeping_sessions(&self) -> Self {
        let State { tokens, stamp, .. } = &*self.state();
        let state = State {
            tokens: tokens.clone(),
            stamp: *stamp,
            ..State::default()
        };
        Self {
            file: self.file.clone(),
            keeps_sessions: true,
            state: Mutex::new(state),
        }
    }

    /// Returns a token that is valid now.
    pub(super) fn find(&self, hash: &Hash) -> Option<Live> {
        self.look(false);
        let found = self.state().tokens.get(hash).cloned();
        // It may have been added since.
        let found = found.or_else(|| {
            self.look(true);
            self.state().tokens.get(hash).cloned()
        });
        found.filter(|live| !live.token.has_expired(SystemTime::now()))
    }

    /// Reads the file again if it has changed, and ends the tokens that are not valid any more.
    /// Looks at the file once a second at most, unless it must.
    pub(super) fn look(&self, must: bool) {
        let mut state = self.state();
        let now = Instant::now();
        let is_early = state.looked.is_some_and(|looked| now < looked + LOOK);
        if is_early && !must {
            return;
        }
        state.looked = Some(now);
        let mut ended = state.expired(SystemTime::now());
        let warning = match self.file.stamp() {
            Ok(stamp) if state.stamp == Some(stamp) => None,
            // An error of the file system comes again when the file is read.
            _ => match self.file.read() {
                Ok((tokens, stamp)) => {
                    ended.extend(state.replace(tokens, SystemTime::now()));
                    state.stamp = Some(stamp);
                    state.is_warned = false;
                    None
                }
                Err(error) => {
                    state.stamp = self.file.stamp().ok();
                    (!std::mem::replace(&mut state.is_warned, true)).then_some(error)
                }
            },
        };
        drop(state);
        if let Some(error) = warning {
            tracing::warn!("kept the earlier tokens: {error}");
        }
        end(ended);
    }

    /// Puts a token of a session into the file, in place of its earlier one.
    pub(super) fn issue(&self, session: &SessionId, token: &Token) -> Result<(), TokenFileError> {
        self.file.replace_session(session, token)?;
        self.look(true);
        Ok(())
    }

    /// Returns whether a token of this session, issued by a server, is valid.
    pub(super) fn has(&self, session: &SessionId) -> bool {
        let name = session_name(session);
        let state = self.state();
        state.tokens.values().any(|live| live.token.name == name)
    }

    /// Returns the number of tokens that were issued for sessions.
    pub(super) fn session_tokens(&self) -> usize {
        let state = self.state();
        let tokens = state.tokens.values();
        tokens.filter(|live| live.token.is_of_session()).count()
    }

    /// Ends the token of a session, and removes it from the file.
    ///
    /// # Errors
    ///
    /// When the file cannot be changed: the token has ended for this process only.
    pub(super) fn revoke(&self, session: &SessionId) -> Result<(), TokenFileError> {
        let name = session_name(session);
        let ended = self.state().remove(|live| live.token.name == name);
        if ended.is_empty() {
            return Ok(());
        }
        end(ended);
        match self.file.revoke(&name) {
            // Somebody else was first.
            Ok(()) | Err(TokenFileError::Unknown { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Ends the token of a session. The file is written elsewhere if this thread must not wait.
    pub(super) fn revoke_soon(self: &Arc<Self>, session: &SessionId) {
        if !self.has(session) {
            return;
        }
        let (named, session) = (self.clone(), session.clone());
        let revoke = move || {
            if let Err(error) = named.revoke(&session) {
                tracing::warn!("kept the token of a deleted session in the file: {error}");
            }
        };
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(revoke)),
            Err(_) => revoke(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.state().tokens.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is complete before anything could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes the tokens of the file. Returns what ends with those that are no longer there.
    fn replace(&mut self, tokens: Vec<NamedToken>, now: SystemTime) -> Vec<CancellationToken> {
        let mut before = std::mem::take(&mut self.tokens);
        let mut gone = Vec::new();
        for token in tokens.into_iter().filter(|token| !token.has_expired(now)) {
            let ended = match before.remove(&token.hash) {
                // What was opened stays open while the right is the same.
                Some(known) if known.token.is_same(&token) => known.ended,
                other => {
                    gone.extend(other.map(|known| known.ended));
                    CancellationToken::new()
                }
            };
            self.tokens.insert(token.hash, Live { token, ended });
        }
        gone.extend(before.into_values().map(|known| known.ended));
        gone
    }

    fn expired(&mut self, now: SystemTime) -> Vec<CancellationToken> {
        self.remove(|live| live.token.has_expired(now))
    }

    fn remove(&mut self, which: impl Fn(&Live) -> bool) -> Vec<CancellationToken> {
        let mut ended = Vec::new();
        self.tokens.retain(|_, live| {
            let stays = !which(live);
            if !stays {
                ended.push(live.ended.clone());
            }
            stays
        });
        ended
    }
}

/// Ends what was opened with tokens. The caller holds no lock: wakers run.
fn end(tokens: Vec<CancellationToken>) {
    tokens.iter().for_each(CancellationToken::cancel);
}

#[cfg(test)]
mod tests {
    use std::fs;

    use acp_server::Access;

    use super::super::tokens::Tokens;
    use super::*;

    fn tokens() -> (tempfile::TempDir, TokenFile, Tokens) {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::new(folder.path().join("tokens.json"));
        let master = Token::random().unwrap();
        let tokens = Tokens::new(&master).with_file(file.clone()).unwrap();
        (folder, file, tokens)
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_valid_from_its_addition_to_its_revocation() {
        let (_folder, file, tokens) = tokens();
        assert!(!tokens.is_open());
        let secret = file.add("ci", Access::ReadOnly, None).unwrap();
        let identity = tokens.identify(secret.secret()).unwrap();
        assert_eq!(identity.access, Access::ReadOnly);
        assert_eq!(identity.owner.name().map(|name| &**name), Some("ci"));
        let ticket = tokens.ticket_of(identity.clone()).unwrap();

        let other = file.add("other", Access::Full, None).unwrap();
        assert_eq!(tokens.access(other.secret()), Some(Access::Full));
        assert!(!identity.ended.is_cancelled(), "it is in the new file, too");
        file.revoke("ci").unwrap();
        tokio::time::advance(LOOK).await;
        assert_eq!(tokens.access(secret.secret()), None);
        assert!(identity.ended.is_cancelled());
        assert!(tokens.redeem(ticket.secret()).is_none());
        assert!(tokens.access(other.secret()).is_some());
        fs::remove_file(file.path()).unwrap();
        tokio::time::advance(LOOK).await;
        assert_eq!(tokens.access(other.secret()), None, "no file has no tokens");
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_ends_when_it_expires_or_gets_another_right() {
        let (_folder, file, tokens) = tokens();
        let now = SystemTime::now();
        let expires = Some(now + Duration::from_secs(3600));
        let secret = file.add("ci", Access::ReadOnly, expires).unwrap();
        let identity = tokens.identify(secret.secret()).unwrap();
        let named = Named::open(file.clone()).unwrap();
        assert!(named.state().expired(now).is_empty());
        let ended = named.state().expired(now + Duration::from_secs(3600));
        assert_eq!((ended.len(), named.len()), (1, 0));

        let text = fs::read_to_string(file.path()).unwrap();
        fs::write(file.path(), text.replace("read-only", "full")).unwrap();
        tokio::time::advance(LOOK).await;
        assert_eq!(tokens.access(secret.secret()), Some(Access::Full));
        assert!(
            identity.ended.is_cancelled(),
            "its streams had another right"
        );
        let past = Some(now - Duration::from_secs(1));
        let late = file.add("late", Access::Full, past).unwrap();
        assert_eq!(tokens.access(late.secret()), None);
    }

    #[tokio::test(start_paused = true)]
    async fn while_the_file_is_damaged_the_tokens_before_hold() {
        let (_folder, file, tokens) = tokens();
        let secret = file.add("ci", Access::Full, None).unwrap();
        assert!(tokens.access(secret.secret()).is_some());
        let good = fs::read_to_string(file.path()).unwrap();
        for damaged in ["", "{", "{}"] {
            fs::write(file.path(), damaged).unwrap();
            tokio::time::advance(LOOK).await;
            assert!(tokens.access(secret.secret()).is_some(), "{damaged:?}");
            let start = Tokens::open().with_file(file.clone());
            assert!(matches!(start, Err(TokenFileError::Damaged { .. })));
        }
        fs::write(file.path(), good.replace("\"ci\"", "\"renamed\"")).unwrap();
        tokio::time::advance(LOOK).await;
        let identity = tokens.identify(secret.secret()).unwrap();
        assert_eq!(identity.owner.name().map(|name| &**name), Some("renamed"));
    }

    #[tokio::test]
    async fn session_tokens_survive_where_they_are_kept() {
        let (_folder, file, tokens) = tokens();
        let session = SessionId::from("s");
        let lost = tokens.issue(&session).unwrap();
        let keeping = tokens.keep_session_tokens();
        assert_eq!(keeping.access(lost.secret()), None);
        let first = keeping.issue(&session).unwrap();
        let identity = keeping.identify(first.secret()).unwrap();
        assert_eq!(identity.access, Access::Session(session.clone()));

        let later = Tokens::open().with_file(file.clone()).unwrap();
        assert!(later.access(first.secret()).is_some(), "after a restart");
        let second = keeping.issue(&session).unwrap();
        assert_eq!(keeping.access(first.secret()), None, "rotated");
        assert!(identity.ended.is_cancelled());
        assert_eq!(file.list().unwrap().len(), 1);
        // A server that keeps none ends that of an earlier process.
        let later = Tokens::open().with_file(file.clone()).unwrap();
        let third = later.issue(&session).unwrap();
        assert_eq!(later.access(second.secret()), None);
        assert_eq!(file.list().unwrap(), []);
        assert!(later.access(third.secret()).is_some());
    }

    #[test]
    fn the_token_of_a_deleted_session_leaves_the_file() {
        let (_folder, file, tokens) = tokens();
        let keeping = tokens.keep_session_tokens();
        let secret = keeping.issue(&"s".into()).unwrap();
        keeping.revoke(&"s".into());
        assert_eq!(keeping.access(secret.secret()), None);
        assert_eq!(file.list().unwrap(), []);
    }
}
