//! What every model can do, whoever provides it.

use std::pin::Pin;

use tokio_util::sync::CancellationToken;

use crate::failure::ModelFailure;
use crate::turn::{TurnAnswer, TurnRequest};

/// An answer on its way.
pub type Answering<'a> =
    Pin<Box<dyn Future<Output = Result<TurnAnswer, ModelFailure>> + Send + 'a>>;

/// Hears the text of an answer piece by piece, before it is known whether the answer will be complete.
pub type Progress<'a> = &'a mut (dyn FnMut(&str) + Send);

/// Answers turns.
///
/// A turn ends within [`TurnRequest::within`]. It ends at once when `cancel` is cancelled or its future is dropped; the provider
/// may have seen the request, and its answer is lost. Nothing is repeated: that is for the caller to decide.
pub trait ChatModel: Send + Sync {
    /// Asks for one turn, and tells its text as it comes.
    fn turn_with<'a>(
        &'a self,
        request: &'a TurnRequest,
        cancel: CancellationToken,
        progress: Progress<'a>,
    ) -> Answering<'a>;

    /// Asks for one turn.
    fn turn<'a>(&'a self, request: &'a TurnRequest, cancel: CancellationToken) -> Answering<'a> {
        Box::pin(async move { self.turn_with(request, cancel, &mut |_| {}).await })
    }
}
