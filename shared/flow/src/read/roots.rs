//! Root elements that events refer to: messages, signals, errors, escalations.

use std::collections::HashMap;
use std::rc::Rc;

use roxmltree::Node;

use super::modeler::Extensions;
use super::xml::{self, local};
use crate::problem::Problems;

/// Root elements by kind and id.
#[derive(Debug, Default)]
pub(super) struct Roots {
    messages: HashMap<String, Rc<Root>>,
    signals: HashMap<String, Rc<Root>>,
    errors: HashMap<String, Rc<Root>>,
    escalations: HashMap<String, Rc<Root>>,
}

/// One root element.
#[derive(Debug)]
pub(super) struct Root {
    /// Name of a message or signal, code of an error or escalation.
    pub(super) text: Option<String>,
    /// Correlation key of a message.
    pub(super) key: Option<String>,
}

impl Roots {
    /// Takes up a root element if it is one of these kinds.
    pub(super) fn take(&mut self, node: Node<'_, '_>, problems: &mut Problems) -> bool {
        let kind = local(node);
        let (list, attribute) = match kind {
            "message" => (&mut self.messages, "name"),
            "signal" => (&mut self.signals, "name"),
            "error" => (&mut self.errors, "errorCode"),
            "escalation" => (&mut self.escalations, "escalationCode"),
            _ => return false,
        };
        let Some(id) = node.attribute("id").filter(|id| !id.is_empty()) else {
            problems.add(None, format!("a `{kind}` needs an id"));
            return true;
        };
        for child in xml::bpmn_children(node) {
            if !matches!(local(child), "documentation" | "extensionElements") {
                problems.at(id, format!("`{}` is not supported in a `{kind}`", local(child)));
            }
        }
        let allowed: &[&str] = if kind == "message" { &["subscription"] } else { &[] };
        let extensions = Extensions::of(node, id, allowed, problems);
        let key = extensions.get("subscription").and_then(|subscription| {
            extensions.known(subscription, &["correlationKey"], problems);
            subscription.attribute("correlationKey").map(str::to_owned)
        });
        let text = node.attribute(attribute).map(str::to_owned).filter(|text| !text.is_empty());
        list.insert(id.to_owned(), Rc::new(Root { text, key }));
        true
    }

    pub(super) fn message(&self, reference: &str) -> Option<Rc<Root>> {
        found(&self.messages, reference)
    }

    pub(super) fn signal(&self, reference: &str) -> Option<Rc<Root>> {
        found(&self.signals, reference)
    }

    pub(super) fn error(&self, reference: &str) -> Option<Rc<Root>> {
        found(&self.errors, reference)
    }

    pub(super) fn escalation(&self, reference: &str) -> Option<Rc<Root>> {
        found(&self.escalations, reference)
    }
}

/// References are qualified names, so one may carry a prefix.
fn found(list: &HashMap<String, Rc<Root>>, reference: &str) -> Option<Rc<Root>> {
    let reference = reference.trim();
    list.get(reference).or_else(|| list.get(reference.split_once(':')?.1)).cloned()
}
