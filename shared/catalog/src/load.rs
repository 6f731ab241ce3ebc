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
/// A directory stands for its files that end in `.yaml`, `.yml` or `.json`, sorted by name, without its subdirectories but
/// `tools`: there, `NAME.yaml` and `NAME/tool.yaml` are the tool NAME, the latter with the text of `NAME/description.md`
/// as its description. What is wrong with such a tool is told in [`Bundle::left_out`] and stops nothing else. Any other
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
    let tools: Vec<ToolSource> = paths.iter().flat_map(|path| tools_at(path, &collector)).collect();
    let bundle = spec::bundle(&sources, &tools, check, &collector);
    collector.finish(bundle)
}

/// A tool in a `tools` directory.
pub(crate) struct ToolSource {
    pub(crate) shown: String,
    /// The name that its file gives it.
    pub(crate) name: String,
    pub(crate) text: Result<String, String>,
    /// Its `description.md`, when there is one.
    pub(crate) description: Option<Result<String, String>>,
}

/// The tools below a directory, by the names of their files; the first 1,000.
fn tools_at(path: &Path, collector: &Collector) -> Vec<ToolSource> {
    let dir = path.join("tools");
    if !dir.is_dir() {
        return Vec::new();
    }
    let mut entries = match listed(&dir) {
        Ok(entries) => entries,
        Err(error) => {
            collector.file(&shown(&dir), format!("cannot be listed: {error}"));
            return Vec::new();
        }
    };
    entries.sort();
    let tools: Vec<_> = entries.iter().filter_map(|entry| tool_at(entry)).collect();
    if tools.len() > DOCUMENTS_MAX {
        collector.file(&shown(&dir), format!("holds more than {DOCUMENTS_MAX} tools"));
        return Vec::new();
    }
    tools
}

fn tool_at(entry: &Path) -> Option<ToolSource> {
    let stem = if entry.is_dir() { entry.file_name() } else { entry.file_stem() };
    let name = stem?.to_string_lossy().into_owned();
    if name.starts_with('.') {
        return None;
    }
    if !entry.is_dir() {
        return is_document(entry).then(|| ToolSource {
            shown: shown(entry),
            name,
            text: read(entry),
            description: None,
        });
    }
    let description = entry.join("description.md");
    let file =
        ENDINGS.iter().map(|end| entry.join(format!("tool.{end}"))).find(|file| file.exists());
    let (shown, text) = match &file {
        Some(file) => (shown(file), read(file)),
        None => (shown(entry), Err("holds no tool.yaml".to_owned())),
    };
    let description = description.exists().then(|| read(&description));
    Some(ToolSource { shown, name, text, description })
}

const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

fn is_document(file: &Path) -> bool {
    file.is_file() && file.extension().is_some_and(|end| ENDINGS.iter().any(|known| end == *known))
}

fn listed(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    std::fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path())).collect()
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
    let mut files = match listed(path) {
        Ok(files) => files,
        Err(error) => {
            collector.file(&shown(path), format!("cannot be listed: {error}"));
            return Vec::new();
        }
    };
    files.retain(|file| is_document(file));
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
