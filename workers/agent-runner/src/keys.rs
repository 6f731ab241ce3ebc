//! Secrets that documents of the catalog name: read when they are needed, from a file or the environment, and kept nowhere.

use runfleet_catalog::Secretly;
use secrecy::SecretString;

/// Largest file with a secret, in bytes.
const FILE_BYTES_MAX: u64 = 8_192;

/// There is no such secret. Where it should be is in no error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoSecret(pub(crate) &'static str);

/// A secret without the line end behind it.
pub(crate) async fn read(place: &Secretly) -> Result<SecretString, NoSecret> {
    let text = match place {
        Secretly::Text(text) => text.clone(),
        Secretly::Env(name) if is_own(name) => {
            return Err(NoSecret("a setting of the fleet is no secret of a document"));
        }
        Secretly::Env(name) => {
            #[expect(
                clippy::disallowed_methods,
                reason = "not a setting: a document of the catalog names it"
            )]
            let value = std::env::var(name);
            value.map_err(|_| NoSecret("an environment variable is not set"))?
        }
        Secretly::File(file) => {
            let size = tokio::fs::metadata(file).await.map_or(u64::MAX, |data| data.len());
            if size > FILE_BYTES_MAX {
                return Err(NoSecret("a file is not there, or too large"));
            }
            let text = tokio::fs::read_to_string(file).await;
            text.map_err(|_| NoSecret("a file cannot be read"))?
        }
    };
    let text = text.trim_end_matches(['\r', '\n']);
    if text.is_empty() { Err(NoSecret("it is empty")) } else { Ok(SecretString::from(text)) }
}

/// Whether a variable is a setting of the fleet, perhaps with a password: no document may send it anywhere.
fn is_own(name: &str) -> bool {
    name.to_ascii_uppercase().starts_with("RUNFLEET_")
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    #[tokio::test]
    async fn a_secret_comes_from_a_file_and_never_from_a_setting_of_the_fleet() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        std::fs::write(&file, "s3cret\n").unwrap();
        let place = Secretly::File(file.display().to_string());
        assert_eq!(read(&place).await.unwrap().expose_secret(), "s3cret");
        for place in [
            Secretly::File(dir.path().join("none").display().to_string()),
            Secretly::Env("RUNFLEET_REDIS_URL".to_owned()),
            Secretly::Env("NOBODY_HAS_SET_THIS".to_owned()),
            Secretly::Text(String::new()),
        ] {
            assert!(read(&place).await.is_err(), "{place:?}");
        }
    }
}
