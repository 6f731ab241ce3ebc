//! What an agent says to the person of a conversation, told to live readers while the model says it.
//!
//! Nothing waits for a reader and nothing depends on one: what the person reads in the end is the message in the conversation. An
//! agent whose answers are held against rules is not heard before: its answers are told by that message alone.

use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use runfleet_broker::Publisher;
use runfleet_contracts::AgentTurn;
use runfleet_contracts::facts::{Progress, SAYING_BYTES_MAX};
use runfleet_model::{ChatModel, ModelFailure, TurnAnswer, TurnRequest};
use runfleet_store::RunRecord;
use runfleet_worker::facts;
use tokio_util::sync::CancellationToken;

use crate::calls::Live;

/// How often the person hears what has been said since.
const EVERY: Duration = Duration::from_millis(100);

/// How much of one attempt is told, in bytes: a conversation takes no longer answer.
const TOLD_BYTES_MAX: usize = 32 * 1_024;

/// One attempt of a model at an answer for a person.
pub(crate) struct Saying<'a> {
    publisher: &'a Publisher,
    record: &'a RunRecord,
    turn: &'a AgentTurn,
    pieces: Mutex<Pieces>,
}

impl<'a> Saying<'a> {
    /// None when nobody hears the agent, or nobody may before its answer is complete.
    pub(crate) fn of(
        publisher: &'a Publisher,
        live: &'a Live,
        turn: &'a AgentTurn,
    ) -> Option<Self> {
        let heard =
            live.record.conversation.is_some() && live.definition.speaks_freely() && !live.judges();
        let (record, pieces) = (&live.record, Mutex::default());
        heard.then_some(Self { publisher, record, turn, pieces })
    }

    /// Asks the model, and tells what it says.
    pub(crate) async fn hear(
        &self,
        chat: &dyn ChatModel,
        question: &TurnRequest,
        cancel: CancellationToken,
    ) -> Result<TurnAnswer, ModelFailure> {
        let mut take = |text: &str| self.lock().take(text);
        let answered = tokio::select! {
            answered = chat.turn_with(question, cancel, &mut take) => answered,
            never = self.tell_again_and_again() => match never {},
        };
        if answered.is_ok() {
            while self.tell() {}
        }
        answered
    }

    fn lock(&self) -> MutexGuard<'_, Pieces> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn tell_again_and_again(&self) -> Infallible {
        loop {
            tokio::time::sleep(EVERY).await;
            self.tell();
        }
    }

    /// Tells one piece. Whether there was one.
    fn tell(&self) -> bool {
        let Some((seq, text)) = self.lock().next() else { return false };
        let AgentTurn { turn, attempt, .. } = *self.turn;
        let doing = Progress::Saying { attempt, seq, text };
        facts::progress(self.publisher, self.record, turn, doing);
        true
    }
}

/// What was said and is not told yet.
#[derive(Default)]
struct Pieces {
    waiting: String,
    /// Bytes that were taken in.
    taken: usize,
    /// The number of the last piece.
    seq: u32,
}

impl Pieces {
    fn take(&mut self, text: &str) {
        let room = TOLD_BYTES_MAX.saturating_sub(self.taken);
        let fits = &text[..text.floor_char_boundary(room)];
        self.waiting.push_str(fits);
        // What is left out ends it: nothing is told behind a gap.
        self.taken = if fits.len() < text.len() { TOLD_BYTES_MAX } else { self.taken + fits.len() };
    }

    fn next(&mut self) -> Option<(u32, String)> {
        if self.waiting.is_empty() {
            return None;
        }
        let end = self.waiting.floor_char_boundary(SAYING_BYTES_MAX);
        let piece = self.waiting.drain(..end).collect();
        self.seq += 1;
        Some((self.seq, piece))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_numbered_cut_between_characters_and_together_what_was_said() {
        let mut pieces = Pieces::default();
        assert_eq!(pieces.next(), None);
        pieces.take("Hel");
        pieces.take("lo");
        assert_eq!(pieces.next(), Some((1, "Hello".to_owned())));
        assert_eq!(pieces.next(), None);
        let long = format!("x{}", "é".repeat(SAYING_BYTES_MAX));
        pieces.take(&long);
        let rest: Vec<_> = std::iter::from_fn(|| pieces.next()).collect();
        assert_eq!(rest.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), [2, 3, 4]);
        assert!(rest.iter().all(|(_, piece)| piece.len() <= SAYING_BYTES_MAX));
        assert_eq!(rest.into_iter().map(|(_, piece)| piece).collect::<String>(), long);
    }

    #[test]
    fn of_an_answer_without_end_only_its_beginning_is_told() {
        let mut pieces = Pieces::default();
        pieces.take(&"x".repeat(TOLD_BYTES_MAX - 1));
        pieces.take("é");
        pieces.take("y");
        let told: String = std::iter::from_fn(|| pieces.next()).map(|(_, piece)| piece).collect();
        assert_eq!(told, "x".repeat(TOLD_BYTES_MAX - 1));
    }
}
