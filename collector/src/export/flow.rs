//! Sends a backlog with several requests in flight.
//!
//! While one group of requests is on its way, the next group is built. One transaction then removes the accepted
//! requests and stores the next group. So every request is on the disk before its first attempt, and a group costs one
//! sync. The requests of a group may arrive in any order. If the receiver does not accept all of a group, the flow
//! ends, and the worker continues with one request at a time.

use tokio::task::JoinSet;

use super::outcome::Outcome;
use super::plan::Built;
use super::worker::{Woken, Worker};
use crate::clock;
use crate::store::export::{Batch, Loss, Position};

impl Worker {
    /// Sends `first`, which is already stored, and then the spans that wait behind it.
    pub(super) async fn flow(
        &mut self,
        first: Batch,
        mut position: Position,
    ) -> rusqlite::Result<Woken> {
        let mut group = vec![first];
        loop {
            let last = group.last().map_or(position.built_seq, |batch| batch.last_seq);
            let (answers, next) = tokio::join!(self.ask(&group), self.ahead(last, &position));
            let all_accepted = answers.iter().all(|answer| matches!(answer, Some(Outcome::Ok)));
            if !all_accepted {
                return self.take_apart(group, answers).await;
            }
            let accepted = group.first().map_or(last, |batch| batch.last_seq);
            (group, position) = self.passed(group, next).await?;
            self.isolation.accept(accepted);
            if group.is_empty() || position.stopped {
                return Ok(Woken::Time);
            }
        }
    }

    /// Sends all of `group` at once. An answer is `None` if the collector stops.
    async fn ask(&self, group: &[Batch]) -> Vec<Option<Outcome>> {
        let mut requests = JoinSet::new();
        for (index, batch) in group.iter().enumerate() {
            let attempt = self.attempt(batch);
            requests.spawn(async move { (index, attempt.await) });
        }
        let mut answers: Vec<_> = group.iter().map(|_| None).collect();
        while let Some(done) = requests.join_next().await {
            match done {
                Ok((index, answer)) => {
                    if let Some(place) = answers.get_mut(index) {
                        *place = answer;
                    }
                }
                Err(error) => {
                    // A task that did not panic was cancelled: the runtime shuts down. Its answer stays `None`.
                    if let Ok(panic) = error.try_into_panic() {
                        std::panic::resume_unwind(panic);
                    }
                }
            }
        }
        answers
    }

    async fn ahead(&self, seq: i64, position: &Position) -> Vec<Built> {
        let (plan, position) = (self.plan.clone(), position.clone());
        let built =
            self.in_store(move |store| plan.ahead(store, seq, &position, clock::now())).await;
        // An error is ignored here. It occurs again, and is then reported, when the worker builds the same request.
        built.unwrap_or_default()
    }

    /// Records that all of `group` was accepted, and stores the next group. Returns the next group if it is stored,
    /// and the new position.
    async fn passed(
        &self,
        group: Vec<Batch>,
        next: Vec<Built>,
    ) -> rusqlite::Result<(Vec<Batch>, Position)> {
        tracing::debug!(destination = %self.name, requests = group.len(), "delivered");
        self.in_store(move |store| {
            let delivered = group.iter().map(|batch| batch.spans).sum();
            let mut losses: Vec<Loss> = Vec::new();
            let mut batches = Vec::new();
            for built in next {
                losses.extend(built.losses);
                batches.extend(built.batch);
            }
            let stored = store.finish(&group, Some(delivered), &losses, &batches, clock::now())?;
            if !stored {
                batches.clear();
            }
            Ok((batches, store.position()?))
        })
        .await
    }

    /// Records the answers if not all requests of a group were accepted. Accepted requests come first, because an
    /// accepted request clears the destination's problems. Of the others, only one decides what happens next: the one
    /// with the longest delay that the receiver asked for, or the oldest. The rest stays stored and is sent again.
    async fn take_apart(
        &mut self,
        group: Vec<Batch>,
        answers: Vec<Option<Outcome>>,
    ) -> rusqlite::Result<Woken> {
        let is_over = answers.iter().any(Option::is_none);
        let mut failed: Option<(Batch, Outcome)> = None;
        for (batch, outcome) in group.into_iter().zip(answers) {
            match outcome {
                None => {}
                Some(outcome) if outcome.took_some_of(batch.spans) => {
                    let position = self.in_store(|store| store.position()).await?;
                    self.settle(&batch, &position, outcome).await?;
                }
                Some(outcome) => {
                    let longest = failed.as_ref().and_then(|(_, failed)| failed.delay());
                    if failed.is_none() || outcome.delay() > longest {
                        failed = Some((batch, outcome));
                    }
                }
            }
        }
        if let Some((batch, outcome)) = failed {
            let position = self.in_store(|store| store.position()).await?;
            self.settle(&batch, &position, outcome).await?;
        }
        Ok(if is_over { Woken::Shutdown } else { Woken::Time })
    }
}
