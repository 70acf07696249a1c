//! The end of a schedule: everything is answered, and clients, server and store agree with the log.

use std::time::Duration;

use acp_server::event::Event;
use acp_server::internal::session::last_appended;
use acp_server::{Phase, Received, Session};

use super::{Schedule, Trouble, server};
use crate::client::{Asked, Client};
use crate::judge;
use crate::world::{Reply, Steer};

impl Schedule {
    /// Whether an event that the server took for failed may be in the log.
    fn is_exact(&self) -> bool {
        self.trouble != Trouble::Failures
    }

    fn fault(&self, fault: String) {
        self.world.fault(fault);
    }

    /// Waits until a condition holds, and returns whether it does.
    async fn until(&self, condition: impl Fn() -> bool) -> bool {
        let mut pause = Duration::from_millis(1);
        let limit = if self.is_paused { 600 } else { 10 };
        let end = tokio::time::Instant::now() + Duration::from_secs(limit);
        while !condition() {
            if tokio::time::Instant::now() > end {
                return false;
            }
            tokio::time::sleep(pause).await;
            if self.is_paused {
                pause *= 2;
            }
        }
        true
    }

    /// Waits until nothing is found, and returns what still is.
    async fn stays<T>(&self, find: impl Fn() -> Option<T>) -> Option<T> {
        match self.until(|| find().is_none()).await {
            true => None,
            false => find(),
        }
    }

    /// Lets everything end, and compares.
    pub(super) async fn end(&mut self) {
        self.store.heal();
        for client in &self.clients {
            client.reading.send_replace(true);
            if client.is_closed() {
                self.fault(format!("the connection of {} was closed", client.name()));
            }
        }
        if self.is_paused {
            // Everything that can happen without an answer to a question has happened then.
            tokio::time::sleep(Duration::from_secs(200)).await;
            self.check_questions();
        }
        let limit = tokio::time::Instant::now() + Duration::from_secs(10);
        loop {
            self.wait_for_answers().await;
            for client in &self.clients {
                let joined: Vec<_> = client.state().views.keys().cloned().collect();
                for session in joined {
                    client.ask_state(&session);
                }
            }
            self.wait_for_answers().await;
            // What a client sent before it went may arrive only now, unless time stands still.
            let mut clients = self.clients.iter();
            let agree = clients.all(|client| self.wrong_states(client).is_empty());
            if self.is_paused || agree || tokio::time::Instant::now() > limit {
                break;
            }
        }
        for client in &self.clients {
            self.check_view(client).await;
        }
        for session in self.server.open_sessions() {
            if !self.stale.contains(session.id()) {
                self.check_settings(&session).await;
            }
        }
        for server in &self.former {
            server.shutdown().await;
        }
        self.check_store().await;
        self.check_prompts();
    }

    /// Cancels what runs, and waits until all is answered.
    async fn wait_for_answers(&self) {
        let done = || {
            let sessions = self.server.open_sessions();
            for session in &sessions {
                // Prompts may be on their way.
                self.world.cancels(session.id());
                session.cancel();
            }
            let idle = |session: &Session| match session.phase() {
                Phase::Closed => true,
                phase => phase == Phase::Idle && last_appended(session) == session.last_event(),
            };
            self.clients.iter().all(|client| client.unanswered() == 0) && sessions.iter().all(idle)
        };
        if !self.until(done).await {
            let open = self
                .clients
                .iter()
                .map(|client| format!("{} of {}", client.unanswered(), client.name()));
            let open: Vec<_> = open.collect();
            let sessions = self.server.open_sessions();
            let phases: Vec<_> = sessions
                .iter()
                .map(|session| (session.id(), session.phase()))
                .collect();
            self.fault(format!("not answered: {open:?}; {phases:?}"));
        }
    }

    /// Returns what is wrong about the last events that a client has from the server.
    fn wrong_states(&self, client: &Client) -> Vec<String> {
        let state = client.state();
        let wrong = state.states.iter().filter_map(|(session, last)| {
            if !self.is_exact() || self.stale.contains(session) {
                return None;
            }
            let committed = self.world.recorder.log(session).len() as u64;
            match last {
                None if state.views[session].is_certain() => {
                    Some(format!("{} was detached from {session}", client.name()))
                }
                Some(last) if *last != committed => {
                    Some(format!("{session} is at {last}, not at {committed}"))
                }
                _ => None,
            }
        });
        wrong.collect()
    }

    /// Whoever can answer an open question has been asked.
    fn check_questions(&self) {
        for session in self.server.open_sessions() {
            let id = session.id();
            if self.stale.contains(id) {
                continue;
            }
            let log = self.world.recorder.log(id);
            for (question, title) in judge::open_questions(&log) {
                let is_attached = |client: &&Client| {
                    let state = client.state();
                    let view = state.views.get(id);
                    !state.closed && view.is_some_and(|view| view.is_certain())
                };
                let was_asked = |client: &Client| {
                    let state = client.state();
                    let mut asked = state.asked.iter();
                    let is_open = |asked: &Asked| asked.session == *id && !asked.cancelled;
                    asked.any(|asked| is_open(asked) && asked.question == question)
                };
                let origin = title.split_once(':').map_or("", |(name, _)| name);
                let mut clients = self.clients.iter();
                let mut unasked = match clients.find(|client| client.name() == origin) {
                    Some(origin) => vec![origin],
                    None => self.clients.iter().collect(),
                };
                unasked.retain(|client| is_attached(client) && !was_asked(client));
                for client in unasked {
                    if self.is_exact() {
                        let name = client.name();
                        self.fault(format!("{name} is not asked {question} of {id}"));
                    }
                }
            }
        }
    }

    /// A client that is attached has been sent all.
    async fn check_view(&self, client: &Client) {
        for wrong in self.wrong_states(client) {
            self.fault(wrong);
        }
        let states = client.state().states.clone();
        for (session, last) in states {
            let (name, recorder) = (client.name(), &self.world.recorder);
            let Some(last) = last else { continue };
            let has_all = || {
                let log = recorder.log(&session);
                client.state().views[&session].has_all(last, &log)
            };
            if !self.until(has_all).await {
                let places = client.state().views[&session].places();
                self.fault(format!(
                    "{name} is at {places:?} of {session}, not at {last}"
                ));
            }
        }
        if let Some(question) = self.stays(|| self.unlearnt(client)).await {
            let name = client.name();
            self.fault(format!("{name} did not learn that {question} has ended"));
        }
    }

    /// Returns a question that has ended, and that a client takes for open.
    fn unlearnt(&self, client: &Client) -> Option<u64> {
        let state = client.state();
        let is_open = |asked: &&Asked| {
            let log = self.world.recorder.log(&asked.session);
            judge::open_questions(&log).contains_key(&asked.question)
        };
        let mut asked = state.asked.iter().filter(|asked| !asked.answered);
        let unlearnt = asked.find(|asked| !is_open(asked) && !state.closed);
        unlearnt.map(|asked| asked.question)
    }

    /// The settings are those of the log.
    async fn check_settings(&self, session: &Session) {
        if let Some(wrong) = self.stays(|| self.wrong_settings(session)).await {
            self.fault(wrong);
        }
    }

    fn wrong_settings(&self, session: &Session) -> Option<String> {
        let log = self.world.recorder.log(session.id());
        // After a commit that seems to have failed, the log may have more.
        let last = usize::try_from(session.last_event()).unwrap();
        let Some(events) = log.get(..last) else {
            return Some(format!(
                "{} is at {last}, not at {}",
                session.id(),
                log.len()
            ));
        };
        let (mode, title) = judge::settings(events);
        let settings = session.settings();
        let has = (settings.mode(), session.title());
        (has != (Some(mode), title.map(str::to_owned)))
            .then(|| format!("{} has {has:?}, not {mode} and {title:?}", session.id()))
    }

    /// The server ends, and another one finds the log as it was committed.
    async fn check_store(&mut self) {
        let ended = tokio::time::timeout(Duration::from_secs(100), self.server.shutdown());
        if ended.await.is_err() {
            self.fault("the server does not end".to_owned());
        }
        self.server = server(self.trouble, &self.store, &self.limits, &self.policies);
        for id in &self.sessions {
            let session = match self.server.session(id).await {
                Ok(session) => session,
                Err(error) => {
                    self.fault(format!("{id} cannot be opened: {error}"));
                    continue;
                }
            };
            let log = self.world.recorder.log(id);
            let mut history = session.history();
            let mut numbers = 0..;
            while let Some(received) = history.next().await.unwrap() {
                let at: usize = numbers.next().unwrap();
                let expected = log
                    .get(at)
                    .map(|entry| Event::parse(at as u64 + 1, &entry.text));
                let same = match (&received, &expected) {
                    (Received::Event(event), Some(expected)) => {
                        event.number == expected.number && event.body == expected.body
                    }
                    _ => false,
                };
                if !same {
                    self.fault(format!("{id} has {received:?}, not {expected:?}"));
                }
            }
            if numbers.start != log.len() {
                self.fault(format!(
                    "{id} has {} events, not {}",
                    numbers.start,
                    log.len()
                ));
            }
            self.check_settings(&session).await;
        }
    }

    fn check_prompts(&self) {
        let mut faults = Vec::new();
        let state = self.world.state();
        for id in &self.sessions {
            let log = self.world.recorder.log(id);
            if let Err(fault) = judge::check(&log) {
                faults.push(format!("{id}: {fault}"));
            }
            let of_session = |reply: &&Reply| reply.session == *id;
            let replies: Vec<&Reply> = state.replies.iter().filter(of_session).collect();
            if let Err(fault) = judge::replies(&log, &replies) {
                faults.push(format!("{id}: {fault}"));
            }
        }
        for prompt in &state.prompts {
            let log = self.world.recorder.log(&prompt.session);
            let (name, _) = prompt.text.split_once(':').unwrap();
            let client = self.clients.iter().find(|client| client.name() == name);
            let state = client.map(Client::state);
            let view = state
                .as_ref()
                .and_then(|state| state.views.get(&prompt.session));
            if prompt.is_open() {
                faults.push(format!("{} was not answered", prompt.text));
                continue;
            }
            // A commit may have happened although the lease was lost before the server knew.
            let is_exact = self.is_exact() && !self.stolen.contains(&prompt.session);
            if let Err(fault) = judge::answer(prompt, view, &log, is_exact) {
                faults.push(format!("{}: {fault}", prompt.text));
            }
        }
        for steer in &state.steers {
            let log = self.world.recorder.log(&steer.session);
            if steer.answer.is_none() && !steer.is_lost {
                faults.push(format!("input {} was not answered", steer.text));
            }
            let same = |other: &&Steer| other.text == steer.text && other.session == steer.session;
            let all: Vec<&Steer> = state.steers.iter().filter(same).collect();
            let is_exact = self.is_exact() && !self.stolen.contains(&steer.session);
            if let Err(fault) = judge::steers(&all, &log, is_exact) {
                faults.push(format!("input {}: {fault}", steer.text));
            }
        }
        drop(state);
        for fault in faults {
            self.fault(fault);
        }
    }
}
