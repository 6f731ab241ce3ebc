//! The command line of the benchmark: reads words and explains itself. Measures nothing.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail, ensure};

use super::{Part, Plan};

/// What somebody wants.
#[derive(Debug, Clone, Copy)]
pub enum Command {
    /// To be told what there is.
    Help,
    /// To have something measured.
    Measure(Plan),
}

/// The names of all parts, for people.
fn names() -> String {
    Part::ALL.map(Part::name).join(", ")
}

/// What `--help` prints.
pub fn help() -> String {
    let mut text = "\
runfleet-bench measures a fleet of five workers on a private RabbitMQ and Redis, which it starts and stops.

usage: runfleet-bench [--only PART] [--silent] [RUNS [IN_FLIGHT [ROUNDS]]]

  RUNS        runs of a round of `straight`, 100 to 1000000 (default 10000); other parts take a share of them
  IN_FLIGHT   what waits at any time, 1 to 1000 (default 64)
  ROUNDS      rounds of each kind, taken in turns, 1 to 100 (default 3); the medians are reported

  --silent    the host that takes outcome jobs says nothing of them; `hosts` is as always. Without it the host tells how each has
              ended, which is one more message and one more round trip to Redis for each run

parts, all of them unless one is named:
"
    .to_owned();
    for part in Part::ALL {
        let _ = writeln!(text, "  {:<11} {}", part.name(), part.about());
    }
    text += "
Figures go to standard output and to target/bench/report.json, progress to standard error. RUNFLEET_BENCH_SETTINGS=NAME=value,…
tries settings of the workers. A build for debugging measures workers of its kind, which shows nothing but that the benchmark works.

exit codes: 0 measured; 1 something has failed, a run or a count included; 64 the command line is wrong
";
    text
}

impl Command {
    /// Reads the words after the name of the program.
    pub fn read(words: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut words = words.into_iter();
        let (mut only, mut silent, mut numbers) = (None, false, Vec::new());
        while let Some(word) = words.next() {
            match word.as_str() {
                "-h" | "--help" => return Ok(Self::Help),
                "--silent" => silent = true,
                "--only" => {
                    let name = words.next();
                    let name = name.with_context(|| format!("--only wants one of {}", names()))?;
                    let part = Part::named(&name);
                    only = Some(part.with_context(|| {
                        format!("there is no part `{name}`: the parts are {}", names())
                    })?);
                }
                _ => match word.parse::<usize>() {
                    Ok(number) => numbers.push(number),
                    Err(_) => bail!("`{word}` is neither an option nor a number"),
                },
            }
        }
        ensure!(numbers.len() <= 3, "there are more than three numbers");
        let number = |index: usize, default| numbers.get(index).copied().unwrap_or(default);
        let plan = Plan {
            count: number(0, 10_000),
            in_flight: number(1, 64),
            rounds: number(2, 3),
            only,
            silent,
        };
        ensure!((100..=1_000_000).contains(&plan.count), "RUNS must be 100 to 1000000");
        ensure!((1..=1_000).contains(&plan.in_flight), "IN_FLIGHT must be 1 to 1000");
        ensure!((1..=100).contains(&plan.rounds), "ROUNDS must be 1 to 100");
        Ok(Self::Measure(plan))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Result<Command> {
        Command::read(words.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn a_part_and_up_to_three_numbers_are_read_in_any_order() {
        for words in ["--only hosts 200 8 1", "200 8 1 --only hosts"] {
            let Command::Measure(plan) = read(words).unwrap() else { panic!("{words}") };
            assert_eq!((plan.count, plan.in_flight, plan.rounds), (200, 8, 1));
            assert_eq!((plan.only, plan.silent), (Some(Part::Hosts), false));
        }
        assert!(matches!(read("--silent").unwrap(), Command::Measure(Plan { silent: true, .. })));
        let Command::Measure(plan) = read("").unwrap() else { panic!("no plan") };
        assert_eq!((plan.count, plan.in_flight, plan.rounds, plan.only), (10_000, 64, 3, None));
    }

    #[test]
    fn a_part_that_is_not_there_is_answered_with_all_that_are() {
        let error = read("--only host").unwrap_err().to_string();
        for part in Part::ALL {
            assert!(error.contains(part.name()), "{error}");
        }
        for words in ["--only", "--onyl hosts", "99", "100 0", "100 1 101", "100 1 1 1", "-5"] {
            assert!(read(words).is_err(), "{words}");
        }
    }

    #[test]
    fn the_help_explains_every_part() {
        assert!(matches!(read("--only hosts --help").unwrap(), Command::Help));
        let help = help();
        for part in Part::ALL {
            assert!(help.contains(&format!("\n  {:<11} {}\n", part.name(), part.about())));
            assert_eq!(Part::named(part.name()), Some(part));
        }
    }
}
