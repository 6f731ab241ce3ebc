//! What must hold for everything that a version declares. Collects all mistakes.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use runfleet_domain::{JobKey, Name};
use serde_json::{Value, json};

use super::{ActionDeclared, JobDeclared, RegisterVersion, ToolDeclared};
use crate::error::ErrorBody;

/// What a version is, as a phrase that completes "`field` …".
pub(super) const VERSION: &str =
    "must be 1 to 64 characters out of letters, digits, `.`, `_`, `+` and `-`";

/// One attempt of a job, in milliseconds.
const JOB_TIMEOUT_MS: RangeInclusive<u32> = 1_000..=60_000;

/// Attempts of a job, the first included.
const JOB_ATTEMPTS: RangeInclusive<u32> = 1..=10;

/// One call of a trigger, in milliseconds.
const TRIGGER_TIMEOUT_MS: RangeInclusive<u32> = 100..=3_000;

/// One call of an action, in milliseconds.
const ACTION_TIMEOUT_MS: RangeInclusive<u32> = 1_000..=8_000;

const TOOL_SECONDS: RangeInclusive<u32> = 1..=600;
const VERSION_CHARS_MAX: usize = 64;
const DISPLAY_CHARS_MAX: usize = 250;
const NAME_CHARS_MAX: usize = 128;
const ACTION_KEY_CHARS_MAX: usize = 64;
const CRON_CHARS_MAX: usize = 128;
const ZONE_CHARS_MAX: usize = 64;
const DESCRIPTION_BYTES_MAX: usize = 8_192;
const SCHEMA_BYTES_MAX: usize = 16_384;
const JOBS_MAX: usize = 50;
const NAMES_MAX: usize = 200;
const ACTIONS_MAX: usize = 50;
const TOOLS_MAX: usize = 64;

/// Mistakes that are told.
const PROBLEMS_MAX: usize = 20;

/// Whether a text can be the version of a project.
pub fn is_version(text: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
    (1..=VERSION_CHARS_MAX).contains(&text.len()) && text.bytes().all(good)
}

/// Whether a text can name a script, a route or a trigger.
pub(crate) fn is_call_name(text: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte);
    (1..=NAME_CHARS_MAX).contains(&text.len())
        && text.bytes().all(good)
        && text.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric)
}

/// Whether a text can be the key of an action.
pub(crate) fn is_action_key(text: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=ACTION_KEY_CHARS_MAX).contains(&text.len())
        && text.bytes().all(good)
        && text.as_bytes().first().is_some_and(u8::is_ascii_lowercase)
}

#[derive(Default)]
struct Mistakes(Vec<(String, String)>);

impl Mistakes {
    fn add(&mut self, field: impl Into<String>, problem: impl Into<String>) {
        self.0.push((field.into(), problem.into()));
    }

    fn must(&mut self, good: bool, field: &str, problem: &str) {
        if !good {
            self.add(field, problem);
        }
    }

    fn within(&mut self, field: String, value: Option<u32>, range: &RangeInclusive<u32>) {
        if value.is_some_and(|value| !range.contains(&value)) {
            let (start, end) = (range.start(), range.end());
            self.add(field, format!("must be a whole number from {start} to {end}"));
        }
    }

    fn display(&mut self, field: String, text: Option<&String>) {
        let good = |text: &String| {
            (1..=DISPLAY_CHARS_MAX).contains(&text.chars().count())
                && !text.chars().any(char::is_control)
        };
        if text.is_some_and(|text| !good(text)) {
            self.add(field, "must have 1 to 250 characters and no control characters");
        }
    }

    fn at_most(&mut self, field: &str, count: usize, max: usize) {
        if count > max {
            self.add(field, format!("must have at most {max} entries, not {count}"));
        }
    }

    /// Names that are given twice.
    fn once<'a>(&mut self, list: &str, field: &str, names: impl Iterator<Item = &'a str>) {
        let mut seen = BTreeSet::new();
        for (index, name) in names.enumerate() {
            if !seen.insert(name.to_ascii_lowercase()) {
                let problem = "is given twice (upper and lower case count as equal)";
                self.add(format!("{list}[{index}]{field}"), problem);
            }
        }
    }

    fn told(self) -> Result<(), ErrorBody> {
        let Some((field, problem)) = self.0.first() else { return Ok(()) };
        let told: Vec<Value> = self
            .0
            .iter()
            .take(PROBLEMS_MAX)
            .map(|(field, problem)| json!({"field": field, "problem": problem}))
            .collect();
        Err(ErrorBody::field(field, problem.as_str()).with("problems", told))
    }
}

impl RegisterVersion {
    /// Checks everything.
    pub(super) fn check(&self) -> Result<(), ErrorBody> {
        let mut mistakes = Mistakes::default();
        mistakes.must(is_version(&self.version), "version", VERSION);
        mistakes.at_most("jobs", self.jobs.len(), JOBS_MAX);
        for (index, job) in self.jobs.iter().enumerate() {
            check_job(&mut mistakes, &format!("jobs[{index}]"), job);
        }
        mistakes.once("jobs", ".key", self.jobs.iter().map(|job| job.key.as_str()));
        for (list, names) in [("scripts", &self.scripts), ("routes", &self.routes)] {
            mistakes.at_most(list, names.len(), NAMES_MAX);
            for (index, name) in names.iter().enumerate() {
                call_name(&mut mistakes, &format!("{list}[{index}]"), name);
            }
            mistakes.once(list, "", names.iter().map(String::as_str));
        }
        mistakes.at_most("triggers", self.triggers.len(), NAMES_MAX);
        for (index, trigger) in self.triggers.iter().enumerate() {
            let field = |name| format!("triggers[{index}].{name}");
            call_name(&mut mistakes, &field("key"), &trigger.key);
            mistakes.within(field("timeoutMs"), trigger.timeout_ms, &TRIGGER_TIMEOUT_MS);
        }
        mistakes.once("triggers", ".key", self.triggers.iter().map(|one| one.key.as_str()));
        mistakes.at_most("actions", self.actions.len(), ACTIONS_MAX);
        for (index, action) in self.actions.iter().enumerate() {
            check_action(&mut mistakes, index, action);
        }
        mistakes.once("actions", ".key", self.actions.iter().map(|one| one.key.as_str()));
        mistakes.at_most("tools", self.tools.len(), TOOLS_MAX);
        for (index, tool) in self.tools.iter().enumerate() {
            check_tool(&mut mistakes, &format!("tools[{index}]"), tool);
        }
        mistakes.once("tools", ".name", self.tools.iter().map(|one| one.name.as_str()));
        mistakes.told()
    }
}

fn call_name(mistakes: &mut Mistakes, field: &str, name: &str) {
    let rule =
        "must be 1 to 128 letters, digits, `.`, `_`, `/` and `-`, beginning with a letter or digit";
    mistakes.must(is_call_name(name), field, rule);
}

fn check_job(mistakes: &mut Mistakes, at: &str, job: &JobDeclared) {
    if let Err(error) = job.key.parse::<JobKey>() {
        mistakes.add(format!("{at}.key"), error.to_string());
    }
    mistakes.display(format!("{at}.name"), job.name.as_ref());
    mistakes.within(format!("{at}.timeoutMs"), job.timeout_ms, &JOB_TIMEOUT_MS);
    mistakes.within(format!("{at}.maxAttempts"), job.max_attempts, &JOB_ATTEMPTS);
    let Some(schedule) = &job.schedule else { return };
    let spaces = schedule.cron.split_ascii_whitespace();
    let normal = spaces.collect::<Vec<_>>().join(" ");
    mistakes.must(
        normal.len() <= CRON_CHARS_MAX && normal.split(' ').count() == 5,
        &format!("{at}.schedule.cron"),
        "must have five fields and at most 128 characters",
    );
    let zone = schedule.time_zone.as_deref().unwrap_or("UTC");
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"_/+-".contains(&byte);
    mistakes.must(
        (1..=ZONE_CHARS_MAX).contains(&zone.len()) && zone.bytes().all(good),
        &format!("{at}.schedule.timeZone"),
        "must be the name of a time zone, such as `Europe/Berlin`",
    );
}

fn check_action(mistakes: &mut Mistakes, index: usize, action: &ActionDeclared) {
    let field = |name| format!("actions[{index}].{name}");
    let rule = "must be 1 to 64 small letters, digits and `_`, beginning with a letter";
    mistakes.must(is_action_key(&action.key), &field("key"), rule);
    mistakes.within(field("timeoutMs"), action.timeout_ms, &ACTION_TIMEOUT_MS);
}

fn check_tool(mistakes: &mut Mistakes, at: &str, tool: &ToolDeclared) {
    if let Err(error) = tool.name.parse::<Name>() {
        mistakes.add(format!("{at}.name"), error.to_string());
    }
    mistakes.display(format!("{at}.title"), tool.title.as_ref());
    let size = tool.description.len();
    mistakes.must(
        (1..=DESCRIPTION_BYTES_MAX).contains(&size),
        &format!("{at}.description"),
        "must have 1 to 8192 bytes",
    );
    mistakes.within(format!("{at}.timeoutSeconds"), tool.timeout_seconds, &TOOL_SECONDS);
    let Some(schema) = &tool.schema else { return };
    let field = format!("{at}.schema");
    let bytes = serde_json::to_string(schema).map_or(usize::MAX, |text| text.len());
    mistakes.must(bytes <= SCHEMA_BYTES_MAX, &field, "must have at most 16384 bytes");
    let object = schema.get("type") == Some(&Value::from("object"));
    mistakes.must(object, &field, "must have the type `object` at its root");
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;

    use super::*;

    fn parse(value: &Value) -> Result<RegisterVersion, ErrorBody> {
        RegisterVersion::parse(&to_raw_value(value).unwrap())
    }

    fn problems(value: &Value) -> Vec<String> {
        let error = parse(value).unwrap_err();
        let list = error.details["problems"].as_array().unwrap();
        list.iter().map(|one| one["field"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_version_may_declare_nothing() {
        let declared = parse(&json!({"version": "1.4.0+3f2a"})).unwrap();
        assert!(declared.jobs.is_empty() && declared.tools.is_empty());
    }

    /// CG-231
    #[test]
    fn all_mistakes_of_a_version_are_told_by_their_field() {
        let wrong = json!({
            "version": "s3cret version",
            "jobs": [
                {"key": "nightly", "timeoutMs": 60_001, "maxAttempts": 0},
                {"key": "NIGHTLY", "schedule": {"cron": "* * * *", "timeZone": "no zone"}},
                {"key": "1st", "name": ""},
            ],
            "scripts": ["ok/one", "../s3cret", "OK/one"],
            "triggers": [{"key": "lead.changed", "timeoutMs": 99}],
            "actions": [{"key": "Close", "access": "write", "timeoutMs": 8_001}],
            "tools": [{"name": "a b", "description": "", "schema": {"type": "string"}, "timeoutSeconds": 0}],
        });
        assert_eq!(
            problems(&wrong),
            [
                "version",
                "jobs[0].timeoutMs",
                "jobs[0].maxAttempts",
                "jobs[1].schedule.cron",
                "jobs[1].schedule.timeZone",
                "jobs[2].key",
                "jobs[2].name",
                "jobs[1].key",
                "scripts[1]",
                "scripts[2]",
                "triggers[0].timeoutMs",
                "actions[0].key",
                "actions[0].timeoutMs",
                "tools[0].name",
                "tools[0].description",
                "tools[0].timeoutSeconds",
                "tools[0].schema",
            ]
        );
        let error = parse(&wrong).unwrap_err();
        assert_eq!(error.details["field"], "version");
        assert!(!serde_json::to_string(&error).unwrap().contains("s3cret"));
    }

    #[test]
    fn lists_are_bounded_and_no_more_than_twenty_mistakes_are_told() {
        let names: Vec<String> = (0..=NAMES_MAX).map(|number| format!("s{number}")).collect();
        assert_eq!(problems(&json!({"version": "1", "scripts": names})), ["scripts"]);
        let wrong: Vec<&str> = vec!["/"; 60];
        assert_eq!(problems(&json!({"version": "1", "routes": wrong})).len(), PROBLEMS_MAX);
    }

    #[test]
    fn what_is_not_known_is_refused_with_its_place() {
        let error = parse(&json!({"version": "1", "jobs": [{"key": "a", "retries": 3}]}));
        assert_eq!(error.unwrap_err().details["field"], "jobs[0].retries");
        let error = parse(&json!({"version": "1", "actions": [{"key": "a", "access": "all"}]}));
        assert_eq!(error.unwrap_err().details["field"], "actions[0].access");
    }
}
