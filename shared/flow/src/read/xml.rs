//! XML below BPMN: opens a document within bounds and answers small questions about its nodes.

use roxmltree::{Document, Node, ParsingOptions};

use crate::limits;
use crate::problem::Problem;

/// Namespace of BPMN 2.0.
pub(super) const BPMN: &str = "http://www.omg.org/spec/BPMN/20100524/MODEL";
/// Namespace of this product's extensions.
pub(super) const RUNFLEET: &str = "urn:runfleet:bpmn:1";
/// Namespace of what the common open modeler writes for its cloud engine.
pub(super) const ZEEBE: &str = "http://camunda.org/schema/zeebe/1.0";

/// Parses `text`. DTDs and so entities are refused.
pub(super) fn open(text: &str) -> Result<Document<'_>, Problem> {
    if text.len() > limits::DOCUMENT_BYTES_MAX {
        let most = limits::DOCUMENT_BYTES_MAX;
        return Err(Problem::of_document(format!("the document is larger than {most} bytes")));
    }
    let options = ParsingOptions {
        allow_dtd: false,
        nodes_limit: limits::XML_NODES_MAX,
        entity_resolver: None,
    };
    let document = Document::parse_with_options(text, options).map_err(|error| {
        Problem::of_document(match error {
            roxmltree::Error::DtdDetected => {
                "a document type declaration is not allowed".to_owned()
            }
            roxmltree::Error::NodesLimitReached => {
                format!("the document has more than {} XML nodes", limits::XML_NODES_MAX)
            }
            error => format!("the document is not well-formed XML: {error}"),
        })
    })?;
    if is_deep(&document) {
        let most = limits::XML_DEPTH_MAX;
        return Err(Problem::of_document(format!("XML elements nest deeper than {most}")));
    }
    Ok(document)
}

/// Whether elements nest too deep. Goes through the nodes in document order and never recurses.
fn is_deep(document: &Document<'_>) -> bool {
    let mut depths: Vec<u16> = Vec::new();
    for node in document.descendants() {
        let depth = node
            .parent()
            .and_then(|parent| depths.get(parent.id().get_usize()))
            .map_or(0, |depth| depth + 1);
        if usize::from(depth) > limits::XML_DEPTH_MAX {
            return true;
        }
        depths.push(depth);
    }
    false
}

/// Child elements in the BPMN namespace.
pub(super) fn bpmn_children<'a, 'i>(node: Node<'a, 'i>) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(|child| child.is_element() && is_in(*child, BPMN))
}

/// Child elements in `namespace` inside the `extensionElements` of `node`.
pub(super) fn extensions<'a, 'i>(
    node: Node<'a, 'i>,
    namespace: &'static str,
) -> impl Iterator<Item = Node<'a, 'i>> {
    bpmn_children(node)
        .filter(|child| local(*child) == "extensionElements")
        .flat_map(|child| child.children())
        .filter(move |child| child.is_element() && is_in(*child, namespace))
}

pub(super) fn is_in(node: Node<'_, '_>, namespace: &str) -> bool {
    node.tag_name().namespace() == Some(namespace)
}

/// Name of an element without its prefix.
pub(super) fn local<'a>(node: Node<'a, '_>) -> &'a str {
    node.tag_name().name()
}

/// All text directly inside an element, also when comments or CDATA sections cut it.
pub(super) fn text(node: Node<'_, '_>) -> String {
    node.children().filter(Node::is_text).filter_map(|child| child.text()).collect()
}

/// A truth value as XML writes it.
pub(super) fn truth(text: &str) -> Option<bool> {
    match text.trim() {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// A piece of the document that is fit for a message.
pub(super) fn short(text: &str) -> String {
    text.chars().take(60).collect()
}
