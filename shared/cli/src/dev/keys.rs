//! The development key pair: made once per state directory, readable by its owner only.

use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use secrecy::ExposeSecret;

/// Where the two halves are.
pub(crate) struct Keys {
    /// The private key, to mint tokens.
    pub(crate) signing: PathBuf,
    /// The key set with the public key, for start-intake.
    pub(crate) set: PathBuf,
}

/// Name of the development key in the key set.
pub(crate) const KID: &str = "development";

/// Finds the key pair under `dir`, or makes it.
pub(crate) fn prepare(dir: &Path) -> Result<Keys> {
    let dir = dir.join("keys");
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&dir)
        .context("making the directory for keys")?;
    let keys = Keys { signing: dir.join("signing.pem"), set: dir.join("token-keys.json") };
    if !(keys.signing.is_file() && keys.set.is_file()) {
        let (private, public) =
            runfleet_identity::generate(KID).context("making the development key pair")?;
        write(&keys.signing, private.expose_secret())?;
        write(&keys.set, &public)?;
    }
    Ok(keys)
}

/// Writes a file that only its owner can read, whole or not at all.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    let new = path.with_extension("new");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)
        .with_context(|| format!("writing {}", new.display()))?;
    file.write_all(text.as_bytes()).with_context(|| format!("writing {}", new.display()))?;
    std::fs::rename(&new, path).with_context(|| format!("writing {}", path.display()))
}
