//! `runfleet settings`: the reference table, from the same code that reads the settings.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use runfleet_runtime::{Fallback, Setting, reference_of};

/// All settings as a Markdown table. A test compares the README with it.
pub(crate) fn table() -> String {
    let workers = [
        ("start-intake", reference_of(runfleet_start_intake::Config::from_env)),
        ("process-runner", reference_of(runfleet_process_runner::Config::from_env)),
        ("agent-runner", reference_of(runfleet_agent_runner::Config::from_env)),
        ("delivery", reference_of(runfleet_delivery::Config::from_env)),
        ("completion-dispatcher", reference_of(runfleet_completion_dispatcher::Config::from_env)),
    ];
    let mut settings: BTreeMap<&str, (Setting, Vec<&str>)> = BTreeMap::new();
    for (worker, reference) in workers {
        for setting in reference {
            settings.entry(setting.name).or_insert_with(|| (setting, Vec::new())).1.push(worker);
        }
    }
    let mut table =
        "| setting | default | workers | meaning |\n| --- | --- | --- | --- |\n".to_owned();
    for (name, (setting, workers)) in settings {
        let default = match &setting.fallback {
            Fallback::Required => "required".to_owned(),
            Fallback::Absent => "–".to_owned(),
            Fallback::Value(value) => format!("`{value}`"),
        };
        let who = if workers.len() == 5 { "all".to_owned() } else { workers.join(", ") };
        let file = if setting.secret { " Also as a file: the same name with `_FILE`." } else { "" };
        let _ = writeln!(table, "| `{name}` | {default} | {who} | {}{file} |", setting.help);
    }
    table
}

pub(crate) fn print() {
    crate::out::line(table().trim_end());
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_readme_has_the_table_of_settings() {
        let readme = include_str!("../../../README.md");
        let table = super::table();
        assert!(
            readme.contains(&table),
            "put the output of `runfleet settings` into README.md:\n{table}"
        );
    }
}
