//! Minting tokens.

use jsonwebtoken::{Algorithm, EncodingKey, Header};
use runfleet_contracts::Claims;
use secrecy::{ExposeSecret, SecretString};

use crate::keys::KeyError;

/// Signs execution tokens with one private key.
pub struct Signer {
    header: Header,
    key: EncodingKey,
}

impl Signer {
    /// A signer for the private key in `pem`, known to verifiers as `kid`.
    pub fn new(kid: &str, pem: &SecretString) -> Result<Self, KeyError> {
        let key = EncodingKey::from_ed_pem(pem.expose_secret().as_bytes())
            .map_err(|_| KeyError::Private)?;
        let mut header = Header::new(Algorithm::EdDSA);
        header.kid = Some(kid.to_owned());
        Ok(Self { header, key })
    }

    /// The token that says `claims`.
    pub fn mint(&self, claims: &Claims) -> Result<SecretString, KeyError> {
        jsonwebtoken::encode(&self.header, claims, &self.key)
            .map(SecretString::from)
            .map_err(|_| KeyError::Private)
    }
}
