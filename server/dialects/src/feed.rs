//! What a client is sent of one session: steps of the log, encoded, numbered and in order.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp_sdk::v1::{ContentBlock, MessageId, SessionId};
use acp_server::event::Event;
use acp_server::{Events, Received, Result, Session};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::fold::{Fold, MOST_STEPS, Step, is_start};

/// Encodes the steps of a session in a dialect and sends them to its client.
pub(crate) trait Encode: Send + 'static {
    /// A message to the client.
    type Update: Send;

    /// What the messages of an event need of the event itself.
    type Source: Send + Sync;

    /// Returns what the messages of an event need of it besides its steps.
    fn source(&self, event: &Event) -> Self::Source;

    /// Returns a step as a message; `None` if the dialect has none for it.
    fn encode(
        &self,
        session: &SessionId,
        source: &Self::Source,
        step: Step,
    ) -> Option<Self::Update>;

    /// Returns the agent's answer in a turn that has ended. Default: its last message.
    fn output(&self, fold: &Fold) -> String {
        fold.output()
    }

    /// Sends the message with the number `id` in its session. Waits while the client does not read.
    ///
    /// # Errors
    ///
    /// When the connection is closed.
    fn send(
        &self,
        session: &Session,
        id: u64,
        update: Self::Update,
    ) -> impl Future<Output = acp_sdk::Result<()>> + Send;
}

/// The result of a replay.
#[derive(Debug)]
pub(crate) struct Resumed {
    pub(crate) replayed: u64,
    /// The number of the last message; 0 before the first.
    pub(crate) last: u64,
    /// Whether messages after the client's number are no longer kept.
    pub(crate) truncated: bool,
}

/// A client's view of a session. It ends when it is dropped, with the session, and when the log cannot be
/// read.
pub(crate) struct Feed {
    session: Session,
    replays: mpsc::Sender<(u64, oneshot::Sender<Resumed>)>,
    waiting: Arc<WaitingRequests>,
    progress: watch::Receiver<Progress>,
    task: JoinHandle<()>,
}

/// Requests that wait for the end of the turn of a message.
#[derive(Default)]
struct WaitingRequests(Mutex<HashMap<MessageId, Waiting>>);

#[derive(Clone, Debug, Default)]
struct Progress {
    /// The last event that was sent, or has no message.
    passed: u64,
    /// The reason why the log could not be read.
    failure: Option<String>,
}

/// A request that waits for the end of a turn.
struct Waiting {
    /// Receives the agent's answer when the turn's last event was sent.
    output: oneshot::Sender<String>,
    /// Completes when the request is answered.
    answered: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl WaitingRequests {
    fn lock(&self) -> MutexGuard<'_, HashMap<MessageId, Waiting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Feed {
    /// Creates a feed that begins when `after` completes: with the last event that the client is not sent,
    /// except in a replay of at most `history` messages.
    pub(crate) fn new(
        session: Session,
        history: u64,
        encoder: impl Encode,
        after: impl Future<Output = u64> + Send + 'static,
    ) -> Self {
        let (replays, requests) = mpsc::channel(1);
        let waiting = Arc::new(WaitingRequests::default());
        let (sent_through, progress) = watch::channel(Progress::default());
        let sender = Sender {
            events: session.subscribe(0),
            session: session.clone(),
            fold: Fold::default(),
            encoder,
            history,
            id: 0,
            lost: 0,
            passed: 0,
            // The past is counted, and not sent.
            skip: u64::MAX,
            sent: 0,
            checkpoints: VecDeque::from([Checkpoint::default()]),
            waiting: waiting.clone(),
            progress: sent_through,
        };
        let task = tokio::spawn(async move {
            let after = after.await;
            sender.run(after, requests).await;
        });
        Self {
            session,
            replays,
            waiting,
            progress,
            task,
        }
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.task.is_finished()
    }

    /// Waits until the feed has ended, because its session or the log has, and returns the last event that
    /// was sent, or has no message.
    pub(crate) async fn ended(&self) -> u64 {
        let mut progress = self.progress.clone();
        // Fails at the end.
        while progress.changed().await.is_ok() {}
        progress.borrow().passed
    }

    /// Queues a message of the user, and returns the prompt with what receives the agent's answer
    /// when the turn's last event was sent. Nothing of a later turn is sent before `answered` completes.
    ///
    /// # Errors
    ///
    /// As [`Session::prompt`].
    pub(crate) fn prompt(
        &self,
        content: Vec<ContentBlock>,
        answered: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(acp_server::PromptHandle, oneshot::Receiver<String>)> {
        // Held until the request is entered: the turn may end at once.
        let mut waiting = self.waiting.lock();
        let prompt = self.session.prompt(content)?;
        let (output, receiver) = oneshot::channel();
        let answered = Box::pin(answered);
        waiting.retain(|_, old| !old.output.is_closed());
        waiting.insert(prompt.message_id().clone(), Waiting { output, answered });
        Ok((prompt, receiver))
    }

    /// Waits until the events of a turn were sent, and returns what `output` has received: nothing, if
    /// the log has lost the turn's last event before.
    ///
    /// # Errors
    ///
    /// When the feed has ended, with the reason.
    pub(crate) async fn sent(
        &self,
        mut output: oneshot::Receiver<String>,
        last_event: u64,
    ) -> std::result::Result<String, String> {
        let mut progress = self.progress.clone();
        let passed = progress.wait_for(|progress| progress.passed >= last_event);
        let has_ended = passed.await.is_err();
        // It was sent before the progress was.
        match output.try_recv() {
            Ok(output) => Ok(output),
            Err(_) if has_ended => Err(self.why_ended()),
            Err(_) => Ok(String::new()),
        }
    }

    /// Sends the messages after the number `since` again, and returns how many.
    ///
    /// # Errors
    ///
    /// When the feed has ended, with the reason.
    pub(crate) async fn replay(&self, since: u64) -> std::result::Result<Resumed, String> {
        let (sender, resumed) = oneshot::channel();
        // Fails if the feed has ended, as does what follows.
        let _ = self.replays.send((since, sender)).await;
        resumed.await.map_err(|_| self.why_ended())
    }

    /// Returns why the feed has ended.
    pub(crate) fn why_ended(&self) -> String {
        let id = self.session.id();
        match &self.progress.borrow().failure {
            Some(reason) => format!("the events of session {id} cannot be read: {reason}"),
            None => format!("session {id} was closed"),
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The event and the number after which a turn begins.
#[derive(Clone, Copy, Debug, Default)]
struct Checkpoint {
    event: u64,
    id: u64,
}

/// The task of a feed.
struct Sender<E> {
    session: Session,
    events: Events,
    fold: Fold,
    encoder: E,
    history: u64,
    /// The number of the last message.
    id: u64,
    /// The last number that cannot be replayed, because the log has lost the events.
    lost: u64,
    /// The last event that was folded.
    passed: u64,
    /// Messages up to this number are counted, and not sent.
    skip: u64,
    /// Counts messages that were sent.
    sent: u64,
    /// Of turns with a message that may be replayed, in order.
    checkpoints: VecDeque<Checkpoint>,
    waiting: Arc<WaitingRequests>,
    progress: watch::Sender<Progress>,
}

impl<E: Encode> Sender<E> {
    /// Runs until the session or the connection ends, or the log cannot be read.
    async fn run(
        mut self,
        after: u64,
        mut requests: mpsc::Receiver<(u64, oneshot::Sender<Resumed>)>,
    ) {
        let ended = self.follow(after, &mut requests).await;
        if let Err(Some(error)) = ended {
            let failure = Some(error.to_string());
            self.progress
                .send_modify(|progress| progress.failure = failure);
        }
    }

    /// # Errors
    ///
    /// That of the store; `None` when the connection is closed.
    async fn follow(
        &mut self,
        after: u64,
        requests: &mut mpsc::Receiver<(u64, oneshot::Sender<Resumed>)>,
    ) -> std::result::Result<(), Option<acp_server::Error>> {
        self.fold_through(after).await?;
        self.skip = 0;
        loop {
            tokio::select! {
                biased;
                Some((since, resumed)) = requests.recv() => {
                    let result = self.replay(since).await?;
                    // Whoever asked may have gone.
                    let _ = resumed.send(result);
                }
                received = self.events.next() => self.take(received?).await?,
                () = self.session.closed() => {
                    while let Some(received) = self.events.next_now().await? {
                        self.take(received).await?;
                    }
                    return Ok(());
                }
            }
        }
    }

    async fn replay(
        &mut self,
        since: u64,
    ) -> std::result::Result<Resumed, Option<acp_server::Error>> {
        let oldest = self.id.saturating_sub(self.history).max(self.lost);
        let from = since.clamp(oldest, self.id.max(oldest));
        let lost = self.lost;
        let sent = self.sent;
        if from < self.id {
            let mut latest = self.checkpoints.iter().rev();
            // The first one is not after the oldest message.
            let checkpoint = latest.find(|checkpoint| checkpoint.id <= from).copied();
            let checkpoint = checkpoint.unwrap_or_default();
            let through = self.passed;
            self.events = self.session.subscribe(checkpoint.event);
            self.fold = Fold::default();
            (self.id, self.passed, self.skip) = (checkpoint.id, checkpoint.event, from);
            self.fold_through(through).await?;
            self.skip = 0;
        }
        Ok(Resumed {
            replayed: self.sent - sent,
            last: self.id,
            truncated: since < oldest || self.lost > lost,
        })
    }

    /// Takes the events up to this one in.
    async fn fold_through(
        &mut self,
        last: u64,
    ) -> std::result::Result<(), Option<acp_server::Error>> {
        while self.passed < last {
            tokio::select! {
                biased;
                received = self.events.next() => self.take(received?).await?,
                () = self.session.closed() => return Err(None),
            }
        }
        Ok(())
    }

    async fn take(
        &mut self,
        received: Received,
    ) -> std::result::Result<(), Option<acp_server::Error>> {
        let event = match received {
            Received::Event(event) => event,
            Received::Gap(last) => {
                self.gap(last);
                return Ok(());
            }
        };
        let number = event.number;
        if is_start(&event) {
            self.checkpoint(number - 1);
        }
        let source = self.encoder.source(&event);
        let mut has_ended = false;
        for step in self.fold.event(event) {
            has_ended |= matches!(step, Step::TurnEnded(..));
            if let Some(update) = self.encoder.encode(self.session.id(), &source, step) {
                self.id += 1;
                if self.id > self.skip {
                    let sent = self.encoder.send(&self.session, self.id, update).await;
                    // Nobody is left to be sent anything.
                    sent.map_err(|_| None)?;
                    self.sent += 1;
                }
            }
        }
        let answered = match has_ended {
            true => self.end_turn(),
            false => None,
        };
        self.pass(number);
        if let Some(answered) = answered {
            // Nothing of the next turn precedes the answer.
            answered.await;
        }
        Ok(())
    }

    fn pass(&mut self, number: u64) {
        self.passed = number;
        self.progress
            .send_modify(|progress| progress.passed = progress.passed.max(number));
    }

    /// Gives the request that waits for the turn its answer, and returns what completes when the request
    /// is answered.
    fn end_turn(&mut self) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        let message = self.fold.message()?;
        let Waiting { output, answered } = self.waiting.lock().remove(message)?;
        let is_waiting = output.send(self.encoder.output(&self.fold)).is_ok();
        is_waiting.then_some(answered)
    }

    /// A turn begins after this event.
    fn checkpoint(&mut self, event: u64) {
        if self
            .checkpoints
            .back()
            .is_none_or(|last| last.event < event)
        {
            let id = self.id;
            self.checkpoints.push_back(Checkpoint { event, id });
        }
        let oldest = self.id.saturating_sub(self.history);
        while self
            .checkpoints
            .get(1)
            .is_some_and(|next| next.id <= oldest)
        {
            self.checkpoints.pop_front();
        }
    }

    /// The log has lost the events up to this one, so their messages cannot be counted. Numbers go on
    /// above every one that they may have had.
    fn gap(&mut self, last: u64) {
        self.fold = Fold::default();
        self.id = self.id.max(last.saturating_mul(MOST_STEPS));
        self.lost = self.id;
        let checkpoint = Checkpoint {
            event: last,
            id: self.id,
        };
        self.checkpoints = VecDeque::from([checkpoint]);
        self.pass(last);
    }
}
