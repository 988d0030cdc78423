//! The way into the commit stage: a bounded channel. A reading that brings more than the stage takes waits here.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{mpsc, oneshot};

use crate::archive::ArchiveError;
use crate::model::TeamId;
use crate::pipeline::commit::batch::Batch;
use crate::pipeline::team::budget::{Permit, Waits};

/// Messages that wait for the commit stage. Their events have permits of their own.
pub const MESSAGES_WAITING_MAX: usize = 4;

/// A message to the commit stage. The answer comes when the work is done; none comes when the stage ends first.
pub enum Message {
    /// Events and changes, and the room that they take.
    Add(Box<Batch>, Permit),
    /// A reading waits for room.
    MakeRoom,
    /// Commit all that was added.
    Commit(oneshot::Sender<()>),
    /// Make all sessions that lag.
    CatchUp(oneshot::Sender<()>),
    /// Show what waits.
    Inspect(Box<dyn FnOnce(&Batch) + Send>),
}

/// The readings' end of the channel.
pub struct Inbox {
    team: TeamId,
    messages: mpsc::Sender<Message>,
    waiting: Arc<AtomicUsize>,
}

/// The commit stage's end of the channel.
pub struct Messages {
    pub messages: mpsc::Receiver<Message>,
    waiting: Arc<AtomicUsize>,
}

impl Messages {
    /// Whether a reading waits for room.
    pub fn want_room(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }
}

/// A channel to a team's commit stage.
pub fn channel(team: TeamId) -> (Inbox, Messages) {
    let (sender, receiver) = mpsc::channel(MESSAGES_WAITING_MAX);
    let waiting = Arc::new(AtomicUsize::new(0));
    (Inbox { team, messages: sender, waiting: waiting.clone() }, Messages { messages: receiver, waiting })
}

impl Inbox {
    /// Counts who calls among the readings that wait for room, until the answer is dropped.
    pub fn waits(&self) -> Waits<'_> {
        Waits::among(&self.waiting)
    }

    /// # Errors
    /// When the stage has ended, like all that follow.
    pub async fn add(&self, batch: Batch, permit: Permit) -> Result<(), ArchiveError> {
        self.send(Message::Add(Box::new(batch), permit)).await
    }

    pub async fn make_room(&self) -> Result<(), ArchiveError> {
        self.send(Message::MakeRoom).await
    }

    pub async fn commit(&self) -> Result<(), ArchiveError> {
        let (done, answer) = oneshot::channel();
        self.send(Message::Commit(done)).await?;
        answer.await.map_err(|_| self.ended())
    }

    pub async fn catch_up(&self) -> Result<(), ArchiveError> {
        let (done, answer) = oneshot::channel();
        self.send(Message::CatchUp(done)).await?;
        answer.await.map_err(|_| self.ended())
    }

    pub async fn inspect<T: Send + 'static>(
        &self,
        inspect: impl FnOnce(&Batch) -> T + Send + 'static,
    ) -> Result<T, ArchiveError> {
        let (done, answer) = oneshot::channel();
        let answer_with = move |batch: &Batch| drop(done.send(inspect(batch)));
        self.send(Message::Inspect(Box::new(answer_with))).await?;
        answer.await.map_err(|_| self.ended())
    }

    async fn send(&self, message: Message) -> Result<(), ArchiveError> {
        self.messages.send(message).await.map_err(|_| self.ended())
    }

    /// After a commit that failed nothing more is taken: checkpoints and read points of the streams side by side would speak of
    /// events that went with it.
    fn ended(&self) -> ArchiveError {
        ArchiveError::Poisoned { team: self.team.clone() }
    }
}
