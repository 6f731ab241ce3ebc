//! Documents that are refused, and why.

use serde_json::json;

use crate::support::{NAMESPACES, document, map, parse, problems, refused, scripts};

const OK: &str = "<startEvent id=\"s\"/><endEvent id=\"e\"/><sequenceFlow id=\"f\" sourceRef=\"s\" targetRef=\"e\"/>";

#[test]
fn elements_that_are_not_run_are_refused_by_name() {
    for element in [
        "transaction",
        "adHocSubProcess",
        "complexGateway",
        "callChoreography",
        "choreographyTask",
        "subChoreography",
        "implicitThrowEvent",
        "event",
        "ioSpecification",
        "correlationSubscription",
        "resourceRole",
        "performer",
        "auditing",
    ] {
        refused(
            &document(&format!("{OK}<{element} id=\"u\"/>")),
            &format!("u: `{element}` is not supported"),
        );
        let inner = OK.replace("=\"", "=\"i");
        refused(
            &document(&format!(
                "<startEvent id=\"s\"/><subProcess id=\"sub\">{inner}<{element} id=\"u\"/></subProcess><endEvent id=\"e\"/>\
                 <sequenceFlow id=\"f\" sourceRef=\"s\" targetRef=\"sub\"/>\
                 <sequenceFlow id=\"g\" sourceRef=\"sub\" targetRef=\"e\"/>"
            )),
            &format!("u: `{element}` is not supported"),
        );
    }
    for element in [
        "itemDefinition",
        "import",
        "interface",
        "resource",
        "choreography",
        "globalTask",
        "globalUserTask",
        "correlationProperty",
        "conditionalEventDefinition",
        "partnerEntity",
        "relationship",
    ] {
        let xml = document(OK).replace("</process>", &format!("</process><{element} id=\"u\"/>"));
        refused(&xml, &format!("u: `{element}` is not supported"));
    }
}

#[test]
fn what_leads_to_a_refused_element_is_not_told_again() {
    let body = OK.replace("targetRef=\"e\"", "targetRef=\"u\"");
    let flow = "<sequenceFlow id=\"g\" sourceRef=\"u\" targetRef=\"e\"/>";
    let boundary = "<boundaryEvent id=\"b\" attachedToRef=\"u\"><errorEventDefinition id=\"d\"/></boundaryEvent>\
                    <sequenceFlow id=\"h\" sourceRef=\"b\" targetRef=\"e\"/>";
    let xml = document(&format!("{body}<transaction id=\"u\"/>{flow}{boundary}"));
    assert_eq!(problems(&xml), ["u: `transaction` is not supported"]);
}

#[test]
fn event_definitions_and_loops_are_refused_where_they_stand() {
    for (element, children) in [
        ("startEvent", &["conditional", "compensate", "cancel", "link", "terminate"][..]),
        ("endEvent", &["conditional", "compensate", "cancel", "link", "timer"][..]),
        ("intermediateCatchEvent", &["conditional", "link", "error", "escalation", "cancel"][..]),
        ("intermediateThrowEvent", &["compensate", "link", "error", "timer", "terminate"][..]),
        ("boundaryEvent", &["conditional", "compensate", "cancel", "link", "terminate"][..]),
        ("scriptTask", &["timer"][..]),
        ("exclusiveGateway", &["signal"][..]),
    ] {
        for child in children {
            let child = format!("{child}EventDefinition");
            let xml = document(&format!("{OK}<{element} id=\"x\"><{child} id=\"d\"/></{element}>"));
            refused(&xml, &format!("x: `{child}` is not supported in a `{element}`"));
        }
    }
    for child in ["timer", "message", "signal", "error", "escalation"] {
        let start = format!("<startEvent id=\"s\"><{child}EventDefinition id=\"d\"/></startEvent>");
        refused(
            &document(&OK.replace("<startEvent id=\"s\"/>", &start)),
            &format!(
                "s: `{child}EventDefinition` is not supported in a `startEvent` outside an event sub-process"
            ),
        );
    }
    for child in
        ["standardLoopCharacteristics", "ioSpecification", "eventDefinitionRef", "rendering"]
    {
        let xml = scripts(&["1"]).replace("<script>", &format!("<{child}/><script>"));
        refused(&xml, &format!("t0: `{child}` is not supported in a `scriptTask`"));
    }
    let xml = document(&OK.replace(
        "<endEvent id=\"e\"/>",
        "<endEvent id=\"e\"><eventDefinitionRef>d</eventDefinitionRef></endEvent>",
    ));
    refused(&xml, "e: `eventDefinitionRef` is not supported in a `endEvent`");
}

#[test]
fn drawing_documentation_and_foreign_extensions_are_passed_over() {
    let body = format!(
        "<documentation>text</documentation>{}<textAnnotation id=\"a\"><text>hi</text></textAnnotation>\
         <association id=\"as\" sourceRef=\"s\" targetRef=\"a\"/><group id=\"gr\"/><dataObject id=\"do\"/>\
         <dataObjectReference id=\"dor\" dataObjectRef=\"do\"/><dataStoreReference id=\"ds\"/>\
         <laneSet id=\"ls\"><lane id=\"l\"><flowNodeRef>s</flowNodeRef></lane></laneSet>",
        OK.replace(
            "<startEvent id=\"s\"/>",
            "<startEvent id=\"s\" xmlns:o=\"urn:other\" o:color=\"red\"><extensionElements><o:thing><o:more/></o:thing>\
             </extensionElements></startEvent>"
        )
    );
    let xml = document(&body).replace(
        "</definitions>",
        "<collaboration id=\"c\"><participant id=\"p1\" processRef=\"p\"/><participant id=\"p2\" processRef=\"q\"/>\
         <messageFlow id=\"mf\" sourceRef=\"p2\" targetRef=\"s\"/></collaboration><category id=\"cat\"/>\
         <process id=\"q\" isExecutable=\"false\"><transaction id=\"never\"/></process>\
         <d:BPMNDiagram xmlns:d=\"http://www.omg.org/spec/BPMN/20100524/DI\" id=\"s\"/></definitions>",
    );
    assert_eq!(parse(&xml).summary().id, "p");
}

#[test]
fn all_problems_are_told_at_once() {
    let found = problems(&document(
        "<startEvent id=\"s\"/><startEvent id=\"s\"/><transaction id=\"u\"/>\
         <scriptTask id=\"t\" scriptFormat=\"javascript\" rf:resultVariable=\"a b\"><script>1 +</script></scriptTask>\
         <sequenceFlow id=\"f\" sourceRef=\"s\" targetRef=\"nowhere\"/>",
    ));
    for expected in [
        "s: this id is used more than once",
        "u: `transaction` is not supported",
        "t: scripts in `javascript` are not supported, only `feel`",
        "t: `1 +` is not a valid FEEL expression",
        "f: targetRef `nowhere` names no element that can be run",
        "p: the process has no end event",
        "p: the process must have exactly one start event, and has 2",
    ] {
        assert!(found.iter().any(|problem| problem == expected), "{expected:?} in {found:#?}");
    }
    assert!(
        found.iter().any(|problem| problem.starts_with("t: a variable name is one word")),
        "{found:#?}"
    );
}

#[test]
fn a_document_has_exactly_one_executable_process() {
    let process = "<process id=\"p\" isExecutable=\"true\"></process>";
    let definitions = |inner: &str| format!("<definitions {NAMESPACES}>{inner}</definitions>");
    refused(&definitions(""), "the document must have exactly one executable process, and has 0");
    refused(
        &definitions(&format!("{process}{}", process.replace("\"p\"", "\"q\""))),
        "the document must have exactly one executable process, and has 2",
    );
    refused(
        &document(OK).replace(" isExecutable=\"true\"", ""),
        "p: the process is not executable; set isExecutable=\"true\"",
    );
    refused(
        &document(OK).replace("id=\"p\"", "id=\"a b\""),
        "the id of the process must be 1 to 64 letters, digits, `_` and `-`",
    );
    refused(
        "<definitions/>",
        "the root element must be `definitions` in the namespace http://www.omg.org/spec/BPMN/20100524/MODEL",
    );
    assert!(problems("<definitions")[0].starts_with("the document is not well-formed XML: "));
}

#[test]
fn a_script_task_needs_one_feel_script_and_a_result_variable() {
    let task = |task: &str| {
        document(&format!(
            "<startEvent id=\"s\"/>{task}<endEvent id=\"e\"/><sequenceFlow id=\"f\" sourceRef=\"s\" targetRef=\"t\"/>\
             <sequenceFlow id=\"g\" sourceRef=\"t\" targetRef=\"e\"/>"
        ))
    };
    let zeebe = "<extensionElements><zeebe:script expression=\"= 1\" resultVariable=\"a\"/></extensionElements>";
    let own = "<scriptTask id=\"t\" scriptFormat=\"application/feel\" rf:resultVariable=\"a\"><script>=1</script></scriptTask>";
    parse(&task(own));
    parse(&task(&format!("<scriptTask id=\"t\">{zeebe}</scriptTask>")));
    refused(&task("<scriptTask id=\"t\"/>"), "t: the script task has no script");
    refused(
        &task(&own.replace("<script>", &format!("{zeebe}<script>"))),
        "t: the script task has two scripts",
    );
    refused(
        &task(&own.replace(" scriptFormat=\"application/feel\"", "")),
        "t: scriptFormat must be `feel`",
    );
    refused(
        &task(&own.replace(" rf:resultVariable=\"a\"", "")),
        "t: the script task does not name the variable for its result (rf:resultVariable)",
    );
    refused(
        &task(&own.replace("\"a\"", "\"sum\"")),
        "t: `sum` has a meaning in expressions and cannot be the name of a variable",
    );
    refused(
        &task(&own.replace("id=\"t\"", "id=\"t\" isForCompensation=\"true\"")),
        "t: compensation is not supported",
    );
    refused(
        &task(&own.replace("id=\"t\"", "id=\"t\" startQuantity=\"2\"")),
        "t: `startQuantity` other than 1 is not supported",
    );
    refused(
        &task(&own.replace("id=\"t\"", "id=\"t\" rf:retries=\"2\"")),
        "t: the attribute `rf:retries` is not known here",
    );
    refused(
        &task(&format!("<scriptTask id=\"t\">{}</scriptTask>", zeebe.replace("= 1", "1"))),
        "t: the script must be an expression, which begins with `=`",
    );
}

#[test]
fn the_shape_must_lead_from_the_start_to_an_end() {
    let gateway = |flows: &str, default: &str| {
        document(&format!(
            "<startEvent id=\"s\"/><exclusiveGateway id=\"g\"{default}/><endEvent id=\"e\"/><endEvent id=\"d\"/>\
             <sequenceFlow id=\"f\" sourceRef=\"s\" targetRef=\"g\"/>{flows}"
        ))
    };
    let to = |id: &str, target: &str, inner: &str| {
        format!(
            "<sequenceFlow id=\"{id}\" sourceRef=\"g\" targetRef=\"{target}\">{inner}</sequenceFlow>"
        )
    };
    let condition = "<conditionExpression>true</conditionExpression>";
    parse(&gateway(&(to("a", "e", condition) + to("b", "d", "").as_str()), " default=\"b\""));
    refused(
        &gateway(&(to("a", "e", condition) + to("b", "d", "").as_str()), ""),
        "b: a flow that leaves a gateway with several flows needs a condition, or to be the default",
    );
    refused(
        &gateway(&(to("a", "e", condition) + to("b", "d", condition).as_str()), " default=\"b\""),
        "b: the default flow must have no condition",
    );
    refused(
        &gateway(&(to("a", "e", condition) + to("b", "d", "").as_str()), " default=\"f\""),
        "g: the default flow does not leave this element",
    );
    refused(
        &gateway(&to("a", "e", ""), ""),
        "d: this element cannot be reached from the start event",
    );
    refused(&gateway("", ""), "g: no sequence flow leaves this element");
    refused(
        &gateway(&(to("a", "e", condition) + to("b", "s", "").as_str()), " default=\"b\""),
        "s: a sequence flow leads into the start event",
    );
    refused(
        &document(
            &OK.replace(
                "targetRef=\"e\"/>",
                &format!("targetRef=\"e\">{condition}</sequenceFlow>"),
            ),
        ),
        "f: only a flow that leaves an exclusive or inclusive gateway or an activity can have a condition",
    );
    refused(
        &document(&OK.replace(" targetRef=\"e\"", "")),
        "f: a sequence flow needs sourceRef and targetRef",
    );
    refused(
        &document(&format!("{OK}<sequenceFlow id=\"g\" sourceRef=\"e\" targetRef=\"e\"/>")),
        "e: a sequence flow leaves the end event",
    );
    refused(
        &document(&OK.replace(
            "<startEvent id=\"s\"/>",
            "<startEvent id=\"s\"><outgoing>x</outgoing></startEvent>",
        )),
        "s: `outgoing` lists `x`, which is no flow that leaves this element",
    );
    refused(
        &document(&OK.replace("<endEvent id=\"e\"/>", "<endEvent/>")),
        "a `endEvent` needs an id of 1 to 128 bytes",
    );
}

#[test]
fn a_loop_without_an_end_is_refused() {
    refused(
        &document(
            "<startEvent id=\"s\"/><exclusiveGateway id=\"g\"/><exclusiveGateway id=\"h\"/><endEvent id=\"e\"/>\
             <sequenceFlow id=\"a\" sourceRef=\"s\" targetRef=\"g\"/><sequenceFlow id=\"b\" sourceRef=\"g\" targetRef=\"h\"/>\
             <sequenceFlow id=\"c\" sourceRef=\"h\" targetRef=\"g\"/>",
        ),
        "g: no end event can be reached from this element",
    );
}

#[test]
fn mistakes_in_the_products_own_extensions_count() {
    let with = |extension: &str| {
        document(&format!("<extensionElements>{extension}</extensionElements>{OK}"))
    };
    for (extension, expected) in [
        (
            "<rf:variable name=\"a\" direction=\"input\" type=\"integer\"/>",
            "p: variable `a`: the type is number, string, boolean, date, dateTime, list, context or any",
        ),
        (
            "<rf:variable name=\"a\" direction=\"inout\"/>",
            "p: variable `a`: the direction is `input` or `output`",
        ),
        (
            "<rf:variable name=\"a\" direction=\"output\" required=\"true\"/>",
            "p: variable `a`: only an input can be required",
        ),
        (
            "<rf:variable name=\"a\" direction=\"input\" required=\"yes\"/>",
            "p: variable `a`: required is `true` or `false`",
        ),
        (
            "<rf:variable name=\"a\" direction=\"input\" default=\"1\"/>",
            "p: variable `a`: `default` is not known",
        ),
        (
            "<rf:variable name=\"a\" direction=\"input\"/><rf:variable name=\"a\" direction=\"input\"/>",
            "p: variable `a` is declared twice",
        ),
        (
            "<rf:variable name=\"a\" direction=\"input\" type=\"list\"/><rf:variable name=\"a\" direction=\"output\" type=\"date\"/>",
            "p: variable `a` has two types",
        ),
        ("<rf:process kind=\"batch\"/>", "p: the kind of a process is `normal`, `event` or `sub`"),
        ("<rf:process deadlineSeconds=\"0\"/>", "p: deadlineSeconds is 1 to 31536000"),
        ("<rf:process/><rf:process/>", "p: `rf:process` is given twice"),
        ("<rf:process onFailure=\"retry\"/>", "p: onFailure is `hold` or `fail`"),
        ("<rf:timer/>", "p: `rf:timer` is not known"),
    ] {
        refused(&with(extension), expected);
    }
    let event = parse(&with("<rf:process kind=\"event\"/>"));
    assert_eq!(event.summary().kind.as_str(), "event");
}

#[test]
fn inputs_are_checked_by_name_and_never_repeat_a_value() {
    let definition = parse(include_str!("../../../../deploy/example/approve-discount.bpmn"));
    for (input, expected) in [
        (json!({}), "input variable `amount` is required"),
        (json!({"amount": null}), "input variable `amount` is required"),
        (json!({"amount": "secret"}), "input variable `amount` must be of type number"),
        (
            json!({"amount": 1, "customerTier": 5}),
            "input variable `customerTier` must be of type string",
        ),
        (json!({"amount": 1, "discount": 5}), "`discount` is not an input variable of the process"),
    ] {
        let problem = definition.start(map(input)).expect_err("refused");
        assert_eq!(problem.to_string(), expected);
        assert!(expected.contains(problem.variable().expect("it names one")));
    }
    assert!(definition.start(map(json!({"amount": 1, "customerTier": null}))).is_ok());
    let anything = parse(&scripts(&["x"]));
    assert!(anything.start(map(json!({"x": {" a": 1}}))).is_err());
    assert!(anything.start(map(json!({"x": "a".repeat(300_000)}))).is_err());
}
