//! Small BPMN documents, and the pieces of them that tests have in common.

use std::fmt::Write;

/// A document with one process, whose flows are given as `a -> b, b -> c`.
pub fn bpmn(id: &str, settings: &str, elements: &str, flows: &str, roots: &str) -> String {
    let mut drawn = String::new();
    for (number, flow) in flows.split(',').enumerate() {
        let (source, target) = flow.split_once("->").unwrap_or((flow, flow));
        let (source, target) = (source.trim(), target.trim());
        let _ = write!(
            drawn,
            r#"<sequenceFlow id="f{number}" sourceRef="{source}" targetRef="{target}"/>"#
        );
    }
    format!(
        r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:rf="urn:runfleet:bpmn:1"
            xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" targetNamespace="urn:test">
          <process id="{id}" isExecutable="true"><extensionElements>{settings}</extensionElements>
          {elements}{drawn}</process>{roots}</definitions>"#
    )
}

/// Inputs of these names and the output `answer`, of any type.
pub fn variables(inputs: &[&str]) -> String {
    let mut drawn = r#"<rf:variable name="answer" direction="output" type="any"/>"#.to_owned();
    for name in inputs {
        let _ = write!(drawn, r#"<rf:variable name="{name}" direction="input" type="any"/>"#);
    }
    drawn
}

/// A script that puts the value of an expression into `answer`.
pub fn script(id: &str, expression: &str) -> String {
    let expression = expression.replace('"', "&quot;");
    format!(
        r#"<scriptTask id="{id}"><extensionElements><zeebe:script expression="={expression}" resultVariable="answer"/>
        </extensionElements></scriptTask>"#
    )
}

/// A task for somebody else: its type, the attempts of it, and what else its extension elements hold.
pub fn task(id: &str, work: &str, attempts: u32, more: &str) -> String {
    format!(
        r#"<serviceTask id="{id}"><extensionElements><zeebe:taskDefinition type="{work}" retries="{attempts}"/>{more}
        </extensionElements></serviceTask>"#
    )
}
