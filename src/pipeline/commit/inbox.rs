//! The input of the commit stage: a bounded channel. A reading waits here when the stage is busy.

use tokio::sync::{mpsc, oneshot};

use crate::archive::ArchiveError;
use crate::model::TeamId;
use crate::pipeline::commit::Batch;

/// Messages that wait for the commit stage. Their events have permits of their own.
pub const MESSAGES_WAITING_MAX: usize = 8;

/// A message to the commit stage.
pub enum Message {
    /// Events and changes.
    Add(Box<Batch>),
    /// Commit everything that was added, and answer then. If the stage ends first, no answer comes.
    Commit(oneshot::Sender<()>),
}

/// The readings' end of the channel.
pub struct Inbox {
    team: TeamId,
    messages: mpsc::Sender<Message>,
}

/// A channel to a team's commit stage.
pub fn channel(team: TeamId) -> (Inbox, mpsc::Receiver<Message>) {
    let (messages, receiver) = mpsc::channel(MESSAGES_WAITING_MAX);
    (Inbox { team, messages }, receiver)
}

impl Inbox {
    /// # Errors
    /// When the stage has ended. Then every later call fails, too.
    pub async fn add(&self, batch: Batch) -> Result<(), ArchiveError> {
        self.send(Message::Add(Box::new(batch))).await
    }

    /// Waits until everything that was added is committed.
    ///
    /// # Errors
    /// As [`Inbox::add`].
    pub async fn commit(&self) -> Result<(), ArchiveError> {
        let (done, answer) = oneshot::channel();
        self.send(Message::Commit(done)).await?;
        answer.await.map_err(|_| self.ended())
    }

    async fn send(&self, message: Message) -> Result<(), ArchiveError> {
        self.messages.send(message).await.map_err(|_| self.ended())
    }

    /// After a failed commit the stage accepts no message: the read points of other streams would record its lost events as read.
    fn ended(&self) -> ArchiveError {
        ArchiveError::Poisoned { team: self.team.clone() }
    }
}
