//! Checking tokens. What was checked once is remembered for a while: an execution uses one token for all its calls.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use runfleet_contracts::Claims;
use runfleet_contracts::claims::AUDIENCE;
use secrecy::{ExposeSecret, SecretString};

use crate::keys::KeyError;

/// Longest token that is looked at, in bytes.
const TOKEN_BYTES_MAX: usize = 4_096;

/// Tokens remembered; when full, all are forgotten and checked again.
const REMEMBERED_MAX: usize = 4_096;

/// How far the clocks of issuer and fleet may differ, in seconds.
const LEEWAY_SECONDS: u64 = 30;

/// Why a token is not believed. The same for the caller in every case; the reason is for logs and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Longer than any token of ours.
    #[error("the token is too long")]
    TooLong,
    /// Not a JWT, or without a key id.
    #[error("the token is malformed")]
    Malformed,
    /// Signed by a key that is not in the key set.
    #[error("the token is signed by an unknown key")]
    UnknownKey,
    /// The signature, the audience or a claim is wrong.
    #[error("the token is not valid here")]
    Invalid,
}

/// A token whose signature and audience are right.
#[derive(Debug, Clone)]
pub struct Verified {
    /// What it says.
    pub claims: Claims,
    /// Whether its time is over. Not an error by itself: a repeated request must still find its run.
    pub expired: bool,
}

/// Checks tokens against a key set.
pub struct Verifier {
    keys: HashMap<String, DecodingKey>,
    validation: Validation,
    remembered: Mutex<HashMap<Box<str>, Claims>>,
}

impl Verifier {
    /// A verifier for the keys of a JSON Web Key Set.
    pub fn new(key_set: &str) -> Result<Self, KeyError> {
        let set: JwkSet = serde_json::from_str(key_set).map_err(|_| KeyError::Public)?;
        let mut keys = HashMap::new();
        for jwk in &set.keys {
            let kid = jwk.common.key_id.clone().ok_or(KeyError::Public)?;
            keys.insert(kid, DecodingKey::from_jwk(jwk).map_err(|_| KeyError::Public)?);
        }
        let mut validation = Validation::new(Algorithm::EdDSA);
        validation.set_audience(&[AUDIENCE]);
        validation.set_required_spec_claims(&["exp", "aud"]);
        // Expiry is told apart from forgery, see `Verified::expired`.
        validation.validate_exp = false;
        Ok(Self { keys, validation, remembered: Mutex::default() })
    }

    /// Checks signature and audience of `token`, and tells whether it has expired at `now_ms`.
    pub fn verify(&self, token: &SecretString, now_ms: u64) -> Result<Verified, TokenError> {
        let token = token.expose_secret();
        if token.len() > TOKEN_BYTES_MAX {
            return Err(TokenError::TooLong);
        }
        let known =
            self.remembered.lock().unwrap_or_else(PoisonError::into_inner).get(token).cloned();
        let claims = match known {
            Some(claims) => claims,
            None => self.check(token)?,
        };
        let expired = now_ms / 1_000 > claims.exp.saturating_add(LEEWAY_SECONDS);
        Ok(Verified { claims, expired })
    }

    fn check(&self, token: &str) -> Result<Claims, TokenError> {
        let header = jsonwebtoken::decode_header(token).map_err(|_| TokenError::Malformed)?;
        let kid = header.kid.ok_or(TokenError::Malformed)?;
        let key = self.keys.get(&kid).ok_or(TokenError::UnknownKey)?;
        let claims = jsonwebtoken::decode::<Claims>(token, key, &self.validation)
            .map_err(|_| TokenError::Invalid)?
            .claims;
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= REMEMBERED_MAX {
            remembered.clear();
        }
        remembered.insert(token.into(), claims.clone());
        Ok(claims)
    }
}

#[cfg(test)]
mod tests {
    use runfleet_contracts::claims::Source;

    use super::*;
    use crate::{Signer, generate};

    fn claims() -> Claims {
        Claims {
            aud: AUDIENCE.into(),
            exp: 1_000,
            iat: 0,
            workspace: "w".parse().unwrap(),
            project: "p".parse().unwrap(),
            execution: "e".parse().unwrap(),
            source: Source::Script,
            user: None,
            read_only: false,
            hops: 10,
            depth: 0,
            chain: 0,
            version: None,
            wait_for_day: false,
            origin: None,
        }
    }

    fn pair(kid: &str) -> (Signer, Verifier) {
        let (private, public) = generate(kid).unwrap();
        (Signer::new(kid, &private).unwrap(), Verifier::new(&public).unwrap())
    }

    #[test]
    fn a_minted_token_is_believed_until_it_expires() {
        let (signer, verifier) = pair("k1");
        let token = signer.mint(&claims()).unwrap();
        for _ in 0..2 {
            let verified = verifier.verify(&token, 1_030_000).unwrap();
            assert_eq!((verified.claims, verified.expired), (claims(), false));
            assert!(verifier.verify(&token, 1_031_000).unwrap().expired);
        }
    }

    #[test]
    fn a_forged_or_foreign_token_is_refused_with_its_reason() {
        let (signer, verifier) = pair("k1");
        let (stranger, _) = pair("k1");
        let (unknown, _) = pair("k2");
        let reason = |token: &SecretString| verifier.verify(token, 0).unwrap_err();
        assert_eq!(reason(&stranger.mint(&claims()).unwrap()), TokenError::Invalid);
        assert_eq!(reason(&unknown.mint(&claims()).unwrap()), TokenError::UnknownKey);
        let other = Claims { aud: "other".into(), ..claims() };
        assert_eq!(reason(&signer.mint(&other).unwrap()), TokenError::Invalid);
        assert_eq!(reason(&SecretString::from("x.y.z")), TokenError::Malformed);
        assert_eq!(reason(&SecretString::from("x".repeat(5_000))), TokenError::TooLong);
    }

    #[test]
    fn a_token_without_a_statement_about_its_user_is_refused() {
        // `user: null` means "no user"; leaving it out must not mean the same.
        let mut value = serde_json::to_value(claims()).unwrap();
        value.as_object_mut().unwrap().remove("user");
        assert!(serde_json::from_value::<Claims>(value).is_err());
    }

    #[test]
    fn a_key_set_with_anything_else_is_refused() {
        for text in ["", "{}", r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AA"}]}"#] {
            assert!(matches!(Verifier::new(text), Err(KeyError::Public)), "{text}");
        }
    }
}
