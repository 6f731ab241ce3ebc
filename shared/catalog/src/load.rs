//! The only place that touches files: finds documents, reads them, and reads the BPMN files that they name.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::bounds::{DOCUMENTS_MAX, FILE_BYTES_MAX};
use crate::bundle::Bundle;
use crate::mistake::{Collector, Mistakes};
use crate::spec;
use crate::summary::ProcessCheck;

/// Reads and validates a bundle out of files and directories.
///
/// A directory stands for its files that end in `.yaml`, `.yml` or `.json`, sorted by name, without its subdirectories. A
/// file holds one or several documents. `check` is the Process engine: it is given the text of each BPMN document. All
/// mistakes of all files are told at once.
pub fn load(paths: &[PathBuf], check: ProcessCheck<'_>) -> Result<Bundle, Mistakes> {
    let collector = Collector::default();
    let files: Vec<PathBuf> = paths.iter().flat_map(|path| files_at(path, &collector)).collect();
    if files.len() > DOCUMENTS_MAX {
        collector.file(
            &shown(&files[DOCUMENTS_MAX]),
            format!("is one of more than {DOCUMENTS_MAX} files"),
        );
        return collector.finish(None);
    }
    let mut sources = Vec::new();
    for file in files {
        match read(&file) {
            Ok(text) => sources.push(Source { shown: shown(&file), path: file, text }),
            Err(problem) => collector.file(&shown(&file), problem),
        }
    }
    let bundle = spec::bundle(&sources, check, &collector);
    collector.finish(bundle)
}

/// A file of documents.
pub(crate) struct Source {
    pub(crate) shown: String,
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

impl Source {
    /// Reads a file that a document of this one names: its name for people, and its text or what is wrong.
    pub(crate) fn beside(&self, relative: &str) -> (String, Result<String, String>) {
        let path = self.path.parent().unwrap_or(Path::new("")).join(relative);
        (shown(&path), read(&path))
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn files_at(path: &Path, collector: &Collector) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_owned()];
    }
    let listed = std::fs::read_dir(path).and_then(|entries| {
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<std::io::Result<Vec<_>>>()
    });
    let mut files = match listed {
        Ok(files) => files,
        Err(error) => {
            collector.file(&shown(path), format!("cannot be listed: {error}"));
            return Vec::new();
        }
    };
    files.retain(|file| {
        file.is_file()
            && file
                .extension()
                .is_some_and(|end| ["yaml", "yml", "json"].iter().any(|known| end == *known))
    });
    files.sort();
    if files.is_empty() {
        collector.file(&shown(path), "holds no .yaml, .yml or .json file");
    }
    files
}

/// The text of a file, or a phrase that completes "`file` …".
fn read(path: &Path) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("cannot be read: {error}");
    // Opening a pipe would wait for its writer.
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err("is not a file".to_owned());
    }
    let mut bytes = Vec::new();
    let limit = u64::try_from(FILE_BYTES_MAX).unwrap_or(u64::MAX);
    File::open(path)
        .and_then(|file| file.take(limit + 1).read_to_end(&mut bytes))
        .map_err(failed)?;
    if bytes.len() > FILE_BYTES_MAX {
        return Err(format!("has more than {FILE_BYTES_MAX} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "is not UTF-8 text".to_owned())
}
