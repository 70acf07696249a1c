//! Connections that are lost at random, while the agent asks, reads files and is cancelled.
//!
//! Time is paused. Schedules follow from their seeds, except for the order in which tasks of one moment
//! run. `ACP_CHAOS_CUTS` sets how many connections are lost for each kind of agent (default 100), `ACP_CHAOS_SEED`
//! runs one schedule.

mod agent;
mod calls;
mod link;
mod random;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use acp_sdk::HandlerResult;
use acp_sdk::v1::{
    ContentBlock, ReadTextFileRequest, ReadTextFileResponse, SessionUpdate, StopReason,
    WriteTextFileRequest, WriteTextFileResponse,
};
use tokio::time::{sleep, timeout};

use self::agent::{Agent, ContinuedBy};
use self::link::Memory;
use self::random::Random;
use crate::error::Result;
use crate::permission::{Decision, PermissionRequest, Permissions};
use crate::{Client, Error, Event, Events, Files, Gap, Outcome, Phase, Session, SessionContext};

/// Connections that are lost in one schedule.
const CUTS: u64 = 20;

/// Answers the agent's questions and serves its files.
#[derive(Clone)]
struct User {
    random: Random,
    asked: Arc<Mutex<Asked>>,
}

#[derive(Default)]
struct Asked {
    /// Questions without an answer, by their session.
    open: HashMap<String, u64>,
    /// Sessions whose turn is cancelled.
    cancelled: HashSet<String>,
    /// How often a question was answered.
    answers: HashMap<String, u64>,
}

/// Ends a question, also when it is withdrawn.
struct Open(Arc<Mutex<Asked>>, String);

impl Drop for Open {
    fn drop(&mut self) {
        *self.0.lock().unwrap().open.get_mut(&self.1).unwrap() -= 1;
    }
}

impl User {
    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap()
    }
}

impl Permissions for User {
    async fn decide(&self, question: &PermissionRequest) -> Decision {
        let session = question.request.session_id.to_string();
        let name = format!("{session} {}", question.request.tool_call.tool_call_id);
        {
            let mut asked = self.asked();
            let is_cancelled = asked.cancelled.contains(&session);
            assert!(!is_cancelled, "{name} is asked in a cancelled turn");
            *asked.open.entry(session.clone()).or_default() += 1;
        }
        let open = Open(self.asked.clone(), session);
        sleep(Duration::from_millis(self.random.below(12))).await;
        *self.asked().answers.entry(name).or_default() += 1;
        drop(open);
        Decision::AllowOnce
    }
}

impl Files for User {
    async fn read(
        &self,
        _: &SessionContext,
        request: ReadTextFileRequest,
    ) -> HandlerResult<ReadTextFileResponse> {
        // It outlives a connection at times.
        sleep(Duration::from_millis(self.random.below(15))).await;
        Ok(ReadTextFileResponse::new(format!(
            "content of {}",
            request.path
        )))
    }

    async fn write(
        &self,
        _: &SessionContext,
        _: WriteTextFileRequest,
    ) -> HandlerResult<WriteTextFileResponse> {
        unreachable!()
    }

    fn is_guarded(&self) -> bool {
        false
    }
}

/// Counts of what has happened, so that a schedule cannot pass by doing nothing.
#[derive(Debug, Default)]
struct Counts {
    ended: u64,
    cancelled: u64,
    failed: u64,
    answers: u64,
}

/// One schedule.
#[derive(Clone)]
struct Run {
    agent: Arc<Agent>,
    user: User,
    /// How many more connections are lost.
    cuts: Arc<AtomicU64>,
    counts: Arc<Mutex<Counts>>,
}

impl Run {
    /// Prompts until no more connections are lost, and then once more.
    async fn talk(self, session: Session) {
        let mut is_last = false;
        for number in 0.. {
            if is_last {
                break;
            }
            is_last = self.cuts.load(Ordering::Relaxed) == 0;
            self.prompt(&session, number).await;
        }
    }

    async fn prompt(&self, session: &Session, number: u64) {
        let random = &self.user.random;
        let hangs = random.below(3) == 0;
        let prompt = format!("{number} {}", if hangs { "hang" } else { "go" });
        let mut turn = session.prompt(prompt.as_str()).await.unwrap();
        let (session, user) = (session.clone(), self.user.clone());
        let (id, wait) = (session.id().to_string(), random.below(25));
        let cancelling = async move {
            sleep(Duration::from_millis(wait)).await;
            session.cancel();
            user.asked().cancelled.insert(session.id().to_string());
        };
        let cancels = hangs.then(|| tokio::spawn(cancelling));
        let mut has_output = false;
        while let Some(event) = turn.next().await {
            has_output |= matches!(event.event, Event::Update(_));
        }
        cancels.iter().for_each(tokio::task::JoinHandle::abort);
        let result = turn.outcome().await;
        self.user.asked().cancelled.remove(&id);
        self.check(&id, &prompt, result, has_output);
        // What was withdrawn with the turn is dropped by its task.
        sleep(Duration::from_micros(1)).await;
        let open = self.user.asked().open.get(&id).copied();
        assert_eq!(open.unwrap_or(0), 0, "{id} {prompt}: questions are left");
    }

    /// Compares the result of a prompt with what the agent has done.
    fn check(&self, id: &str, prompt: &str, result: Result<Outcome>, has_output: bool) {
        let record = self.agent.record(id, prompt);
        let mut counts = self.counts.lock().unwrap();
        match result {
            Ok(outcome) => {
                let record = record.expect("an answer to a prompt that never came");
                assert_eq!(outcome.text, record.text, "{id} {prompt}");
                assert_eq!(record.stop_reason, Some(outcome.stop_reason.as_str()));
                let is_cancelled = outcome.stop_reason == StopReason::Cancelled;
                assert_eq!(is_cancelled, prompt.ends_with("hang"), "{id} {prompt}");
                counts.ended += 1;
                counts.cancelled += u64::from(is_cancelled);
            }
            Err(Error::ConnectionLost { reason, .. }) => {
                let begun = reason.contains("had begun the turn");
                assert!(begun || !has_output, "{id} {prompt}: {reason}");
                assert!(!begun || record.is_some(), "{id} {prompt}: {reason}");
                if self.agent.continued_by == ContinuedBy::Events {
                    assert!(record.is_none(), "{id} {prompt}: {reason}");
                    assert!(reason.contains("had sent nothing of the turn"), "{reason}");
                }
                counts.failed += 1;
            }
            Err(other) => panic!("{id} {prompt}: {other}"),
        }
    }
}

/// Reads all events of a session: the text is that of the agent, each piece once.
async fn read(mut events: Events, agent: Arc<Agent>, id: String) {
    let mut text = String::new();
    let mut is_replay = false;
    while let Some(event) = events.next().await {
        match &event.event {
            Event::Gap(Gap::Loaded) => {
                text.clear();
                is_replay = true;
            }
            Event::Gap(gap) => panic!("{id}: {gap:?}"),
            Event::HistoryEnd => is_replay = false,
            Event::Update(SessionUpdate::AgentMessageChunk(chunk)) => {
                assert_eq!(event.phase == Phase::Replayed, is_replay, "{id}: {chunk:?}");
                let ContentBlock::Text(block) = &chunk.content else {
                    panic!("{chunk:?}");
                };
                text.push_str(&block.text);
            }
            _ => {}
        }
    }
    assert_eq!(agent.text(&id), text, "{id}");
}

async fn schedule(continued_by: ContinuedBy, seed: u64) -> Counts {
    let random = Random::new(seed);
    let run = Run {
        agent: Agent::new(continued_by, random.clone()),
        user: User {
            random: random.clone(),
            asked: Arc::default(),
        },
        cuts: Arc::new(AtomicU64::new(CUTS)),
        counts: Arc::default(),
    };
    let connector = Memory {
        agent: run.agent.clone(),
        random,
        cuts: run.cuts.clone(),
        is_first: true,
    };
    let builder = Client::builder().cancel_within(Duration::from_secs(3600));
    let builder = builder
        .files(run.user.clone())
        .permissions(run.user.clone());
    let client = builder.open_again(connector, None).await.unwrap();
    let (mut talks, mut readers) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let session = client.new_session("/").await.unwrap();
        let id = session.id().to_string();
        readers.push(tokio::spawn(read(session.events(), run.agent.clone(), id)));
        talks.push(tokio::spawn(run.clone().talk(session)));
    }
    for talk in talks {
        talk.await.unwrap();
    }
    client.shutdown().await;
    for reader in readers {
        reader.await.unwrap();
    }
    let asked = run.user.asked();
    for (question, times) in &asked.answers {
        assert_eq!(*times, 1, "the user answered {question} {times} times");
    }
    let mut counts = std::mem::take(&mut *run.counts.lock().unwrap());
    counts.answers = asked.answers.len() as u64;
    counts
}

fn variable(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().expect("a number"))
}

fn schedules(continued_by: ContinuedBy) {
    let cuts = variable("ACP_CHAOS_CUTS").unwrap_or(100);
    let seeds = match variable("ACP_CHAOS_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..cuts.div_ceil(CUTS),
    };
    let mut all = Counts::default();
    for seed in seeds {
        eprintln!("ACP_CHAOS_SEED={seed}");
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(true).build().unwrap();
        let limit = Duration::from_secs(86_400);
        let ended = runtime.block_on(async { timeout(limit, schedule(continued_by, seed)).await });
        let counts = ended.expect("the schedule ends");
        all.ended += counts.ended;
        all.cancelled += counts.cancelled;
        all.failed += counts.failed;
        all.answers += counts.answers;
    }
    eprintln!("{continued_by:?}: {all:?}");
    assert!(
        all.ended > 0 && all.cancelled > 0 && all.answers > 0,
        "{all:?}"
    );
}

#[test]
fn no_cut_loses_or_doubles_anything_of_sessions_that_go_on() {
    schedules(ContinuedBy::Events);
}

#[test]
fn no_cut_loses_or_doubles_anything_of_sessions_that_are_loaded() {
    schedules(ContinuedBy::Load);
}

#[test]
fn no_end_of_a_process_loses_or_doubles_anything_of_sessions_that_are_loaded() {
    schedules(ContinuedBy::LoadInNewProcess);
}
