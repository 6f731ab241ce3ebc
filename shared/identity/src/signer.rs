//! Minting tokens.

use aws_lc_rs::signature::Ed25519KeyPair;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ed25519_dalek::SigningKey;
use ed25519_dalek::pkcs8::DecodePrivateKey;
use jsonwebtoken::{Algorithm, Header};
use runfleet_contracts::Claims;
use secrecy::{ExposeSecret, SecretString};

use crate::keys::KeyError;

/// Signs execution tokens with one private key.
///
/// The JWT library parses the key and derives its public half for every token, which takes as long as signing. Here both are
/// done once; what it makes is the same, byte for byte.
pub struct Signer {
    /// The header as it stands in every token, with the dot behind it.
    head: String,
    key: Ed25519KeyPair,
}

impl Signer {
    /// A signer for the private key in `pem`, known to verifiers as `kid`.
    pub fn new(kid: &str, pem: &SecretString) -> Result<Self, KeyError> {
        let read =
            SigningKey::from_pkcs8_pem(pem.expose_secret()).map_err(|_| KeyError::Private)?;
        let key =
            Ed25519KeyPair::from_seed_unchecked(read.as_bytes()).map_err(|_| KeyError::Private)?;
        let mut header = Header::new(Algorithm::EdDSA);
        header.kid = Some(kid.to_owned());
        let header = serde_json::to_vec(&header).map_err(|_| KeyError::Private)?;
        let mut head = BASE64_URL_SAFE_NO_PAD.encode(header);
        head.push('.');
        Ok(Self { head, key })
    }

    /// The token that says `claims`.
    pub fn mint(&self, claims: &Claims) -> Result<SecretString, KeyError> {
        let claims = serde_json::to_vec(claims).map_err(|_| KeyError::Private)?;
        let mut token = self.head.clone();
        BASE64_URL_SAFE_NO_PAD.encode_string(claims, &mut token);
        let signature = self.key.sign(token.as_bytes());
        token.push('.');
        BASE64_URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        Ok(token.into())
    }
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::EncodingKey;
    use runfleet_contracts::claims::AUDIENCE;
    use serde_json::json;

    use super::*;
    use crate::generate;

    #[test]
    fn a_token_is_the_one_that_the_jwt_library_makes() {
        let (private, _) = generate("k1").unwrap();
        let claims: Claims = serde_json::from_value(json!({
            "aud": AUDIENCE, "exp": 1, "iat": 0, "workspace": "w", "project": "p", "execution": "e",
            "source": "script", "user": null, "hops": 1,
        }))
        .unwrap();
        let mut header = Header::new(Algorithm::EdDSA);
        header.kid = Some("k1".to_owned());
        let key = EncodingKey::from_ed_pem(private.expose_secret().as_bytes()).unwrap();
        let theirs = jsonwebtoken::encode(&header, &claims, &key).unwrap();
        let ours = Signer::new("k1", &private).unwrap().mint(&claims).unwrap();
        assert_eq!(ours.expose_secret(), theirs);
    }

    #[test]
    fn what_is_no_private_key_is_refused_without_a_word_of_it() {
        let error = Signer::new("k1", &"s3cret".into()).err().unwrap();
        assert!(
            matches!(error, KeyError::Private) && !format!("{error:?} {error}").contains("s3cret")
        );
    }
}
