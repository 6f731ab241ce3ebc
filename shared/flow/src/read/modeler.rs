//! Extensions that the common open modeler writes for its cloud engine: which of them an element may have, and access to
//! them. What they mean is read where the element is read.

use roxmltree::Node;

use super::xml::{self, local};
use crate::problem::Problems;

/// The modeler's extensions of one element that are supported there.
#[derive(Debug)]
pub(super) struct Extensions<'a, 'i> {
    id: String,
    list: Vec<Node<'a, 'i>>,
}

impl<'a, 'i> Extensions<'a, 'i> {
    /// Collects the extensions of `node` that are `allowed`, and refuses all others by name. `properties` do not change what
    /// is executed and are allowed everywhere.
    pub(super) fn of(
        node: Node<'a, 'i>,
        id: &str,
        allowed: &[&str],
        problems: &mut Problems,
    ) -> Self {
        let mut list: Vec<Node<'a, 'i>> = Vec::new();
        for extension in xml::extensions(node, xml::ZEEBE) {
            let name = local(extension);
            if name == "properties" {
                continue;
            }
            if !allowed.contains(&name) {
                let place = local(node);
                problems.at(id, format!("`zeebe:{name}` is not supported in a `{place}`"));
            } else if list.iter().any(|other| local(*other) == name) {
                problems.at(id, format!("`zeebe:{name}` is given twice"));
            } else {
                list.push(extension);
            }
        }
        Self { id: id.to_owned(), list }
    }

    pub(super) fn get(&self, name: &str) -> Option<Node<'a, 'i>> {
        self.list.iter().copied().find(|extension| local(*extension) == name)
    }

    /// Refuses attributes that are not `known`, and all children.
    pub(super) fn known(&self, extension: Node<'_, '_>, known: &[&str], problems: &mut Problems) {
        attributes(extension, &self.id, known, problems);
        for child in extension.children().filter(Node::is_element) {
            let (name, place) = (local(child), local(extension));
            problems.at(&self.id, format!("`{name}` is not supported in `zeebe:{place}`"));
        }
    }

    /// The children of an extension, which must all be called `name` and have no attributes but the `known`. Refuses
    /// other children.
    pub(super) fn children(
        &self,
        extension: Node<'a, 'i>,
        names: &[&str],
        known: &[&str],
        problems: &mut Problems,
    ) -> Vec<Node<'a, 'i>> {
        let mut found = Vec::new();
        attributes(extension, &self.id, &[], problems);
        for child in extension.children().filter(Node::is_element) {
            if xml::is_in(child, xml::ZEEBE) && names.contains(&local(child)) {
                self.known(child, known, problems);
                found.push(child);
            } else {
                let (name, place) = (local(child), local(extension));
                problems.at(&self.id, format!("`{name}` is not supported in `zeebe:{place}`"));
            }
        }
        found
    }
}

fn attributes(extension: Node<'_, '_>, id: &str, known: &[&str], problems: &mut Problems) {
    for attribute in extension.attributes().filter(|attribute| attribute.namespace().is_none()) {
        if !known.contains(&attribute.name()) {
            let (name, place) = (attribute.name(), local(extension));
            problems.at(id, format!("`{name}` of `zeebe:{place}` is not supported"));
        }
    }
}

/// The extensions that an element of this kind may have, beside properties. `versionTag`, `userTaskForm` and
/// `priorityDefinition` have no effect.
pub(super) fn allowed(kind: &str, carries_message: bool) -> &'static [&'static str] {
    match kind {
        "process" => &["versionTag", "userTaskForm"],
        "task"
        | "manualTask"
        | "receiveTask"
        | "subProcess"
        | "startEvent"
        | "boundaryEvent"
        | "intermediateCatchEvent" => &["ioMapping"],
        "intermediateThrowEvent" | "endEvent" if !carries_message => &["ioMapping"],
        "scriptTask" => &["ioMapping", "script", "taskDefinition", "taskHeaders"],
        "serviceTask" | "sendTask" | "businessRuleTask" | "intermediateThrowEvent" | "endEvent" => {
            &["ioMapping", "taskDefinition", "taskHeaders"]
        }
        "userTask" => &[
            "ioMapping",
            "userTask",
            "assignmentDefinition",
            "taskSchedule",
            "formDefinition",
            "priorityDefinition",
        ],
        "callActivity" => &["ioMapping", "calledElement"],
        _ => &[],
    }
}
