//! An answer that is being put together from its frames. Pure, and bounded.

use crate::failure::FailureKind;
use crate::turn::{Stop, ToolCall, TurnAnswer, Usage};

/// Most bytes of text, names and arguments in one answer.
const SAID_BYTES_MAX: usize = 1_024 * 1_024;

/// Most calls in one answer.
const CALLS_MAX: usize = 128;

/// Most bytes of an id.
const ID_BYTES_MAX: usize = 256;

/// Most bytes of what a provider wants to see again.
const SIGNATURE_BYTES_MAX: usize = 32 * 1_024;

/// Where a provider puts the parts of one call.
pub(crate) type Place = u64;

/// An answer that is being put together.
#[derive(Default)]
pub(crate) struct Draft {
    text: String,
    told: usize,
    calls: Vec<(Place, ToolCall)>,
    said: usize,
    /// What was used so far.
    pub(crate) usage: Usage,
    /// Why the model has stopped; none while it goes on.
    pub(crate) stop: Option<Stop>,
    /// How many frames were read that say more than that it is over.
    pub(crate) frames: u64,
}

impl Draft {
    /// More text.
    pub(crate) fn say(&mut self, text: &str) -> Result<(), FailureKind> {
        self.count(text.len())?;
        self.text.push_str(text);
        Ok(())
    }

    /// The text that was not asked for before.
    pub(crate) fn news(&mut self) -> &str {
        let news = &self.text[self.told..];
        self.told = self.text.len();
        news
    }

    /// A place that no call has yet.
    pub(crate) fn new_place(&self) -> Place {
        self.calls.iter().map(|(place, _)| place + 1).max().unwrap_or_default()
    }

    /// The place of the call that came last.
    pub(crate) fn last_place(&self) -> Option<Place> {
        self.calls.last().map(|(place, _)| *place)
    }

    /// Whether there is a call at a place.
    pub(crate) fn has(&self, place: Place) -> bool {
        self.calls.iter().any(|(at, _)| *at == place)
    }

    /// Adds to the call at a place, which is made if there is none.
    pub(crate) fn call(
        &mut self,
        place: Place,
        id: &str,
        name: &str,
        arguments: &str,
    ) -> Result<(), FailureKind> {
        self.count(id.len() + name.len() + arguments.len())?;
        let call = self.at(place)?;
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        call.name.push_str(name);
        call.arguments.push_str(arguments);
        Ok(())
    }

    /// Adds what is to be shown again beside the call at a place.
    pub(crate) fn sign(&mut self, place: Place, signature: String) -> Result<(), FailureKind> {
        if signature.len() > SIGNATURE_BYTES_MAX {
            return Err(FailureKind::TooLarge);
        }
        self.at(place)?.signature = Some(signature);
        Ok(())
    }

    fn at(&mut self, place: Place) -> Result<&mut ToolCall, FailureKind> {
        let found = self.calls.iter().position(|(at, _)| *at == place);
        let index = found.unwrap_or(self.calls.len());
        if index >= CALLS_MAX {
            return Err(FailureKind::TooLarge);
        }
        if found.is_none() {
            let empty = String::new;
            let call = ToolCall { id: empty(), name: empty(), arguments: empty(), signature: None };
            self.calls.push((place, call));
        }
        self.calls.get_mut(index).map(|(_, call)| call).ok_or(FailureKind::TooLarge)
    }

    fn count(&mut self, bytes: usize) -> Result<(), FailureKind> {
        self.said += bytes;
        if self.said > SAID_BYTES_MAX { Err(FailureKind::TooLarge) } else { Ok(()) }
    }

    /// The answer, when all of it has come. `whole` is whether it was one document, which cannot be cut off.
    pub(crate) fn finish(self, whole: bool) -> Result<TurnAnswer, FailureKind> {
        let Some(mut stop) = self.stop else {
            let cut = self.frames > 0 && !whole;
            return Err(if cut { FailureKind::Network } else { FailureKind::Malformed });
        };
        let mut calls: Vec<ToolCall> = Vec::with_capacity(self.calls.len());
        for (index, (_, mut call)) in self.calls.into_iter().enumerate() {
            if call.name.is_empty() || call.id.len() > ID_BYTES_MAX {
                return Err(FailureKind::Malformed);
            }
            if call.id.is_empty() || calls.iter().any(|other| other.id == call.id) {
                call.id = fresh_id(index, &calls);
            }
            if call.arguments.trim().is_empty() {
                "{}".clone_into(&mut call.arguments);
            }
            calls.push(call);
        }
        if !calls.is_empty() && matches!(stop, Stop::End | Stop::Other) {
            stop = Stop::ToolCalls;
        }
        Ok(TurnAnswer { text: self.text, tool_calls: calls, usage: self.usage, stop })
    }
}

/// An id for the call at `index` that no call before it has.
fn fresh_id(index: usize, before: &[ToolCall]) -> String {
    let mut number = index + 1;
    loop {
        let id = format!("call-{number}");
        if before.iter().all(|call| call.id != id) {
            return id;
        }
        number += CALLS_MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_together_and_every_call_has_an_id_of_its_own() {
        let mut draft = Draft { stop: Some(Stop::End), ..Draft::default() };
        draft.say("Hel").unwrap();
        assert_eq!(draft.news(), "Hel");
        draft.say("lo").unwrap();
        assert_eq!((draft.news().to_owned(), draft.news()), ("lo".to_owned(), ""));
        draft.call(3, "a", "loo", "{\"x\"").unwrap();
        draft.call(7, "a", "other", "").unwrap();
        draft.call(3, "", "kup", ":1}").unwrap();
        draft.call(8, "call-2", "third", " ").unwrap();
        draft.call(9, "", "fourth", "not json").unwrap();
        assert_eq!((draft.new_place(), draft.last_place()), (10, Some(9)));
        let answer = draft.finish(false).unwrap();
        let calls = answer.tool_calls.iter().map(|call| (&*call.id, &*call.name, &*call.arguments));
        let expected = [
            ("a", "lookup", "{\"x\":1}"),
            ("call-2", "other", "{}"),
            ("call-3", "third", "{}"),
            ("call-4", "fourth", "not json"),
        ];
        assert_eq!(calls.collect::<Vec<_>>(), expected);
        assert_eq!((answer.text.as_str(), answer.stop), ("Hello", Stop::ToolCalls));
    }

    #[test]
    fn an_answer_is_bounded_and_its_calls_have_names() {
        let mut draft = Draft::default();
        draft.say(&"x".repeat(SAID_BYTES_MAX)).unwrap();
        assert_eq!(draft.call(0, "", "", "x"), Err(FailureKind::TooLarge));
        let mut draft = Draft::default();
        let many =
            (0..200).map(|place| draft.call(place, "", "n", "")).position(|call| call.is_err());
        assert_eq!(many, Some(CALLS_MAX));
        assert_eq!(draft.sign(0, "x".repeat(SIGNATURE_BYTES_MAX + 1)), Err(FailureKind::TooLarge));
        let mut draft = Draft { stop: Some(Stop::End), ..Draft::default() };
        draft.call(0, &"x".repeat(ID_BYTES_MAX + 1), "n", "").unwrap();
        assert_eq!(draft.finish(true), Err(FailureKind::Malformed));
        let mut draft = Draft { stop: Some(Stop::End), ..Draft::default() };
        draft.call(0, "id", "", "{}").unwrap();
        assert_eq!(draft.finish(true), Err(FailureKind::Malformed));
    }

    #[test]
    fn an_answer_without_an_end_was_cut_off_or_is_none() {
        let draft = |frames| Draft { frames, ..Draft::default() };
        assert_eq!(draft(1).finish(false), Err(FailureKind::Network));
        assert_eq!(draft(0).finish(false), Err(FailureKind::Malformed));
        assert_eq!(draft(1).finish(true), Err(FailureKind::Malformed));
    }
}
