//! Secrets that documents of the catalog name: read when they are needed, from a file or the environment, and kept nowhere.

use std::path::PathBuf;

use runfleet_catalog::Secretly;
use runfleet_domain::Name;
use secrecy::SecretString;

/// Largest file with a secret, in bytes.
const FILE_BYTES_MAX: u64 = 8_192;

/// There is no such secret. Where it should be is in no error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoSecret(pub &'static str);

/// Where secrets of documents may be: what the operator has said, and nothing else of the worker's machine.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// Names of environment variables.
    pub variables: Vec<String>,
    /// The folder with a folder for each workspace, in which its files must lie.
    pub folder: Option<PathBuf>,
}

impl Places {
    /// The same file without detours, if it lies in the folder of the workspace.
    async fn inside(&self, workspace: &Name, file: &str) -> Option<PathBuf> {
        let folder = self.folder.as_ref()?.join(workspace.as_str());
        let folder = tokio::fs::canonicalize(folder).await.ok()?;
        let file = tokio::fs::canonicalize(folder.join(file)).await.ok()?;
        file.starts_with(&folder).then_some(file)
    }
}

/// A secret that a document of a workspace names, without the line end behind it.
pub async fn read(
    place: &Secretly,
    workspace: &Name,
    places: &Places,
) -> Result<SecretString, NoSecret> {
    let text = match place {
        Secretly::Text(text) => text.clone(),
        Secretly::Env(name) if !places.variables.contains(name) => {
            return Err(NoSecret("an environment variable is not in RUNFLEET_SECRET_VARIABLES"));
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
            let Some(file) = places.inside(workspace, file).await else {
                return Err(NoSecret(
                    "a file is not in the folder of its workspace in RUNFLEET_HTTP_SECRETS_DIR",
                ));
            };
            let size = tokio::fs::metadata(&file).await.map_or(u64::MAX, |data| data.len());
            if size > FILE_BYTES_MAX {
                return Err(NoSecret("a file is too large"));
            }
            let text = tokio::fs::read_to_string(file).await;
            text.map_err(|_| NoSecret("a file cannot be read"))?
        }
    };
    let text = text.trim_end_matches(['\r', '\n']);
    if text.is_empty() { Err(NoSecret("it is empty")) } else { Ok(SecretString::from(text)) }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    #[tokio::test]
    async fn a_secret_comes_from_where_the_operator_says_and_from_nowhere_else() {
        let dir = tempfile::tempdir().unwrap();
        let (secrets, acme) = (dir.path().join("secrets"), "acme".parse().unwrap());
        let folder = secrets.join("acme");
        for workspace in ["acme", "other"] {
            std::fs::create_dir_all(secrets.join(workspace)).unwrap();
            std::fs::write(secrets.join(workspace).join("token"), "t0ken\n").unwrap();
        }
        std::fs::write(folder.join("key"), "s3cret\n").unwrap();
        std::fs::write(dir.path().join("other"), "0ther\n").unwrap();
        let variables = vec!["PATH".to_owned(), "NOBODY_HAS_SET_THIS".to_owned()];
        let places = Places { variables, folder: Some(secrets.clone()) };
        for file in ["key".to_owned(), folder.join("key").display().to_string()] {
            let secret = read(&Secretly::File(file), &acme, &places).await.unwrap();
            assert_eq!(secret.expose_secret(), "s3cret");
        }
        assert!(read(&Secretly::Env("PATH".to_owned()), &acme, &places).await.is_ok());
        for place in [
            Secretly::File("none".to_owned()),
            Secretly::File("../other/token".to_owned()),
            Secretly::File(secrets.join("other/token").display().to_string()),
            Secretly::File("../../other".to_owned()),
            Secretly::File(dir.path().join("other").display().to_string()),
            Secretly::Env("HOME".to_owned()),
            Secretly::Env("NOBODY_HAS_SET_THIS".to_owned()),
            Secretly::Text(String::new()),
        ] {
            assert!(read(&place, &acme, &places).await.is_err(), "{place:?}");
        }
        assert!(read(&Secretly::File("key".to_owned()), &acme, &Places::default()).await.is_err());
    }
}
