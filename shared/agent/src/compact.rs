//! Makes a transcript shorter: old results first, then old exchanges, and the newest exchange last.

use crate::state::{Exchange, State};
use crate::text::{clean, json_bytes};

/// A result that was left out.
const LEFT_OUT: &str = "[This result is left out to save room.]";

/// Results up to this length stay, in bytes.
const SHORT: usize = 200;

/// Makes the exchanges of a state fit into `max` bytes of JSON, as well as possible.
pub(crate) fn shrink(state: &mut State, max: usize) {
    let fits = |exchanges: &[Exchange]| exchanges.iter().map(json_bytes).sum::<usize>() <= max;
    let last = state.exchanges.len().saturating_sub(1);
    for old in 0..last {
        if fits(&state.exchanges) {
            return;
        }
        for result in state.exchanges[old].calls.iter_mut().filter_map(|call| call.result.as_mut())
        {
            if result.content.len() > SHORT {
                LEFT_OUT.clone_into(&mut result.content);
            }
        }
    }
    while state.exchanges.len() > 1 && !fits(&state.exchanges) {
        state.exchanges.remove(0);
        state.left_out = state.left_out.saturating_add(1);
    }
    let Some(last) = state.exchanges.last_mut() else { return };
    let mut longest = longest(last);
    while json_bytes(last) > max && longest > SHORT {
        longest /= 2;
        last.text = clean(&last.text, longest);
        for result in last.calls.iter_mut().filter_map(|call| call.result.as_mut()) {
            result.content = clean(&result.content, longest);
        }
    }
}

/// Makes what was said before the run, or else the exchanges, about half as long. Whether anything became shorter.
pub(crate) fn halve(state: &mut State) -> bool {
    if !state.earlier.is_empty() {
        let half = state.earlier.len().div_ceil(2);
        state.earlier.drain(..half);
        return true;
    }
    let before: usize = state.exchanges.iter().map(json_bytes).sum();
    shrink(state, before / 2);
    state.exchanges.iter().map(json_bytes).sum::<usize>() < before
}

fn longest(exchange: &Exchange) -> usize {
    let results = exchange.calls.iter().filter_map(|call| call.result.as_ref());
    results.map(|result| result.content.len()).chain([exchange.text.len()]).max().unwrap_or(0)
}
