//! Secrets of workspaces: `{{secrets.NAME}}` in what a call is made of is found here, read from the files of the workspace when
//! the call is made, and put in for that call alone. Nothing of them is stored, logged or told.
//!
//! It must not know what is called, nor read a file outside the folder of the workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use runfleet_domain::Name;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};
use tokio::io::AsyncReadExt;

/// Different secrets in one call.
const SECRETS_MAX: usize = 16;

/// Places in one call where a secret stands.
const USES_MAX: usize = 64;

/// Largest secret, in bytes.
const SECRET_BYTES_MAX: u64 = 8_192;

/// Longest name, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// There is no such secret. Tells neither name nor file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing;

impl Missing {
    /// The code that whoever needs it fails with.
    pub const CODE: &'static str = "SECRET_MISSING";
}

/// Where secrets are: a folder with one folder for each workspace and one file for each secret.
#[derive(Debug, Clone)]
pub struct Secrets {
    folder: Option<PathBuf>,
}

impl Secrets {
    /// Without a folder there are no secrets.
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self { folder }
    }

    /// One secret of `workspace`, 8 KiB at most, without the line end behind it.
    pub async fn get(&self, workspace: &Name, name: &str) -> Result<SecretString, Missing> {
        let folder = self.folder.as_ref().filter(|_| is_name(name)).ok_or(Missing)?;
        read(&folder.join(workspace.as_str()).join(name)).await.ok_or(Missing)
    }

    /// The variables with the secrets of `workspace` in the texts of those that `places` names. At most 16 secrets and 64
    /// uses of them in one call.
    pub async fn put_in(
        &self,
        workspace: &Name,
        places: &[&str],
        mut variables: Map<String, Value>,
    ) -> Result<Map<String, Value>, Missing> {
        let names = names(places, &variables)?;
        if names.is_empty() {
            return Ok(variables);
        }
        let mut found = BTreeMap::new();
        for name in names {
            let secret = self.get(workspace, &name).await?;
            found.insert(name, secret);
        }
        for (name, value) in &mut variables {
            if places.contains(&name.as_str()) {
                each_text(value, &mut |text| fill(text, &found));
            }
        }
        Ok(variables)
    }
}

async fn read(file: &Path) -> Option<SecretString> {
    let mut text = String::new();
    let file = tokio::fs::File::open(file).await.ok()?;
    file.take(SECRET_BYTES_MAX + 1).read_to_string(&mut text).await.ok()?;
    let fits = u64::try_from(text.len()).is_ok_and(|size| size <= SECRET_BYTES_MAX);
    fits.then(|| SecretString::from(text.trim_end_matches(['\r', '\n'])))
}

/// A text in which secrets are looked for is cut into these.
enum Piece<'a> {
    Text(&'a str),
    /// What stands where a name should.
    Secret(&'a str),
}

fn pieces(mut text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut searched = 0;
    while let Some(at) = text[searched..].find("{{").map(|at| at + searched) {
        let inside = &text[at + 2..];
        let name =
            inside.trim_start().strip_prefix("secrets.").and_then(|rest| rest.split_once("}}"));
        match name {
            Some((name, rest)) => {
                pieces.extend([Piece::Text(&text[..at]), Piece::Secret(name.trim_end())]);
                (text, searched) = (rest, 0);
            }
            None => searched = at + 1,
        }
    }
    pieces.push(Piece::Text(text));
    pieces
}

/// Whether a secret can have this name: a file name that leads nowhere else, of at most 64 bytes.
pub fn is_name(name: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(good) && !name.starts_with('.')
}

fn names(places: &[&str], variables: &Map<String, Value>) -> Result<BTreeSet<String>, Missing> {
    let (mut names, mut uses, mut wrong) = (BTreeSet::new(), 0, false);
    let mut look = |text: &str| {
        for piece in pieces(text) {
            if let Piece::Secret(name) = piece {
                uses += 1;
                wrong |= !is_name(name);
                if names.len() <= SECRETS_MAX {
                    names.insert(name.to_owned());
                }
            }
        }
    };
    for name in places {
        if let Some(value) = variables.get(*name) {
            see_texts(value, &mut look);
        }
    }
    if wrong || uses > USES_MAX || names.len() > SECRETS_MAX { Err(Missing) } else { Ok(names) }
}

fn see_texts(value: &Value, look: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => look(text),
        Value::Array(items) => items.iter().for_each(|item| see_texts(item, look)),
        Value::Object(entries) => entries.values().for_each(|value| see_texts(value, look)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn each_text(value: &mut Value, change: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, change)),
        Value::Object(entries) => entries.values_mut().for_each(|value| each_text(value, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What a secret holds is not looked at again.
fn fill(text: &mut String, found: &BTreeMap<String, SecretString>) {
    let mut filled = String::new();
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => filled.push_str(text),
            Piece::Secret(name) => {
                filled.push_str(found.get(name).map_or("", |secret| secret.expose_secret()));
            }
        }
    }
    *text = filled;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PLACES: [&str; 4] = ["url", "headers", "authentication", "body"];

    async fn put_in(folder: Option<&Path>, variables: Value) -> Result<Value, Missing> {
        let secrets = Secrets::new(folder.map(Path::to_owned));
        let variables = variables.as_object().unwrap().clone();
        secrets.put_in(&"acme".parse().unwrap(), &PLACES, variables).await.map(Value::Object)
    }

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("acme/KEY", "k1\n"),
            ("acme/ODD", "{{secrets.KEY}}"),
            ("acme/LONG", &"x".repeat(8_193)),
            ("other/THEIRS", "t"),
        ] {
            let file = folder.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        folder
    }

    #[tokio::test]
    async fn secrets_are_put_into_what_is_sent_and_nowhere_else() {
        let folder = folder();
        let variables = json!({
            "url": "https://a.example/{{secrets.KEY}}/{{ secrets.KEY }}?{{x}}={{secrets.KEY",
            "headers": {"x": "Key {{secrets.KEY}}", "{{secrets.KEY}}": 1},
            "authentication": {"token": "{{secrets.KEY}}"},
            "body": {"a": [{"b": "{{{{secrets.ODD}}"}]},
            "other": "{{secrets.NONE}}",
        });
        let expected = json!({
            "url": "https://a.example/k1/k1?{{x}}={{secrets.KEY",
            "headers": {"x": "Key k1", "{{secrets.KEY}}": 1},
            "authentication": {"token": "k1"},
            "body": {"a": [{"b": "{{{{secrets.KEY}}"}]},
            "other": "{{secrets.NONE}}",
        });
        assert_eq!(put_in(Some(folder.path()), variables).await, Ok(expected));
    }

    #[tokio::test]
    async fn what_is_not_there_or_not_of_the_workspace_is_missing() {
        let folder = folder();
        for name in ["NONE", "THEIRS", "../other/THEIRS", "..", ".", "", "LONG", "a/b", "K Y"] {
            let variables = json!({"url": format!("{{{{secrets.{name}}}}}")});
            assert_eq!(put_in(Some(folder.path()), variables).await, Err(Missing), "{name}");
        }
        let variables = json!({"url": "{{secrets.KEY}}"});
        assert_eq!(put_in(None, variables).await, Err(Missing));
        assert!(put_in(None, json!({"url": "{{secret.KEY}} {{"})).await.is_ok());
    }

    #[tokio::test]
    async fn one_secret_is_got_by_its_name_and_never_shown() {
        let folder = folder();
        let secrets = Secrets::new(Some(folder.path().to_owned()));
        let acme = "acme".parse().unwrap();
        let key = secrets.get(&acme, "KEY").await.unwrap();
        assert_eq!((key.expose_secret(), format!("{key:?}").contains("k1")), ("k1", false));
        for name in ["NONE", "../other/THEIRS", "", ".KEY"] {
            assert_eq!(secrets.get(&acme, name).await.map(|_| ()), Err(Missing), "{name}");
        }
    }

    #[tokio::test]
    async fn there_are_only_so_many_secrets_in_one_call() {
        let folder = folder();
        for (uses, fits) in [(USES_MAX, true), (USES_MAX + 1, false)] {
            let variables = json!({"body": "{{secrets.KEY}}".repeat(uses)});
            assert_eq!(put_in(Some(folder.path()), variables).await.is_ok(), fits, "{uses}");
        }
        let many: Vec<_> = (0..=SECRETS_MAX).map(|n| format!("{{{{secrets.K{n}}}}}")).collect();
        assert_eq!(names(&PLACES, json!({"body": many}).as_object().unwrap()), Err(Missing));
    }
}
