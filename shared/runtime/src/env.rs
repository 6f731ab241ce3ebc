//! Settings: read from the environment once, every mistake collected, every setting remembered for the reference table.
//!
//! An empty variable counts as unset. No value appears in an error, so that a secret that was put into the wrong variable
//! does not reach a log.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use secrecy::SecretString;

use crate::secret_file;

/// What happens when a setting is absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fallback {
    /// The process does not start.
    Required,
    /// The process does without.
    Absent,
    /// This value is taken, written as the variable would be.
    Value(String),
}

/// One setting as the reference table shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The name of the variable.
    pub name: &'static str,
    /// What happens when it is absent.
    pub fallback: Fallback,
    /// Whether the value is secret. Such a setting may also be given as `<NAME>_FILE`, the path of a file that holds it.
    pub secret: bool,
    /// One line for people.
    pub help: &'static str,
}

/// Every mistake in the settings of a process. No text holds a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid configuration: {}", mistakes.join("; "))]
pub struct SettingsError {
    /// One sentence for each, naming its variable.
    pub mistakes: Vec<String>,
}

/// The settings of this process. Reading one gives `None` when it is missing or wrong; the reason is kept for
/// [`Env::finish`], so read all of them before the first `?`.
#[derive(Debug)]
pub struct Env {
    values: Values,
    reference: Vec<Setting>,
    mistakes: Vec<String>,
}

/// The variables; its own type so that `Debug` of [`Env`] never shows a value.
struct Values(BTreeMap<String, OsString>);

impl std::fmt::Debug for Values {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Env {
    /// The variables of this process, as they are now.
    pub fn from_process() -> Self {
        Self::new(
            std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
                .collect(),
        )
    }

    /// Variables out of a map, for tests and for the reference table.
    pub fn from_map<K: Into<String>, V: Into<String>>(
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        Self::new(
            variables
                .into_iter()
                .map(|(name, value)| (name.into(), OsString::from(value.into())))
                .collect(),
        )
    }

    fn new(values: BTreeMap<String, OsString>) -> Self {
        Self { values: Values(values), reference: Vec::new(), mistakes: Vec::new() }
    }

    /// A setting without which the process does not start.
    pub fn required<T>(&mut self, name: &'static str, help: &'static str) -> Option<T>
    where
        T: FromStr<Err: Display>,
    {
        self.remember(name, Fallback::Required, false, help);
        match self.read(name) {
            Ok(Some(text)) => self.parse(name, &text),
            Ok(None) => self.mistake(name, "is not set"),
            Err(problem) => self.mistake(name, problem),
        }
    }

    /// A setting that has a default.
    pub fn or<T>(&mut self, name: &'static str, default: T, help: &'static str) -> Option<T>
    where
        T: FromStr<Err: Display> + Display,
    {
        self.remember(name, Fallback::Value(default.to_string()), false, help);
        match self.read(name) {
            Ok(Some(text)) => self.parse(name, &text),
            Ok(None) => Some(default),
            Err(problem) => self.mistake(name, problem),
        }
    }

    /// A span of time in whole milliseconds; the name should end in `_MS`.
    pub fn millis_or(
        &mut self,
        name: &'static str,
        default: Duration,
        help: &'static str,
    ) -> Option<Duration> {
        let default = u64::try_from(default.as_millis()).unwrap_or(u64::MAX);
        self.or(name, default, help).map(Duration::from_millis)
    }

    /// A setting that may be absent: `Some(None)` then, `None` when it is wrong.
    pub fn optional<T>(&mut self, name: &'static str, help: &'static str) -> Option<Option<T>>
    where
        T: FromStr<Err: Display>,
    {
        self.remember(name, Fallback::Absent, false, help);
        match self.read(name) {
            Ok(Some(text)) => self.parse(name, &text).map(Some),
            Ok(None) => Some(None),
            Err(problem) => self.mistake(name, problem),
        }
    }

    /// A secret without which the process does not start: in the variable itself, or in the file that `<name>_FILE` names
    /// (at most 65,536 bytes; line ends at its end do not count).
    pub fn secret(&mut self, name: &'static str, help: &'static str) -> Option<SecretString> {
        self.remember(name, Fallback::Required, true, help);
        match self.read_secret(name) {
            Ok(Some(secret)) => Some(secret),
            Ok(None) => self.mistake(name, "is not set, and neither is its _FILE form"),
            Err(problem) => self.mistake(name, problem),
        }
    }

    /// A secret that may be absent: `Some(None)` then, `None` when it is wrong.
    pub fn optional_secret(
        &mut self,
        name: &'static str,
        help: &'static str,
    ) -> Option<Option<SecretString>> {
        self.remember(name, Fallback::Absent, true, help);
        match self.read_secret(name) {
            Ok(secret) => Some(secret),
            Err(problem) => self.mistake(name, problem),
        }
    }

    /// A relation between settings. `problem` is a sentence that names them, used when `holds` is false.
    pub fn check(&mut self, holds: bool, problem: impl Into<String>) {
        if !holds {
            self.mistakes.push(problem.into());
        }
    }

    /// Whether everything that was read is good; all mistakes in the order of reading if not.
    pub fn finish(&self) -> Result<(), SettingsError> {
        if self.mistakes.is_empty() {
            return Ok(());
        }
        Err(SettingsError { mistakes: self.mistakes.clone() })
    }

    /// Every setting that was read, in order, each once.
    pub fn reference(&self) -> &[Setting] {
        &self.reference
    }

    /// Names of variables that start with `prefix` and are not settings of this process: perhaps misspelt ones.
    pub fn unread(&self, prefix: &str) -> Vec<&str> {
        let known = |name: &str| {
            self.reference.iter().any(|setting| {
                let file = setting.secret.then(|| name.strip_suffix("_FILE")).flatten();
                setting.name == name || file == Some(setting.name)
            })
        };
        self.values
            .0
            .keys()
            .map(String::as_str)
            .filter(|name| name.starts_with(prefix) && !known(name))
            .collect()
    }

    fn remember(
        &mut self,
        name: &'static str,
        fallback: Fallback,
        secret: bool,
        help: &'static str,
    ) {
        if !self.reference.iter().any(|setting| setting.name == name) {
            self.reference.push(Setting { name, fallback, secret, help });
        }
    }

    fn read(&self, name: &str) -> Result<Option<String>, &'static str> {
        match self.values.0.get(name) {
            None => Ok(None),
            Some(value) if value.is_empty() => Ok(None),
            Some(value) => {
                value.to_str().map(|text| Some(text.to_owned())).ok_or("is not UTF-8 text")
            }
        }
    }

    fn read_secret(&self, name: &str) -> Result<Option<SecretString>, String> {
        let direct = self.read(name)?;
        let file = self
            .read(&format!("{name}_FILE"))
            .map_err(|problem| format!("is given as a file whose name {problem}"))?;
        match (direct, file) {
            (Some(_), Some(_)) => Err("is set twice, as itself and as its _FILE form".to_owned()),
            (Some(text), None) => Ok(Some(SecretString::from(text))),
            (None, Some(path)) => secret_file::read(&path).map(Some),
            (None, None) => Ok(None),
        }
    }

    fn parse<T: FromStr<Err: Display>>(&mut self, name: &str, text: &str) -> Option<T> {
        match text.parse() {
            Ok(value) => Some(value),
            Err(error) => {
                // Some parsers repeat what they were given.
                let reason = error.to_string();
                let reason =
                    if reason.contains(text) { "of the wrong form".to_owned() } else { reason };
                self.mistake(name, format!("is not valid: {reason}"))
            }
        }
    }

    fn mistake<T>(&mut self, name: &str, problem: impl Display) -> Option<T> {
        self.mistakes.push(format!("{name} {problem}"));
        None
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use secrecy::ExposeSecret;

    use super::*;

    fn mistakes(env: &Env) -> Vec<String> {
        env.finish().unwrap_err().mistakes
    }

    #[test]
    fn a_setting_is_read_or_has_its_default_and_empty_means_unset() {
        let mut env = Env::from_map([("A", "7"), ("B", ""), ("C_MS", "1500")]);
        assert_eq!(env.required::<u32>("A", ""), Some(7));
        assert_eq!(env.or("B", 3_u32, ""), Some(3));
        assert_eq!(env.millis_or("C_MS", Duration::ZERO, ""), Some(Duration::from_millis(1500)));
        assert_eq!(env.millis_or("D_MS", Duration::from_secs(2), ""), Some(Duration::from_secs(2)));
        assert_eq!(env.optional::<u32>("E", ""), Some(None));
        assert_eq!(env.optional::<u32>("A", ""), Some(Some(7)));
        assert_eq!(env.finish(), Ok(()));
    }

    #[test]
    fn all_mistakes_are_told_at_once_and_none_repeats_a_value() {
        let mut env = Env::from_map([
            ("A", "s3cret"),
            ("C_MS", "-5"),
            ("F", "s3cret"),
            ("F_FILE", "/s3cret"),
        ]);
        assert_eq!(env.required::<u32>("A", ""), None);
        assert_eq!(env.required::<String>("B", ""), None);
        assert_eq!(env.millis_or("C_MS", Duration::ZERO, ""), None);
        env.check(1 > 2, "C_MS must be longer than D_MS");
        assert!(env.secret("E", "").is_none() && env.secret("F", "").is_none());
        assert_eq!(
            mistakes(&env),
            [
                "A is not valid: invalid digit found in string",
                "B is not set",
                "C_MS is not valid: invalid digit found in string",
                "C_MS must be longer than D_MS",
                "E is not set, and neither is its _FILE form",
                "F is set twice, as itself and as its _FILE form",
            ]
        );
        assert!(!format!("{env:?}").contains("s3cret"));
    }

    #[test]
    fn a_parser_that_quotes_its_input_is_not_believed() {
        #[derive(Debug)]
        struct Quoting;
        impl FromStr for Quoting {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                Err(format!("what is {text}?"))
            }
        }
        let mut env = Env::from_map([("A", "s3cret")]);
        assert!(env.required::<Quoting>("A", "").is_none());
        assert_eq!(mistakes(&env), ["A is not valid: of the wrong form"]);
    }

    #[test]
    fn a_secret_may_stand_in_a_file() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"amqp://u:p@host\r\n").unwrap();
        let mut env = Env::from_map([("A_FILE", file.path().to_str().unwrap())]);
        assert_eq!(env.secret("A", "").unwrap().expose_secret(), "amqp://u:p@host");
        assert!(env.optional_secret("B", "").unwrap().is_none());
        assert_eq!(env.finish(), Ok(()));
    }

    #[test]
    fn a_bad_secret_file_is_named_without_its_content() {
        let dir = tempfile::tempdir().unwrap();
        let check = |name: &str, content: &[u8], problem: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, content).unwrap();
            let mut env = Env::from_map([("A_FILE", path.to_str().unwrap())]);
            assert!(env.secret("A", "").is_none());
            assert_eq!(
                mistakes(&env),
                [format!("A points to {}, which {problem}", path.display())]
            );
        };
        check("empty", b"\n", "is empty");
        check("binary", b"\xff\xfe", "is not UTF-8 text");
        check("large", &vec![b'a'; 65_537], "has more than 65536 bytes");
        let mut env = Env::from_map([("A_FILE", "/nowhere/at/all")]);
        assert!(env.secret("A", "").is_none());
        assert!(mistakes(&env)[0].starts_with("A cannot be read from /nowhere/at/all: "));
    }

    #[test]
    fn the_reference_lists_each_setting_once_in_the_order_of_reading() {
        let mut env =
            Env::from_map([("RUNFLEET_A_FILE", ""), ("RUNFLEET_TYPO", "1"), ("OTHER", "1")]);
        env.secret("RUNFLEET_A", "The broker.");
        env.or("RUNFLEET_B", 16_u16, "Messages at once.");
        env.or("RUNFLEET_B", 17_u16, "Read again.");
        let names: Vec<_> = env.reference().iter().map(|setting| setting.name).collect();
        assert_eq!(names, ["RUNFLEET_A", "RUNFLEET_B"]);
        assert_eq!(env.reference()[1].fallback, Fallback::Value("16".into()));
        assert!(env.reference()[0].secret && env.reference()[0].fallback == Fallback::Required);
        assert_eq!(env.unread("RUNFLEET_"), ["RUNFLEET_TYPO"]);
    }
}
