//! Builds bundles in a directory of their own. The engine is replaced by a tiny language: `normal: a:number! b:any` is a
//! document of that kind with those inputs, `refused` is one that the engine refuses.

use std::path::{Path, PathBuf};

use runfleet_catalog::{Bundle, Mistakes, ProcessProblem, ProcessSummary, load};
use serde_json::json;

pub(crate) fn check(xml: &str) -> Result<ProcessSummary, Vec<ProcessProblem>> {
    let Some((kind, inputs)) = xml.trim().split_once(':') else {
        let problem = |element: Option<&str>, line, problem: &str| ProcessProblem {
            element: element.map(str::to_owned),
            line,
            problem: problem.to_owned(),
        };
        return Err(vec![
            problem(Some("Task_1"), Some(7), "is a kind of element that the engine does not run"),
            problem(None, None, "has no end event"),
        ]);
    };
    let inputs: Vec<_> = inputs.split_whitespace().map(|input| {
        let (name, kind) = input.split_once(':').unwrap();
        json!({"name": name, "type": kind.trim_end_matches('!'), "required": kind.ends_with('!')})
    }).collect();
    let outputs = json!([{"name": "result", "type": "any"}]);
    let summary = json!({"id": "p", "kind": kind, "inputs": inputs, "outputs": outputs, "deadlineSeconds": 60});
    Ok(serde_json::from_value(summary).unwrap())
}

/// Files in a directory that is removed at the end.
pub(crate) struct Files(tempfile::TempDir);

impl Files {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let files_of_test = Self(tempfile::tempdir().unwrap());
        for (name, text) in files {
            files_of_test.write(name, text);
        }
        files_of_test
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.0.path().join(name), text).unwrap();
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn load(&self) -> Result<Bundle, Mistakes> {
        load(&[self.path().to_owned()], &check)
    }

    /// The mistakes as text, without the directory.
    pub(crate) fn mistakes(&self) -> String {
        let text = self.load().unwrap_err().to_string();
        text.replace(&format!("{}/", self.path().display()), "")
    }
}

pub(crate) const WORKSPACE: (&str, &str) =
    ("1.yaml", "apiVersion: runfleet/v1\nkind: Workspace\nmetadata: {name: demo}\n");

pub(crate) fn document(kind: &str, name: &str, spec: &str) -> String {
    format!("apiVersion: runfleet/v1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {spec}\n")
}

pub(crate) fn in_crate(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Compares with a stored text; `UPDATE_GOLDEN=1` rewrites it.
pub(crate) fn golden(name: &str, text: &str) {
    let path = in_crate("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, stored, "{name}: UPDATE_GOLDEN=1 rewrites it");
}
