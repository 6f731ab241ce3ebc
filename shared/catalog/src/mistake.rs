//! What is wrong in a bundle, told all at once and by place.

use std::cell::RefCell;
use std::fmt;

use crate::bounds::MISTAKES_MAX;

/// One mistake. Its text names fields and ids, and never repeats another value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The file as it was given or found.
    pub file: String,
    /// The field, such as `spec.jobs[2].key`, or the id of a BPMN element; empty for the file as a whole.
    pub path: String,
    /// The line, from 1, where it is known.
    pub line: Option<u64>,
    /// A phrase that completes "`path` …", or a sentence for the file as a whole.
    pub problem: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.path.is_empty() {
            write!(f, ": {}", self.path)?;
        }
        write!(f, ": {}", self.problem)
    }
}

/// Every mistake of a bundle, in the order of its files; a line each when displayed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mistakes {
    /// At most 200.
    pub list: Vec<Mistake>,
    /// How many more there are.
    pub more: usize,
}

impl std::error::Error for Mistakes {}

impl Mistakes {
    fn sort(&mut self) {
        let mut files: Vec<String> = Vec::new();
        for mistake in &self.list {
            if !files.contains(&mistake.file) {
                files.push(mistake.file.clone());
            }
        }
        self.list.sort_by_key(|mistake| {
            (files.iter().position(|file| *file == mistake.file), mistake.line)
        });
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, mistake) in self.list.iter().enumerate() {
            if position > 0 {
                f.write_str("\n")?;
            }
            mistake.fmt(f)?;
        }
        if self.more > 0 {
            write!(f, "\nand {} more", self.more)?;
        }
        Ok(())
    }
}

/// Where mistakes are collected while documents are read.
#[derive(Debug, Default)]
pub(crate) struct Collector(RefCell<Mistakes>);

impl Collector {
    pub(crate) fn add(&self, mistake: Mistake) {
        let mut mistakes = self.0.borrow_mut();
        if mistakes.list.len() < MISTAKES_MAX {
            mistakes.list.push(mistake);
        } else {
            mistakes.more += 1;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().list.is_empty()
    }

    /// A mistake of a file as a whole.
    pub(crate) fn file(&self, file: &str, problem: impl Into<String>) {
        self.add(Mistake {
            file: file.to_owned(),
            path: String::new(),
            line: None,
            problem: problem.into(),
        });
    }

    /// What was collected, by file as they came and by line within a file.
    pub(crate) fn into_mistakes(self) -> Mistakes {
        let mut mistakes = self.0.into_inner();
        mistakes.sort();
        mistakes
    }

    /// `value` if nothing was wrong; else the mistakes, by file as they came and by line within a file.
    pub(crate) fn finish<T>(self, value: Option<T>) -> Result<T, Mistakes> {
        let mut mistakes = self.0.into_inner();
        match value {
            Some(value) if mistakes.list.is_empty() => Ok(value),
            _ => {
                mistakes.sort();
                Err(mistakes)
            }
        }
    }
}
