//! A random schedule.

mod end;

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use acp_sdk::v1::SessionId;
use acp_server::store::{SessionRecord, Store, StoreErrorKind};
use acp_server::{Limits, OnDisconnect, Policies, SecondPrompt, Server};
use acp_store_tests::faults::{Fault, FaultyStore, Operation, When};

use crate::agent::{self, Agent, MODES};
use crate::client::{Client, Leaving, Version};
use crate::dice::Dice;
use crate::view::Join;
use crate::world::World;

/// What the store of a schedule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    /// It commits in a call.
    None,
    /// It takes time, and is unavailable for so short a time that nothing is lost.
    Hiccups,
    /// Anything that the contract allows.
    Failures,
}

/// What a schedule came to.
pub struct Outcome {
    pub steps: Vec<String>,
    pub faults: Vec<String>,
    /// What each client was sent, in order.
    pub trace: Vec<String>,
}

pub struct Schedule {
    dice: Dice,
    /// Whether time passes only when nothing else is to be done.
    is_paused: bool,
    trouble: Trouble,
    /// What is said during turns.
    steering: Option<Dice>,
    /// Whether prompts may be refused although nothing is wrong.
    refuses: bool,
    replaces: bool,
    world: Arc<World>,
    store: Arc<FaultyStore<Arc<crate::record::Recorder>>>,
    server: Server,
    /// Those that have not ended although others have taken their sessions over, unless time stands still.
    former: Vec<Server>,
    limits: Limits,
    policies: Policies,
    sessions: Vec<SessionId>,
    created: u64,
    clients: Vec<Client>,
    names: u64,
    injected: u64,
    /// Sessions that another server has changed, which this one need not know.
    stale: BTreeSet<SessionId>,
    /// Sessions that another server has ever taken.
    stolen: BTreeSet<SessionId>,
    /// Sessions with cancellations that may not have arrived yet.
    cancelled: BTreeSet<SessionId>,
    steps: Vec<String>,
}

impl Schedule {
    /// Runs the schedule of a seed, on a runtime of its own.
    pub async fn run(seed: u64, is_paused: bool) -> Outcome {
        let mut dice = Dice::new(seed);
        let trouble = match dice.roll(4) {
            0 | 1 => Trouble::None,
            _ if !is_paused => Trouble::None,
            2 => Trouble::Hiccups,
            _ => Trouble::Failures,
        };
        let (mut limits, policies) = settings(&mut dice, trouble);
        // Not by the dice: schedules that have found faults stay what they are.
        if seed % 8 == 3 {
            limits.sessions = 1;
        }
        let world = Arc::<World>::default();
        let store = Arc::new(FaultyStore::new(world.recorder.clone()));
        let mut schedule = Self {
            is_paused,
            trouble,
            // As above.
            steering: (8..=10)
                .contains(&(seed % 16))
                .then(|| Dice::new(seed ^ 0x5eed)),
            refuses: policies.second_prompt == SecondPrompt::Refuse || limits.queued_prompts < 100,
            replaces: policies.second_prompt == SecondPrompt::Replace,
            server: server(trouble, &store, &limits, &policies),
            world,
            store,
            limits,
            policies,
            former: Vec::new(),
            sessions: Vec::new(),
            created: 0,
            clients: Vec::new(),
            names: 0,
            injected: 0,
            stale: BTreeSet::new(),
            stolen: BTreeSet::new(),
            cancelled: BTreeSet::new(),
            steps: Vec::new(),
            dice,
        };
        let about = format!(
            "{trouble:?}, {:?}, {:?}",
            schedule.policies, schedule.limits.log
        );
        schedule.steps.push(about);
        for _ in 0..1 + schedule.dice.roll(2) {
            schedule.create().await;
        }
        for _ in 0..5 + schedule.dice.roll(36) {
            schedule.step().await;
            let steer = schedule.steer();
            schedule.steps.extend(steer);
        }
        schedule.end().await;
        let mut state = schedule.world.state();
        Outcome {
            steps: schedule.steps,
            faults: std::mem::take(&mut state.faults),
            trace: std::mem::take(&mut state.trace),
        }
    }

    /// Adds a session to the store.
    async fn create(&mut self) {
        self.created += 1;
        let id = SessionId::from(format!("s{}", self.created));
        let record = SessionRecord::new(id.clone(), "/");
        let lease = self.world.recorder.create(&record).await.unwrap();
        self.world.recorder.release(&lease).await.unwrap();
        self.sessions.push(id);
    }

    fn session(&mut self) -> SessionId {
        let at = self.dice.pick(self.sessions.len());
        self.sessions[at].clone()
    }

    /// Returns the place of a client, if there is one.
    fn client(&mut self) -> Option<usize> {
        match self.clients.len() {
            0 => None,
            count => Some(self.dice.pick(count)),
        }
    }

    async fn step(&mut self) {
        let step = self.random_step().await;
        if let Some(step) = step {
            self.steps.push(step);
        }
    }

    async fn random_step(&mut self) -> Option<String> {
        let kind = self.dice.roll(30);
        let session = self.session();
        match kind {
            0..=2 if self.clients.len() < 4 => return Some(self.attach(&session)),
            10 => return self.inject(&session).await,
            20 | 21 => return self.trouble(),
            22 if self.dice.roll(4) == 0 => return self.steal(&session).await,
            23 if self.dice.roll(4) == 0 => return Some(self.restart().await),
            24 => return Some(self.drop_halfway(&session)),
            25 | 26 => {
                let time = Duration::from_millis(1 << self.dice.roll(12));
                let time = if self.is_paused { time } else { time / 1000 };
                tokio::time::sleep(time).await;
                if self.is_paused {
                    self.cancelled.clear();
                }
                return Some(format!("{time:?} pass"));
            }
            27..=29 => {
                let times = self.dice.roll(30);
                for _ in 0..times {
                    tokio::task::yield_now().await;
                }
                return Some(format!("{times} turns of the runtime"));
            }
            _ => {}
        }
        let at = self.client()?;
        let name = self.clients[at].name().to_owned();
        let about = |what: &str| Some(format!("{name} {what} {session}"));
        match kind {
            3 => {
                let leaving = [Leaving::Dropped, Leaving::EndsInput, Leaving::Closed];
                let leaving = leaving[self.dice.pick(3)];
                self.clients.remove(at).leave(leaving);
                Some(format!("{name} goes: {leaving:?}"))
            }
            4 | 5 => {
                let join = self.join(at, &session)?;
                about(&format!("joins ({join:?})"))
            }
            6..=9 | 11 | 12 => {
                if self.replaces {
                    self.world.cancels(&session);
                }
                let seed = self.dice.roll(1000);
                let may_fail = self.refuses
                    || self.trouble == Trouble::Failures
                    || self.stale.contains(&session)
                    || self.cancelled.contains(&session);
                let may_be_cancelled = self.replaces || self.cancelled.contains(&session);
                let doubts = (may_fail, may_be_cancelled);
                let text = self.clients[at].prompt(&session, seed, doubts);
                about(&format!("prompts {text:?} in"))
            }
            13 => {
                self.clients[at].cancel(&session);
                self.cancelled.insert(session.clone());
                about("cancels")
            }
            14 => {
                let sent = self.clients[at].cancel_request(&mut self.dice);
                sent.then(|| about("cancels a request in"))?
            }
            15 => self.close(at, &session).then(|| about("closes"))?,
            16 if self.dice.roll(6) == 0 => {
                self.lose(&session, true);
                self.clients[at].delete_session(&session);
                self.sessions.retain(|kept| *kept != session);
                self.create().await;
                about("deletes")
            }
            16 | 17 => {
                let mode = MODES[self.dice.pick(MODES.len())];
                self.clients[at].set_mode(&session, mode);
                about(&format!("sets {mode} in"))
            }
            18 => {
                let sent = self.clients[at].answer(&mut self.dice);
                sent.then(|| about("answers a question in"))?
            }
            19 => {
                let reads = *self.clients[at].reading.borrow();
                self.clients[at].reading.send_replace(!reads);
                Some(format!("{name} reads: {}", !reads))
            }
            _ => None,
        }
    }

    fn steer(&mut self) -> Option<String> {
        let dice = self.steering.as_mut()?;
        if self.clients.is_empty() || dice.roll(3) > 0 {
            return None;
        }
        let at = (
            dice.pick(self.clients.len()),
            dice.pick(self.sessions.len()),
        );
        let (client, session) = (&mut self.clients[at.0], &self.sessions[at.1]);
        let (queues, again, seed) = (dice.roll(4) == 0, dice.roll(4) == 0, dice.roll(1000));
        if self.replaces && queues {
            self.world.cancels(session);
        }
        let text = client.steer(session, seed, (queues, again));
        let name = client.name();
        Some(format!(
            "{name} steers {text:?} in {session}, or queues it: {queues}"
        ))
    }

    fn attach(&mut self, session: &SessionId) -> String {
        self.names += 1;
        let name = format!("c{}", self.names);
        let version = version(&mut self.dice);
        let dice = Dice::new(self.dice.roll(u64::MAX));
        let client = Client::new(&self.world, &self.server, (name.clone(), version), dice);
        self.clients.push(client);
        let at = self.clients.len() - 1;
        let join = self.join(at, session);
        format!("{name} ({version:?}) attaches to {session}: {join:?}")
    }

    fn join(&mut self, at: usize, session: &SessionId) -> Option<Join> {
        let last = match self.trouble {
            Trouble::None if self.is_paused => self.world.recorder.log(session).len() as u64,
            // Neither clients nor server may know yet that a commit has happened.
            _ => self.world.state().shown.get(session).copied().unwrap_or(0),
        };
        let client = &self.clients[at];
        let seen = client.state().views.get(session).map(|view| view.seen());
        let join = match self.dice.roll(8) {
            0 | 1 if client.speaks_v1() => Join::Load,
            2 if client.speaks_v1() => Join::Nothing,
            3 => Join::After(0),
            4 => Join::After(self.dice.roll(last + 1)),
            _ => Join::After(seen.unwrap_or(last).min(last)),
        };
        let required = match self.stale.contains(session) {
            true => 0,
            false => last,
        };
        let may_have_closed = self.trouble == Trouble::Failures;
        let joins = client.join(session, join, required, may_have_closed);
        joins.then_some(join)
    }

    async fn inject(&mut self, session: &SessionId) -> Option<String> {
        if self.replaces {
            self.world.cancels(session);
        }
        let seed = self.dice.roll(1000);
        let opened = self.server.session(session);
        let opened = tokio::time::timeout(Duration::from_secs(1), opened).await;
        self.injected += 1;
        let text = agent::text("injected", self.injected, seed);
        let queued = match opened {
            Ok(Ok(session)) => session.prompt(vec![text.as_str().into()]).is_ok(),
            _ => false,
        };
        Some(format!(
            "the program prompts {text:?} in {session}: {queued}"
        ))
    }

    /// Ends a client's part in a session.
    fn close(&mut self, at: usize, session: &SessionId) -> bool {
        if self.clients[at].is_busy(session) {
            return false;
        }
        let others = self
            .clients
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != at);
        let stays = others.into_iter().any(|(_, client)| {
            let state = client.state();
            let view = state.views.get(session);
            !state.closed && view.is_some_and(|view| view.is_certain())
        });
        self.lose(session, !stays);
        self.clients[at].close_session(session);
        true
    }

    /// The prompts of a session may fail; `for_all`: its clients may be detached.
    fn lose(&mut self, session: &SessionId, for_all: bool) {
        self.cancelled.insert(session.clone());
        self.world.cancels(session);
        self.world.fails(session);
        if for_all {
            for client in &self.clients {
                if let Some(view) = client.state().views.get_mut(session) {
                    view.doubt();
                }
            }
        }
    }

    /// Another server takes the lease, and may go on with the session.
    async fn steal(&mut self, session: &SessionId) -> Option<String> {
        self.lose(session, true);
        self.stale.insert(session.clone());
        self.stolen.insert(session.clone());
        let goes_on = self.dice.roll(2) == 0;
        if goes_on {
            let other = Server::builder(Agent)
                .store(self.world.recorder.clone())
                .build();
            self.injected += 1;
            let text = agent::text("injected", self.injected, self.dice.roll(1000));
            if let Ok(session) = other.session(session).await
                && let Ok(prompt) = session.prompt(vec![text.as_str().into()])
            {
                let cancelled =
                    tokio::time::timeout(Duration::from_millis(40), prompt.stop_reason());
                let _ = cancelled.await;
            }
            other.shutdown().await;
        } else if let Ok((_, lease)) = self.world.recorder.acquire(session).await {
            let _ = self.world.recorder.release(&lease).await;
        }
        Some(format!(
            "another server takes {session}, and goes on: {goes_on}"
        ))
    }

    /// The server ends, gracefully or not, and another one takes the sessions over.
    async fn restart(&mut self) -> String {
        for session in self.sessions.clone() {
            self.lose(&session, true);
        }
        let is_graceful = self.dice.roll(2) == 0;
        if is_graceful {
            self.store.heal();
            self.server.shutdown().await;
            self.stale.clear();
        } else {
            // Turns of the old server may still run: their commits are refused from now on.
            self.stale.extend(self.sessions.iter().cloned());
            if !self.is_paused {
                self.former.push(self.server.clone());
            }
        }
        for client in std::mem::take(&mut self.clients) {
            client.leave(Leaving::Dropped);
        }
        self.server = server(self.trouble, &self.store, &self.limits, &self.policies);
        format!("another server, after a graceful end: {is_graceful}")
    }

    /// A future of the server is polled a few times, and dropped.
    fn drop_halfway(&mut self, session: &SessionId) -> String {
        let polls = 1 + self.dice.roll(4);
        let mut opening = pin!(self.server.session(session));
        let mut waits = true;
        for _ in 0..polls {
            let mut context = Context::from_waker(Waker::noop());
            waits = waits && opening.as_mut().poll(&mut context).is_pending();
        }
        format!("{session} is opened, and its request dropped after {polls} polls")
    }

    fn trouble(&mut self) -> Option<String> {
        let unavailable = Fault::Fail(StoreErrorKind::Unavailable);
        let when = [When::Before, When::After][self.dice.pick(2)];
        let delay = Fault::Delay(Duration::from_millis(1 << self.dice.roll(9)));
        let times = 1 + self.dice.pick(3);
        let operations = [
            Operation::Commit,
            Operation::Acquire,
            Operation::Read,
            Operation::Find,
        ];
        let any = operations[self.dice.pick(4)];
        let (operation, times, when, fault) = match (self.trouble, self.dice.roll(8)) {
            (Trouble::None, _) => return None,
            (_, 0..=2) => (Operation::Commit, times, when, unavailable),
            (_, 3) => (any, times, when, delay),
            (Trouble::Hiccups, _) => (Operation::Commit, times, when, delay),
            (_, 4) => (any, times, when, unavailable),
            (_, 5) => {
                let full = Fault::Fail(StoreErrorKind::Full);
                (Operation::Commit, times, When::Before, full)
            }
            (_, 6) => {
                let lost = Fault::Fail(StoreErrorKind::LeaseLost);
                (Operation::Commit, 1, When::Before, lost)
            }
            _ => (Operation::Commit, 3 + 10 * times, when, unavailable),
        };
        self.store
            .inject_next(operation, times, when, fault.clone());
        Some(format!(
            "the next {times} {operation:?}: {fault:?} {when:?}"
        ))
    }
}

fn version(dice: &mut Dice) -> Version {
    match dice.roll(3) {
        0 => Version::V2,
        _ => Version::V1,
    }
}

fn server(
    trouble: Trouble,
    store: &Arc<FaultyStore<Arc<crate::record::Recorder>>>,
    limits: &Limits,
    policies: &Policies,
) -> Server {
    let server = Server::builder(Agent);
    let server = match trouble {
        Trouble::None => server.store(store.inner().clone()),
        _ => server.store(store.clone()),
    };
    server
        .limits(limits.clone())
        .policies(policies.clone())
        .build()
}

fn settings(dice: &mut Dice, trouble: Trouble) -> (Limits, Policies) {
    let mut limits = Limits::default();
    // Small, so that slow clients read from the store.
    limits.log.memory_events = 1 << dice.roll(6);
    limits.log.uncommitted_bytes = 128 << dice.roll(6);
    limits.log.page_bytes = 200 << dice.roll(4);
    limits.queued_prompts = if dice.roll(8) == 0 { 2 } else { 1000 };
    if trouble == Trouble::Failures {
        let seconds = [0, 1, 60][dice.pick(3)];
        limits.log.commit_timeout = Duration::from_secs(seconds);
    }
    if dice.roll(4) == 0 {
        limits.idle_timeout = Duration::from_millis(100);
    }
    let mut policies = Policies::default();
    policies.cancel_deadline = Duration::from_millis(50);
    policies.second_prompt = match dice.roll(8) {
        0 => SecondPrompt::Refuse,
        1 => SecondPrompt::Replace,
        _ => SecondPrompt::Queue,
    };
    policies.on_disconnect = match dice.roll(4) {
        0 => Some(OnDisconnect::Cancel {
            after: Duration::ZERO,
        }),
        1 => {
            let after = Duration::from_millis(50);
            Some(OnDisconnect::Cancel { after })
        }
        _ => None,
    };
    policies.paced = [None, Some(true)][dice.pick(2)];
    (limits, policies)
}
