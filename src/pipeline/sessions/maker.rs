//! The session stage: sessions that the commits of a backfill leave are made beside them, and go with one of them.

use std::sync::{Arc, PoisonError};

use crate::archive::{ArchiveError, Committed, Draft, TeamWriter};
use crate::pipeline::sessions::making::{Made, Making};
use crate::pipeline::sessions::part::{EVENTS_TARGET, catch_up_by, left_behind};
use crate::pipeline::sessions::update::{Remembered, are_behind};
use crate::pipeline::team::edges::TeamEdges;
use crate::pipeline::workers::Work;

/// Owns the events of sessions that more are waited for. It lends them to each commit.
pub struct SessionMaker {
    edges: Arc<TeamEdges>,
    remembered: Remembered,
    under_way: Option<Work<Made>>,
}

impl SessionMaker {
    pub fn new(edges: Arc<TeamEdges>) -> Self {
        Self { edges, remembered: Remembered::default(), under_way: None }
    }

    /// What a commit works with, until [`SessionMaker::take_back`]. While sessions are made, it is nothing.
    pub fn lend_remembered(&mut self) -> Remembered {
        std::mem::take(&mut self.remembered)
    }

    pub fn take_back(&mut self, remembered: Remembered) {
        self.remembered = remembered;
    }

    /// Begins with the next sessions that were left to be made, where none are under way and it is nobody else's turn.
    pub fn begin(&mut self) {
        if self.under_way.is_some() {
            return;
        }
        let making = {
            let mut writer = self.edges.writer();
            let Some(part) = left_behind(writer.state()) else { return };
            let Some(turn) = self.edges.budget.try_turn() else { return };
            Making::begin(part, &mut writer, &mut self.remembered, self.edges.service().now()).in_turn(turn)
        };
        self.under_way = Some(self.edges.workers.begin(move || making.end()));
    }

    /// Sessions that are made by now, for the next commit.
    pub async fn made(&mut self) -> Option<Made> {
        Some(self.under_way.take_if(|making| making.is_done())?.end().await)
    }

    /// Makes all sessions that are behind, in as many commits as it takes.
    ///
    /// # Errors
    /// When the archive cannot be read or written.
    pub async fn catch_up(&mut self) -> Result<(), ArchiveError> {
        if let Some(making) = self.under_way.take() {
            let (made, now) = (making.end().await, self.edges.clock.now());
            let _ = self.commit(move |writer, held| made.commit_with(Draft::default(), writer, held, now)).await?;
        }
        while self.edges.with_state(are_behind) {
            let edges = self.edges.clone();
            let _turn = edges.budget.turn().await;
            let (service_now, now) = (edges.service().now(), edges.clock.now());
            let make = move |writer: &mut TeamWriter, remembered: &mut Remembered| {
                catch_up_by(writer, remembered, EVENTS_TARGET, service_now, now)
            };
            let Committed::Committed { seq, rows, .. } = self.commit(make).await? else { break };
            tracing::info!(team = %edges.team, %seq, rows, "made sessions of archived events");
        }
        Ok(())
    }

    async fn commit(
        &mut self,
        commit: impl FnOnce(&mut TeamWriter, &mut Remembered) -> Result<Committed, ArchiveError> + Send + 'static,
    ) -> Result<Committed, ArchiveError> {
        let (writer, mut remembered) = (self.edges.writer.clone(), self.lend_remembered());
        let work = move || {
            let done = commit(&mut writer.lock().unwrap_or_else(PoisonError::into_inner), &mut remembered);
            (done, remembered)
        };
        let (done, remembered) = self.edges.workers.run(work).await;
        self.take_back(remembered);
        done
    }
}
