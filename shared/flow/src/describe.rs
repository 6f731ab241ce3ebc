//! A process as plain text, for a terminal.

mod kind;

use std::fmt::{self, Write};

use crate::definition::{Definition, Flow, Mapping, Node, NodeKind, OnFailure};
use crate::variable::Variable;

/// Gives the lines that are written below an element, by its id.
pub type Marks<'a> = &'a dyn Fn(&str) -> Vec<String>;

impl Definition {
    /// Lists the process: its variables, then each element in the order in which execution can come to it, with what
    /// it does and where it leads. What lies in a sub-process is indented below it, and boundary events below the element
    /// that they are attached to. An element that is listed above is only named.
    pub fn describe(&self) -> String {
        self.describe_at(&|_| Vec::new())
    }

    /// The same, with lines below elements that say what stands there in a run. `marks` gives them by the id of the element.
    pub fn describe_at(&self, marks: Marks<'_>) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_to(&mut text, marks);
        text
    }

    fn write_to(&self, out: &mut String, marks: Marks<'_>) -> fmt::Result {
        let summary = &self.summary;
        write!(out, "process {}", summary.id)?;
        write_name(out, summary.name.as_deref())?;
        writeln!(out, " ({})", summary.kind.as_str())?;
        if let Some(seconds) = summary.deadline_seconds {
            writeln!(out, "  deadline {seconds} s")?;
        }
        if self.on_failure == OnFailure::Fail {
            writeln!(out, "  ends as failed when a task fails for good")?;
        }
        summary.inputs.iter().try_for_each(|variable| write_variable(out, "input", variable))?;
        summary.outputs.iter().try_for_each(|variable| write_variable(out, "output", variable))?;
        self.write_scope(out, marks, 0, 0)
    }

    /// The elements of a scope, each after an empty line. Sub-processes nest to a fixed depth.
    fn write_scope(
        &self,
        out: &mut String,
        marks: Marks<'_>,
        scope: usize,
        depth: usize,
    ) -> fmt::Result {
        for position in self.order(scope) {
            writeln!(out)?;
            self.write_node(out, marks, position, depth)?;
        }
        Ok(())
    }

    fn write_node(
        &self,
        out: &mut String,
        marks: Marks<'_>,
        position: usize,
        depth: usize,
    ) -> fmt::Result {
        let node = &self.nodes[position];
        let margin = "  ".repeat(depth);
        write!(out, "{margin}{}", node.id)?;
        write_name(out, node.name.as_deref())?;
        writeln!(out, ": {}", kind::title(node))?;
        for mark in marks(&node.id) {
            writeln!(out, "{margin}* {mark}")?;
        }
        for line in kind::details(node) {
            writeln!(out, "{margin}  {line}")?;
        }
        node.inputs.iter().try_for_each(|mapping| write_mapping(out, &margin, "in", mapping))?;
        node.outputs.iter().try_for_each(|mapping| write_mapping(out, &margin, "out", mapping))?;
        for flow in &node.outgoing {
            write!(out, "{margin}  -> ")?;
            self.write_flow(out, node, *flow)?;
        }
        for event in &node.boundary {
            self.write_node(out, marks, *event, depth + 1)?;
        }
        match node.kind {
            NodeKind::Sub { scope } | NodeKind::EventSub { scope } => {
                self.write_scope(out, marks, scope, depth + 1)
            }
            _ => Ok(()),
        }
    }

    fn write_flow(&self, out: &mut String, node: &Node, position: usize) -> fmt::Result {
        let Flow { target, condition, name, .. } = &self.flows[position];
        write!(out, "{}", self.nodes[*target].id)?;
        match condition {
            Some(condition) => write!(out, "  if {}", one_line(condition.text()))?,
            None if node.default == Some(position) => write!(out, "  otherwise")?,
            None => {}
        }
        if let Some(name) = name {
            write!(out, "  [{}]", one_line(name))?;
        }
        writeln!(out)
    }

    /// Positions of the nodes of a scope, depth first from its start; event sub-processes last. Boundary events are left
    /// out, but what follows them is not.
    fn order(&self, scope: usize) -> Vec<usize> {
        let mut seen = vec![false; self.nodes.len()];
        let mut order = Vec::new();
        let scope = &self.scopes[scope];
        let mut open = vec![scope.start];
        while let Some(position) = open.pop() {
            if std::mem::replace(&mut seen[position], true) {
                continue;
            }
            let node = &self.nodes[position];
            if !matches!(node.kind, NodeKind::Boundary { .. }) {
                order.push(position);
            }
            open.extend(node.boundary.iter().rev());
            open.extend(node.outgoing.iter().rev().map(|flow| self.flows[*flow].target));
        }
        order.extend(&scope.events);
        order
    }
}

fn write_name(out: &mut String, name: Option<&str>) -> fmt::Result {
    name.map_or(Ok(()), |name| write!(out, " \"{}\"", one_line(name)))
}

fn write_variable(out: &mut String, direction: &str, variable: &Variable) -> fmt::Result {
    let required = if variable.required { ", required" } else { "" };
    writeln!(out, "  {direction} {}: {}{required}", variable.name, variable.kind)
}

fn write_mapping(out: &mut String, margin: &str, side: &str, mapping: &Mapping) -> fmt::Result {
    let source = one_line(mapping.source.text());
    writeln!(out, "{margin}  {side} {} = {source}", mapping.target.join("."))
}

/// Runs of white space become one space, and no other control character reaches the terminal.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace(char::is_control, "?")
}
