//! A process as plain text, for a terminal.

use std::fmt::{self, Write};

use crate::definition::{Definition, Flow, Node, NodeKind};
use crate::variable::Variable;

impl Definition {
    /// Lists the process: its variables, then each element in the order in which execution can come to it, with what
    /// it does and where it leads. An element that is listed above is only named.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_to(&mut text);
        text
    }

    fn write_to(&self, out: &mut String) -> fmt::Result {
        let summary = &self.summary;
        write!(out, "process {}", summary.id)?;
        write_name(out, summary.name.as_deref())?;
        writeln!(out, " ({})", summary.kind.as_str())?;
        if let Some(seconds) = summary.deadline_seconds {
            writeln!(out, "  deadline {seconds} s")?;
        }
        summary.inputs.iter().try_for_each(|variable| write_variable(out, "input", variable))?;
        summary.outputs.iter().try_for_each(|variable| write_variable(out, "output", variable))?;
        for position in self.order() {
            self.write_node(out, &self.nodes[position])?;
        }
        Ok(())
    }

    fn write_node(&self, out: &mut String, node: &Node) -> fmt::Result {
        write!(out, "\n{}", node.id)?;
        write_name(out, node.name.as_deref())?;
        match &node.kind {
            NodeKind::Start { .. } => writeln!(out, ": start")?,
            NodeKind::End(_) => writeln!(out, ": end")?,
            NodeKind::Exclusive => writeln!(out, ": exclusive gateway")?,
            NodeKind::Script { expression, result } => {
                writeln!(out, ": script task")?;
                writeln!(out, "  {result} = {}", one_line(expression.text()))?;
            }
            _ => writeln!(out)?,
        }
        for position in &node.outgoing {
            let flow = &self.flows[*position];
            let default = node.default == Some(*position);
            self.write_flow(out, flow, default)?;
        }
        Ok(())
    }

    fn write_flow(&self, out: &mut String, flow: &Flow, default: bool) -> fmt::Result {
        write!(out, "  -> {}", self.nodes[flow.target].id)?;
        match &flow.condition {
            Some(condition) => write!(out, "  if {}", one_line(condition.text()))?,
            None if default => write!(out, "  otherwise")?,
            None => {}
        }
        if let Some(name) = &flow.name {
            write!(out, "  [{}]", one_line(name))?;
        }
        writeln!(out)
    }

    /// Positions of the nodes, depth first from the start.
    fn order(&self) -> Vec<usize> {
        let mut seen = vec![false; self.nodes.len()];
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut open = vec![self.scopes[0].start];
        while let Some(position) = open.pop() {
            if std::mem::replace(&mut seen[position], true) {
                continue;
            }
            order.push(position);
            open.extend(
                self.nodes[position].outgoing.iter().rev().map(|flow| self.flows[*flow].target),
            );
        }
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

/// Runs of white space become one space, and no other control character reaches the terminal.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace(char::is_control, "?")
}
