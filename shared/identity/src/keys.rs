//! Making a key pair, and reading key files.

use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{EncodePrivateKey, KeypairBytes};
use jsonwebtoken::jwk::{Jwk, JwkSet};
use jsonwebtoken::{Algorithm, EncodingKey};
use secrecy::SecretString;

/// A key file could not be made or read. Never tells what was in it.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// Not an Ed25519 private key in PKCS#8 PEM form.
    #[error("not an Ed25519 private key in PKCS#8 PEM form")]
    Private,
    /// Not a JSON Web Key Set, or one of its keys is not an Ed25519 public key with a `kid`.
    #[error("not a JSON Web Key Set of Ed25519 public keys, each with a `kid`")]
    Public,
    /// The operating system gave no randomness.
    #[error("no randomness for a new key")]
    Randomness,
}

/// Makes a key pair named `kid`: the private key as PKCS#8 PEM, the public one as a JSON Web Key Set.
pub fn generate(kid: &str) -> Result<(SecretString, String), KeyError> {
    let mut seed = [0_u8; 32];
    rand::TryRngCore::try_fill_bytes(&mut rand::rngs::OsRng, &mut seed)
        .map_err(|_| KeyError::Randomness)?;
    // Without the public half: the older of the two forms, which every other tool reads as well.
    let pair = KeypairBytes { secret_key: seed, public_key: None };
    let pem = pair.to_pkcs8_pem(LineEnding::LF).map_err(|_| KeyError::Private)?;
    let private = EncodingKey::from_ed_pem(pem.as_bytes()).map_err(|_| KeyError::Private)?;
    let mut public =
        Jwk::from_encoding_key(&private, Algorithm::EdDSA).map_err(|_| KeyError::Private)?;
    public.common.key_id = Some(kid.to_owned());
    let set = serde_json::to_string_pretty(&JwkSet { keys: vec![public] })
        .map_err(|_| KeyError::Public)?;
    Ok((SecretString::from(pem.to_string()), set))
}
