//! The Lua scripts, put together and hashed once.

use redis::Script;

const SHEBANG: &str = "#!lua\n";
const PRELUDE: &str = include_str!("lua/prelude.lua");
const CLOCK: &str = include_str!("lua/clock.lua");
const SKEWED_CLOCK: &str = include_str!("lua/skewed_clock.lua");

/// One script as Redis gets it.
#[derive(Debug)]
pub(crate) struct Lua {
    pub(crate) source: String,
    pub(crate) sha1: String,
}

fn without_shebang(source: &str) -> &str {
    source.strip_prefix(SHEBANG).unwrap_or(source)
}

impl Lua {
    /// A script out of the parts that are its own; clock and prelude come first.
    fn new(own: &[&str], skew: bool) -> Self {
        let clock = if skew { SKEWED_CLOCK } else { CLOCK };
        let parts: Vec<_> =
            [clock, PRELUDE].iter().chain(own).map(|part| without_shebang(part)).collect();
        let parts = parts.join("\n");
        // The engine line makes Redis check memory before the script starts, so that it never stops half-way.
        let source = format!("{SHEBANG}{parts}");
        let sha1 = Script::new(&source).get_hash().to_owned();
        Self { source, sha1 }
    }
}

macro_rules! part {
    ($name:ident) => {
        include_str!(concat!("lua/", stringify!($name), ".lua"))
    };
}

macro_rules! scripts {
    ($($name:ident $(after $part:ident)*),* $(,)?) => {
        /// All scripts, by the name of their file.
        #[derive(Debug)]
        pub(crate) struct Scripts {
            $(pub(crate) $name: Lua,)*
        }

        impl Scripts {
            /// Puts all scripts together, with the clock that tests can move or without it.
            pub(crate) fn new(skew: bool) -> Self {
                Self { $($name: Lua::new(&[$(part!($part),)* part!($name)], skew),)* }
            }

            #[cfg(test)]
            fn bodies() -> Vec<(&'static str, &'static str)> {
                vec![$($((stringify!($part), part!($part)),)* (stringify!($name), part!($name)),)*]
            }
        }
    };
}

scripts!(
    run_start after start_look after start_count,
    start_find after start_look,
    run_get,
    run_claim,
    run_renew,
    run_checkpoint after inbox_add after messages after waits after waits_change after notes,
    run_end after inbox_add after waits after notes after end_right after end_usage after end_parent
        after chat after chat_turns after chat_below after end_chat after end_life,
    run_pause,
    run_explain,
    event_append after inbox_add,
    message_publish after inbox_add after messages,
    signal_broadcast after inbox_add,
    child_start,
    outcome_hand_over,
    job_finish after job_over,
    job_fail after job_over,
    job_begin,
    job_due,
    job_enqueue after start_look after start_count,
    job_list,
    alarms_due,
    alarms_count,
    key_show,
    key_release,
    batch_show,
    catalog_put,
    catalog_announce,
    catalog_changes,
    message_reserve after caps after deliver after waiting after message_again,
    message_mark after caps after deliver after chat,
    chat_list after chat,
    chat_read after chat,
    chat_reply after chat after chat_turns,
    chat_hold after chat_below,
    chat_settings,
    answer_append after inbox_add,
    call_hold,
    version_register,
    project_show,
    call_begin,
    call_end,
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_says_what_it_takes_and_returns() {
        for (name, body) in Scripts::bodies() {
            assert!(body.starts_with(SHEBANG), "{name}");
            for word in ["KEYS", "ARGV", "Returns"] {
                assert!(
                    body.lines().any(|line| line.starts_with("--") && line.contains(word)),
                    "{name}: {word}"
                );
            }
            assert!(body.lines().count() <= 65, "{name} is too long");
        }
    }

    #[test]
    fn a_script_starts_with_one_engine_line_and_one_clock() {
        let scripts = Scripts::new(false);
        assert!(scripts.run_start.source.starts_with(SHEBANG));
        assert_eq!(scripts.run_start.source.matches(SHEBANG).count(), 1);
        assert_eq!(scripts.run_start.source.matches("local function now_ms()").count(), 1);
        assert!(!scripts.run_start.source.contains("skew"));
        assert_ne!(scripts.run_start.sha1, Scripts::new(true).run_start.sha1);
    }
}
