//! `runfleet process`: looks at BPMN documents without any server. Nothing is stored and nothing is asked.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use runfleet_flow::{Definition, Problem, limits};
use serde::Serialize;

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Check BPMN documents and list everything that is wrong: file, element and reason. Exit code 1 when anything is.
    Lint {
        /// The documents.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Print the problems as one JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Print a BPMN document as text: variables, elements, where each leads.
    Show {
        /// The document.
        file: PathBuf,
    },
}

/// A problem and the document that has it.
#[derive(Debug, Serialize)]
struct Finding {
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    element: Option<String>,
    problem: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Texts of a document end up here; none of them commands the terminal.
        let clean = |text: &str| text.replace(char::is_control, "?");
        write!(f, "{}: ", clean(&self.file))?;
        if let Some(element) = &self.element {
            write!(f, "element `{}`: ", clean(element))?;
        }
        f.write_str(&clean(&self.problem))
    }
}

pub(crate) fn run(command: Command) -> Result<ExitCode> {
    let clean = match command {
        Command::Lint { files, json } => {
            let findings = lint(&files);
            if json {
                crate::out::line(serde_json::to_string_pretty(&findings)?);
            } else {
                findings.iter().for_each(crate::out::line);
            }
            findings.is_empty()
        }
        Command::Show { file } => show(&file),
    };
    Ok(if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints a document, or what is wrong with it, and tells which.
#[expect(clippy::print_stderr, reason = "the text was asked for, the problems were not")]
fn show(file: &Path) -> bool {
    match parse(file) {
        Ok(definition) => {
            crate::out::line(definition.describe().trim_end());
            true
        }
        Err(findings) => {
            for finding in findings {
                eprintln!("{finding}");
            }
            false
        }
    }
}

/// Everything that is wrong with `files`, in their order.
fn lint(files: &[PathBuf]) -> Vec<Finding> {
    files.iter().filter_map(|file| parse(file).err()).flatten().collect()
}

fn parse(path: &Path) -> Result<Definition, Vec<Finding>> {
    let file = path.display().to_string();
    let finding = |element, problem| Finding { file: file.clone(), element, problem };
    let text =
        read(path).map_err(|error| vec![finding(None, format!("cannot be read: {error}"))])?;
    Definition::parse(&text).map_err(|problems| {
        let told = |Problem { element, message }| finding(element, message);
        problems.into_iter().map(told).collect()
    })
}

/// Reads no more of a file than a document may have, and one byte, so that a longer one is refused for its length.
fn read(path: &Path) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limits::DOCUMENT_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > limits::DOCUMENT_BYTES_MAX {
        // Where it was cut says nothing about what it is.
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    String::from_utf8(bytes).map_err(|_| std::io::Error::other("it is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{Command, lint, parse, run};

    fn example(name: &str) -> PathBuf {
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/example")).join(name)
    }

    fn document(name: &str, text: &[u8]) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("runfleet-lint-{}-{name}", std::process::id()));
        std::fs::write(&path, text).expect("a file can be written");
        path
    }

    #[test]
    fn the_examples_are_clean_and_can_be_shown() {
        let files: Vec<PathBuf> = std::fs::read_dir(example(""))
            .expect("the examples are there")
            .map(|entry| entry.expect("readable").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "bpmn"))
            .collect();
        assert!(files.len() >= 5);
        let findings = lint(&files);
        assert!(findings.is_empty(), "{findings:#?}");
        for file in &files {
            let text = parse(file).expect("clean").describe();
            assert!(text.starts_with("process "), "{text}");
        }
    }

    #[test]
    fn every_problem_is_told_with_its_file_and_element() {
        let text = std::fs::read_to_string(example("approve-discount.bpmn")).expect("readable");
        let broken = text.replace("scriptFormat=\"feel\"", "scriptFormat=\"js\"");
        let broken = document("broken.bpmn", broken.as_bytes());
        let long = document("long.bpmn", &vec![b' '; 1024 * 1024 + 1]);
        let binary = document("binary.bpmn", &[0xff, 0xfe]);
        let missing = PathBuf::from("/nowhere/at-all.bpmn");
        let files =
            [broken.clone(), example("count-to-limit.bpmn"), long.clone(), binary.clone(), missing];
        let lines: Vec<String> = lint(&files).iter().map(ToString::to_string).collect();
        assert_eq!(lines.len(), 5 + 3, "{lines:#?}");
        for (line, element) in lines.iter().zip([
            "ComputeDiscount",
            "Approve",
            "ExplainApproval",
            "Refuse",
            "ExplainRefusal",
        ]) {
            let file = broken.display();
            let expected = "scripts in `js` are not supported, only `feel`";
            assert_eq!(*line, format!("{file}: element `{element}`: {expected}"));
        }
        assert_eq!(
            lines[5],
            format!("{}: the document is larger than 1048576 bytes", long.display())
        );
        assert_eq!(lines[6], format!("{}: cannot be read: it is not UTF-8", binary.display()));
        assert!(lines[7].starts_with("/nowhere/at-all.bpmn: cannot be read: "), "{}", lines[7]);
        for file in [&broken, &long, &binary] {
            std::fs::remove_file(file).expect("it was there");
        }
    }

    #[test]
    fn nothing_of_a_document_commands_the_terminal() {
        let evil = document("evil.bpmn", "<definitions xmlns=\"http://www.omg.org/spec/BPMN/20100524/MODEL\">\
            <process id=\"p\" isExecutable=\"true\"><evil\u{e9} id=\"a\u{9b}31m\"/></process></definitions>".as_bytes());
        let lines: Vec<String> =
            lint(std::slice::from_ref(&evil)).iter().map(ToString::to_string).collect();
        assert!(lines[0].contains("element `a?31m`: `evil\u{e9}` is not supported"), "{lines:#?}");
        assert!(!lines.concat().contains(char::is_control));
        std::fs::remove_file(&evil).expect("it was there");
    }

    #[test]
    fn the_exit_code_says_whether_anything_is_wrong() {
        let code = |files: Vec<PathBuf>, json| {
            let code = run(Command::Lint { files, json }).expect("it can be printed");
            format!("{code:?}")
        };
        let ok = format!("{:?}", std::process::ExitCode::SUCCESS);
        assert_eq!(code(vec![example("count-to-limit.bpmn")], true), ok);
        assert_ne!(code(vec![example("count-to-limit.bpmn"), example("shop.yaml")], true), ok);
    }
}
