//! Execution tokens: who signs them, who believes them. The only crate that touches key material.
//!
//! A token is a JWT signed with EdDSA (Ed25519). [`Signer`] mints, [`Verifier`] checks against a key set (a JWKS file with
//! any number of keys, chosen by `kid`, so that keys can be rotated). [`AnswerKeys`] makes the word by which the answer of a
//! host is known to come from whoever got the request. No I/O here: texts come in, texts go out.

mod answer_keys;
mod keys;
mod signer;
mod verifier;

pub use answer_keys::{AnswerKeyError, AnswerKeys};
pub use keys::{KeyError, generate};
pub use signer::Signer;
pub use verifier::{TokenError, Verified, Verifier};
