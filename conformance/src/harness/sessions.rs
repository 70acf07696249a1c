//! The steps that checks consist of: the handshake, capabilities, and opening sessions.

use acp_sdk::ErrorCode;
use serde_json::{Value, json};

use super::adapter::{self, Adapter, Place};
use super::{Capability, Caps, Conn, Outcome, Reply, Stop, inconclusive, serves, skip};
use crate::wire::Version;

impl Conn {
    /// Initializes the connection. Yields the agent's answer.
    ///
    /// # Errors
    /// When the agent refuses or does not answer.
    pub fn initialize(&mut self, caps: &Caps) -> Outcome<Value> {
        let params = caps.initialize(self.version());
        let result = self.result("initialize", params)?;
        self.agent = Some(result.clone());
        Ok(result)
    }

    /// Initializes, and authenticates when the profile says how.
    ///
    /// # Errors
    /// When the agent refuses or does not answer; inconclusive if the client declares nothing.
    pub fn open(&mut self, caps: &Caps) -> Outcome {
        let answer = self.initialize(caps);
        match (answer, caps) {
            (Ok(_), _) => {}
            (Err(stop), Caps::Full) => return Err(self.not_started(stop)),
            // A row of its own judges it.
            (Err(Stop::Fail(_)), Caps::None) => {
                return inconclusive("the agent accepts no client without capabilities");
            }
            (Err(stop), _) => return Err(stop),
        }
        if self.env.conditions.no_session.is_some() {
            // A login that is known to fail is no part of what is checked.
            return Ok(());
        }
        self.login().map(drop)
    }

    /// Returns why the connection is of no use. A start that fails after others succeeded says nothing
    /// about what a check is for: the machine may be busy, or a lock be held.
    fn not_started(&self, stop: Stop) -> Stop {
        let is_answered = self.recording().answer(0).is_some();
        match stop {
            Stop::Fail(failure) if self.env.conditions.has_started && !is_answered => {
                let came = failure.came.unwrap_or_default();
                Stop::Inconclusive(format!(
                    "the agent did not start this time: {}: {came}",
                    failure.reason
                ))
            }
            stop => stop,
        }
    }

    /// Authenticates by the method of the profile. Returns whether it names one.
    ///
    /// # Errors
    /// When the agent refuses or does not answer.
    pub fn login(&mut self) -> Outcome<bool> {
        let Some(method) = self.env.profile.auth_method.clone() else {
            return Ok(false);
        };
        let (name, _) = self.login_methods();
        let request = self.request(name, json!({"methodId": method}));
        let reply = self.reply_within(request, self.env.start_timeout())?;
        self.success(name, reply).map(|_| true)
    }

    /// Returns the version of the protocol that is spoken.
    #[must_use]
    pub fn version(&self) -> Version {
        self.env.schema.version()
    }

    pub(super) fn adapter(&self) -> &'static Adapter {
        adapter::of(self.version())
    }

    /// Returns the methods that log in and out.
    #[must_use]
    pub fn login_methods(&self) -> (&'static str, &'static str) {
        self.adapter().login_methods
    }

    /// Returns the capabilities of a client that can do everything.
    #[must_use]
    pub fn client_capabilities(&self) -> Value {
        (self.adapter().all_capabilities)()
    }

    /// Returns the agent's name and version, as far as it gives them.
    #[must_use]
    pub fn agent_info(&self) -> Option<&Value> {
        self.agent.as_ref()?.get(self.adapter().agent_members.0)
    }

    /// Returns whether the agent declares a capability, or must have it in this version.
    #[must_use]
    pub fn can(&self, capability: Capability) -> bool {
        let Place::At(pointer) = (self.adapter().place)(capability) else {
            return true;
        };
        let declared = || {
            let member = self.adapter().agent_members.1;
            self.agent.as_ref()?.get(member)?.pointer(pointer)
        };
        declared().is_some_and(|value| !value.is_null() && value != &Value::Bool(false))
    }

    /// The check is about this capability.
    ///
    /// # Errors
    /// A skip when the agent does not declare it.
    pub fn needs(&self, capability: Capability) -> Outcome {
        match (self.adapter().place)(capability) {
            Place::At(pointer) if !self.can(capability) => {
                let name = pointer.trim_start_matches('/').replace('/', ".");
                skip(format!("the agent does not declare `{name}`"))
            }
            _ => Ok(()),
        }
    }

    /// Params of a request that sets a session up.
    #[must_use]
    pub fn setup(&self, session: Option<&str>) -> Value {
        let mut params = json!({"cwd": self.env.folder, "mcpServers": []});
        if let Some(session) = session {
            params["sessionId"] = json!(session);
        }
        params
    }

    /// Opens a session again with its history. Yields the places of the request and of the answer.
    ///
    /// # Errors
    /// When the agent refuses or does not answer.
    pub fn load(&mut self, session: &str) -> Outcome<(usize, usize)> {
        let (request, reply) = self.try_load(session)?;
        let index = reply.index;
        self.success(self.adapter().load, reply)?;
        Ok((request, index))
    }

    /// Opens a session again with its history, which may be refused. Yields the place of the
    /// request, and the answer.
    ///
    /// # Errors
    /// When the agent does not answer.
    pub fn try_load(&mut self, session: &str) -> Outcome<(usize, Reply)> {
        let adapter = self.adapter();
        let mut params = self.setup(Some(session));
        if let Some((name, value)) = (adapter.load_params)() {
            params[name] = value;
        }
        self.set_up_again(adapter.load, params)
    }

    /// Opens a session again without its history. Yields the places of the request and of the
    /// answer.
    ///
    /// # Errors
    /// When the agent refuses or does not answer.
    pub fn resume(&mut self, session: &str) -> Outcome<(usize, usize)> {
        let params = self.setup(Some(session));
        let (request, reply) = self.set_up_again("session/resume", params)?;
        let index = reply.index;
        self.success("session/resume", reply)?;
        Ok((request, index))
    }

    fn set_up_again(&mut self, method: &str, params: Value) -> Outcome<(usize, Reply)> {
        let request = self.request(method, params);
        let reply = self.reply_within(request, self.env.start_timeout())?;
        Ok((request, reply))
    }

    /// Opens a session. Yields its id and the whole result.
    ///
    /// # Errors
    /// When the agent refuses, does not answer or names no session.
    pub fn new_session(&mut self) -> Outcome<(String, Value)> {
        let params = self.setup(None);
        self.session_with(params)
    }

    /// Opens a session by these params. Yields its id and the whole result.
    ///
    /// # Errors
    /// As [`Conn::new_session`].
    pub fn session_with(&mut self, params: Value) -> Outcome<(String, Value)> {
        if let Some(reason) = &self.env.conditions.no_session {
            return Err(Stop::Blocked(reason.clone()));
        }
        let mut reply = self.call("session/new", params.clone())?;
        if reply.code() == Some(ErrorCode::AUTHENTICATION_REQUIRED) && self.login()? {
            reply = self.call("session/new", params)?;
        }
        let reason = "expected a session, got an error for session/new";
        let result = reply.answer.map_err(|_| self.at(reply.index, reason))?;
        match result.get("sessionId").and_then(Value::as_str) {
            Some(id) if !id.is_empty() => Ok((id.to_owned(), result)),
            _ => Err(self.at(
                reply.index,
                "expected the id of a session in the result of session/new, got none",
            )),
        }
    }

    /// Opens a session of which only the id matters.
    ///
    /// # Errors
    /// As [`Conn::new_session`].
    pub fn session(&mut self) -> Outcome<String> {
        Ok(self.new_session()?.0)
    }

    /// Opens a session that had a turn again, in every way that the agent declares. Yields for each the
    /// method, the place of the answer and the state of the session.
    ///
    /// # Errors
    /// A skip when it declares none; inconclusive when the agent refuses, which other rows judge; otherwise
    /// when it does not answer.
    pub fn reopened(&mut self, session: &str) -> Outcome<Vec<(&'static str, usize, Value)>> {
        let mut states = Vec::new();
        if self.can(Capability::RESUME) {
            let params = self.setup(Some(session));
            let (_, reply) = self.set_up_again("session/resume", params)?;
            match reply.answer {
                Ok(state) => states.push(("session/resume", reply.index, state)),
                Err(_) => {
                    return inconclusive("the agent does not resume a session that had a turn");
                }
            }
        }
        if self.can(Capability::LOAD) {
            let (_, reply) = self.try_load(session)?;
            match reply.answer {
                Ok(state) => states.push((self.adapter().load, reply.index, state)),
                Err(_) => return inconclusive("the agent does not load a session that had a turn"),
            }
        }
        if states.is_empty() {
            self.needs(Capability::RESUME)?;
        }
        Ok(states)
    }

    /// The agent still serves: a new session opens.
    ///
    /// # Errors
    /// When it does not.
    pub fn still_serves(&mut self) -> Outcome {
        serves("afterwards", self.session())
    }
}
