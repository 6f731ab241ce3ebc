//! Reads a secret from the file that `<NAME>_FILE` points to. Never puts what it read into an error.

use std::fs::File;
use std::io::Read;

use secrecy::SecretString;

/// Longest secret in bytes; a larger file is not a secret but a mistake.
const BYTES_MAX: u64 = 65_536;

/// The text of the file without line ends at its end, or a phrase that completes "`NAME` …".
pub(crate) fn read(path: &str) -> Result<SecretString, String> {
    let failed = |error: std::io::Error| format!("cannot be read from {path}: {error}");
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(failed)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(format!("points to {path}, which has more than {BYTES_MAX} bytes"));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| format!("points to {path}, which is not UTF-8 text"))?;
    let text = text.trim_end_matches(['\r', '\n']);
    if text.is_empty() {
        return Err(format!("points to {path}, which is empty"));
    }
    Ok(SecretString::from(text))
}
