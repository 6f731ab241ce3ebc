//! Checks on the repository itself: promises that files make and that nobody would notice breaking.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

pub(crate) fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All files below `dir` with one of the endings, relative to the root; nothing built, nothing installed.
pub(crate) fn files(dir: &str, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root().join(dir)];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).unwrap().map(Result::unwrap) {
            let path = entry.path();
            let name = entry.file_name().into_string().unwrap();
            if path.is_dir() {
                if !["target", ".git", ".runfleet", "node_modules"].contains(&name.as_str()) {
                    open.push(path);
                }
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                found.push(path.strip_prefix(root()).unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

pub(crate) fn source_files() -> Vec<PathBuf> {
    ["shared", "workers", "tests"].into_iter().flat_map(|dir| files(dir, &[".rs"])).collect()
}

/// Names in the `[dependencies]` part of a manifest.
fn dependencies(manifest: &Path) -> BTreeSet<String> {
    let text = read(manifest);
    let part = text.split("[dependencies]").nth(1).unwrap_or_default();
    let part = part.split("\n[").next().unwrap_or_default();
    part.lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name.trim().to_owned())
        .collect()
}

#[test]
fn one_crate_speaks_amqp_one_redis_and_one_http() {
    // The bare relay of the benchmark is the yardstick and must not run through our own crate.
    let allowed = [
        ("lapin", vec!["shared/broker", "tests"]),
        ("redis", vec!["shared/store"]),
        ("deadpool-redis", vec!["shared/store"]),
        // The broker's management API is for operators and tests, who name its address themselves; the tests of the fleet ask
        // the workers themselves. Everything else goes through the guarded client.
        ("reqwest", vec!["shared/http", "shared/broker", "tests"]),
    ];
    for manifest in files(".", &["Cargo.toml"]) {
        let owner =
            manifest.parent().unwrap().to_str().unwrap().trim_start_matches("./").to_owned();
        let used = dependencies(&manifest);
        for (library, owners) in &allowed {
            assert!(
                !used.contains(*library) || owners.contains(&owner.as_str()),
                "{owner} depends on {library}"
            );
        }
    }
}

#[test]
fn the_rules_know_no_io() {
    for (owner, banned) in [
        (
            "shared/domain",
            vec!["tokio", "tracing", "lapin", "redis", "serde_json", "rand", "reqwest"],
        ),
        ("shared/contracts", vec!["tokio", "tracing", "lapin", "redis", "rand", "reqwest"]),
        ("shared/flow", vec!["tokio", "tracing", "lapin", "redis", "rand", "reqwest"]),
        (
            "shared/catalog",
            vec!["tokio", "tracing", "lapin", "redis", "rand", "reqwest", "runfleet-flow"],
        ),
        ("shared/broker", vec!["runfleet-store", "runfleet-worker", "runfleet-runtime"]),
        ("shared/store", vec!["runfleet-broker", "runfleet-worker", "runfleet-runtime"]),
        ("shared/runtime", vec!["runfleet-broker", "runfleet-store"]),
        ("shared/http", vec!["runfleet-broker", "runfleet-store", "runfleet-runtime"]),
    ] {
        let used = dependencies(Path::new(&format!("{owner}/Cargo.toml")));
        for name in banned {
            assert!(!used.contains(name), "{owner} depends on {name}");
        }
    }
}

#[test]
fn the_five_workers_are_the_five_workers() {
    let workers: BTreeSet<String> = fs::read_dir(root().join("workers"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let expected =
        ["agent-runner", "completion-dispatcher", "delivery", "process-runner", "start-intake"];
    assert_eq!(workers, expected.map(String::from).into());
}

#[test]
fn every_module_says_what_it_is() {
    for path in source_files() {
        let text = read(&path);
        let documented = text.starts_with("//!") || text.starts_with("#![doc = include_str!");
        assert!(documented, "{} does not begin with `//!`", path.display());
    }
}

#[test]
fn a_file_is_short_enough_to_hold_in_the_head() {
    for path in source_files() {
        let text = read(&path);
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let lines = code.lines().count();
        let limit = if path.starts_with("tests")
            || path.ends_with("tests.rs")
            || path.components().any(|part| part.as_os_str() == "tests")
        {
            700
        } else {
            400
        };
        assert!(lines <= limit, "{} has {lines} lines without its tests", path.display());
    }
}

#[test]
fn every_script_states_its_contract() {
    let scripts = files("shared/store/src/lua", &[".lua"]);
    assert!(!scripts.is_empty());
    // Parts of every script, not scripts.
    let parts =
        ["prelude.lua", "clock.lua", "skewed_clock.lua", "start_look.lua", "start_count.lua"];
    for path in scripts.iter().filter(|path| !parts.iter().any(|part| path.ends_with(part))) {
        let text = read(path);
        for word in ["KEYS", "ARGV", "Returns"] {
            let code: String = text.lines().filter(|line| !line.starts_with("--")).collect();
            let needed = word == "Returns" || code.contains(word);
            assert!(
                !needed || text.contains(&format!("-- {word}")),
                "{} does not state its {word}",
                path.display()
            );
        }
    }
}

#[test]
fn every_test_that_the_documents_name_exists() {
    let sources: String = source_files().iter().map(read).collect();
    let text = read("ARCHITECTURE.md");
    let guards = text
        .split("## Invariants and what guards them")
        .nth(1)
        .unwrap()
        .split("\n## ")
        .next()
        .unwrap();
    let names: Vec<&str> = guards
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|name| name.contains('_') && !name.contains(['.', '/', ' ']))
        .collect();
    assert!(names.len() > 10, "the table of invariants is gone");
    for name in names {
        // By itself, or as a row of the table of kills.
        let exists = sources.contains(&format!("fn {name}("))
            || sources.contains(&format!("    {name}: \""));
        assert!(exists, "ARCHITECTURE.md names a test `{name}` that does not exist");
    }
}

#[test]
fn nothing_unfinished_is_left_in_the_code() {
    let banned = [
        concat!("to", "do!("),
        concat!("unimple", "mented!("),
        concat!("FIX", "ME"),
        concat!("XX", "X:"),
        concat!("#[ig", "nore"),
    ];
    for path in source_files() {
        let text = read(&path);
        for word in banned {
            assert!(!text.contains(word), "{} contains {word}", path.display());
        }
    }
}

#[test]
fn the_lock_file_names_only_the_public_registry() {
    for line in read("Cargo.lock").lines().filter(|line| line.starts_with("source")) {
        assert_eq!(line, "source = \"registry+https://github.com/rust-lang/crates.io-index\"");
    }
}
