//! The keys that may sign execution tokens, from a file that is read again when it changes: a new key is added beside the old
//! one, tokens are signed with it, and the old one is taken away when the last of its tokens has expired. No restart.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use runfleet_identity::Verifier;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// How often the file is looked at.
const EVERY: Duration = Duration::from_secs(2);

/// Largest key set that is read, in bytes.
const BYTES_MAX: u64 = 262_144;

/// The verifier for the newest key set that could be read.
pub(crate) type Keys = watch::Receiver<Arc<Verifier>>;

/// Reads the key set for the first time.
pub(crate) fn open(file: &Path) -> anyhow::Result<(KeySet, Keys)> {
    let text = read(file)?;
    let verifier = Verifier::new(&text).with_context(|| format!("reading {}", file.display()))?;
    let (sender, keys) = watch::channel(Arc::new(verifier));
    Ok((KeySet { file: file.to_owned(), text, sender }, keys))
}

fn read(file: &Path) -> anyhow::Result<String> {
    let doing = || format!("reading {}", file.display());
    let size = std::fs::metadata(file).with_context(doing)?.len();
    anyhow::ensure!(size <= BYTES_MAX, "{} is larger than {BYTES_MAX} bytes", file.display());
    std::fs::read_to_string(file).with_context(doing)
}

/// Follows the file.
pub(crate) struct KeySet {
    file: PathBuf,
    text: String,
    sender: watch::Sender<Arc<Verifier>>,
}

impl KeySet {
    /// Looks at the file again and again. A file that cannot be used changes nothing: the keys that were good stay.
    pub(crate) async fn follow(mut self, shutdown: CancellationToken) {
        while shutdown.run_until_cancelled(tokio::time::sleep(EVERY)).await.is_some() {
            match self.look() {
                Ok(true) => tracing::info!(file = %self.file.display(), "the key set has changed"),
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(
                        error = format!("{error:#}"),
                        "the key set cannot be used, the old one stays"
                    );
                }
            }
        }
    }

    fn look(&mut self) -> anyhow::Result<bool> {
        let text = read(&self.file)?;
        if text == self.text {
            return Ok(false);
        }
        let verifier = Verifier::new(&text)?;
        self.sender.send_replace(Arc::new(verifier));
        self.text = text;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use runfleet_contracts::Claims;
    use runfleet_identity::{Signer, generate};
    use serde_json::{Value, json};

    use super::*;

    fn claims() -> Claims {
        serde_json::from_value(json!({
            "aud": "runfleet", "exp": 1, "iat": 0, "workspace": "w", "project": "p", "execution": "e",
            "source": "script", "user": null, "hops": 1,
        }))
        .unwrap()
    }

    #[test]
    fn keys_are_rotated_by_their_id_and_a_broken_file_changes_nothing() {
        let dir = std::env::temp_dir().join(format!("runfleet-keys-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join("keys.json");
        let (old, old_set) = generate("old").unwrap();
        let (new, new_set) = generate("new").unwrap();
        let token = |kid: &str, key| Signer::new(kid, key).unwrap().mint(&claims()).unwrap();
        let (old, new) = (token("old", &old), token("new", &new));
        std::fs::write(&file, &old_set).unwrap();
        let (mut set, keys) = open(&file).unwrap();
        let believes = |token| keys.borrow().verify(token, 0).is_ok();
        assert!(believes(&old) && !believes(&new));

        let keys_of = |text: &str| serde_json::from_str::<Value>(text).unwrap()["keys"][0].clone();
        let both = json!({"keys": [keys_of(&old_set), keys_of(&new_set)]});
        std::fs::write(&file, both.to_string()).unwrap();
        assert!(set.look().unwrap());
        assert!(believes(&old) && believes(&new));

        std::fs::write(&file, "{").unwrap();
        assert!(set.look().is_err());
        assert!(believes(&old) && believes(&new));

        std::fs::write(&file, &new_set).unwrap();
        assert!(set.look().unwrap() && !set.look().unwrap());
        assert!(!believes(&old) && believes(&new));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
