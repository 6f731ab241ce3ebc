//! Gateways.

use roxmltree::Node;

use super::context::Context;
use super::xml::local;
use super::{DraftKind, Role};
use crate::definition::NodeKind;

/// Reads a gateway.
pub(super) fn read(
    node: Node<'_, '_>,
    id: &str,
    context: &mut Context<'_>,
) -> (Role, Option<DraftKind>) {
    let (role, kind) = match local(node) {
        "exclusiveGateway" => (Role::Exclusive, NodeKind::Exclusive),
        "parallelGateway" => (Role::Parallel, NodeKind::Parallel),
        "inclusiveGateway" => (Role::Inclusive, NodeKind::Inclusive),
        _ => {
            if context.flag(node, id, "instantiate", false) {
                context.at(id, "an event-based gateway that starts a process is not supported");
            }
            if node.attribute("eventGatewayType").is_some_and(|kind| kind != "Exclusive") {
                context.at(id, "an event-based gateway that waits for all events is not supported");
            }
            (Role::EventBased, NodeKind::EventBased)
        }
    };
    (role, Some(DraftKind::Ready(kind)))
}
