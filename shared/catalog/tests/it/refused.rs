//! What is refused, and that everything wrong is told at once by file, line and field.

use std::fmt::Write;

use runfleet_catalog::{DOCUMENTS_MAX, FILE_BYTES_MAX, JOBS_MAX, load};

use crate::bundle::{Files, WORKSPACE, check, document, golden, in_crate};

#[test]
fn every_mistake_of_every_file_is_told_at_once_by_file_line_and_field() {
    let broken = in_crate("tests/broken");
    let mistakes = load(std::slice::from_ref(&broken), &check).unwrap_err();
    let text = mistakes.to_string().replace(&format!("{}/", broken.display()), "");
    golden("mistakes.txt", &(text + "\n"));
}

#[test]
fn a_bundle_has_exactly_one_workspace() {
    let project = document("Project", "shop", "{version: '1'}");
    let without = Files::new(&[("1.yaml", &project)]);
    assert_eq!(
        without.mistakes(),
        "1.yaml: no document of kind Workspace was given; a bundle has exactly one"
    );
    let two = Files::new(&[WORKSPACE, ("2.yaml", WORKSPACE.1)]);
    assert_eq!(two.mistakes(), "2.yaml:1: is a second Workspace; a bundle has exactly one");
}

#[test]
fn paths_that_hold_no_document_are_mistakes() {
    let files = Files::new(&[("notes.txt", "x")]);
    let dir = files.path().display().to_string();
    let mistakes = files.load().unwrap_err().to_string();
    assert!(
        mistakes.starts_with(&format!("{dir}: holds no .yaml, .yml or .json file")),
        "{mistakes}"
    );
    let missing = load(&[files.path().join("missing.yaml")], &check).unwrap_err();
    assert!(missing.list[0].problem.starts_with("cannot be read: "), "{missing}");
}

#[test]
fn sizes_are_bounded() {
    let large = Files::new(&[WORKSPACE]);
    large.write("2.yaml", vec![b'#'; FILE_BYTES_MAX + 1]);
    assert_eq!(large.mistakes(), format!("2.yaml: has more than {FILE_BYTES_MAX} bytes"));

    let binary = Files::new(&[WORKSPACE]);
    binary.write("2.yaml", [0xff, 0xfe]);
    assert_eq!(binary.mistakes(), "2.yaml: is not UTF-8 text");

    let jobs = |count| {
        let mut spec = "{version: '1', jobs: [".to_owned();
        (0..count).for_each(|n| write!(spec, "{{key: j{n}}},").unwrap());
        Files::new(&[WORKSPACE, ("2.yaml", &document("Project", "shop", &(spec + "]}")))])
    };
    assert!(jobs(JOBS_MAX).load().is_ok());
    assert_eq!(
        jobs(JOBS_MAX + 1).mistakes(),
        format!("2.yaml:4: spec.jobs: must have at most {JOBS_MAX} entries, not {}", JOBS_MAX + 1)
    );

    let documents = |count: usize| {
        let file = |from, to| {
            let one = |n| document("Project", &format!("p{n}"), "{version: '1'}");
            (from..to).map(one).collect::<Vec<_>>().join("---\n")
        };
        let half = count / 2;
        Files::new(&[WORKSPACE, ("2.yaml", &file(0, half)), ("3.yaml", &file(half, count))])
    };
    assert!(documents(DOCUMENTS_MAX - 1).load().is_ok());
    assert_eq!(
        documents(DOCUMENTS_MAX).mistakes(),
        "3.yaml: holds document number 1001, one too many"
    );
}

#[test]
fn more_mistakes_than_anybody_reads_are_only_counted() {
    let mut spec = "{version: '1', jobs: [".to_owned();
    (0..JOBS_MAX).for_each(|_| spec.push_str("{a: 1, b: 1, c: 1, d: 1, e: 1},"));
    let files = Files::new(&[WORKSPACE, ("2.yaml", &document("Project", "shop", &(spec + "]}")))]);
    let mistakes = files.load().unwrap_err();
    assert_eq!((mistakes.list.len(), mistakes.more), (200, 100));
    assert!(mistakes.to_string().ends_with("\nand 100 more"));
}
