//! Shapes of drawings that are refused: events, sub-processes and gateways where they cannot be.

use crate::support::{problems, refused, through};

const TIMER: &str =
    "<timerEventDefinition id=\"td\"><timeDuration>PT1S</timeDuration></timerEventDefinition>";
const SUB: &str = "<startEvent id=\"is\"/><endEvent id=\"ie\"/><sequenceFlow id=\"if\" sourceRef=\"is\" targetRef=\"ie\"/>";

fn flow(id: &str, source: &str, target: &str) -> String {
    format!("<sequenceFlow id=\"{id}\" sourceRef=\"{source}\" targetRef=\"{target}\"/>")
}

#[test]
fn boundary_events_belong_to_an_activity_and_lead_somewhere() {
    let boundary = |host: &str| format!("<boundaryEvent id=\"b\"{host}>{TIMER}</boundaryEvent>");
    let out = flow("bf", "b", "e");
    let on_task = boundary(" attachedToRef=\"t\"");
    for (more, expected) in [
        (boundary("") + out.as_str(), "b: the boundary event is attached to nothing (attachedToRef)"),
        (boundary(" attachedToRef=\"s\"") + out.as_str(), "b: attachedToRef `s` names no activity beside the event"),
        (boundary(" attachedToRef=\"nothing\"") + out.as_str(), "b: attachedToRef `nothing` names no activity beside the event"),
        (on_task.clone(), "b: no sequence flow leaves this element"),
        (on_task.clone() + out.as_str() + flow("x", "t", "b").as_str(), "b: a sequence flow leads into the boundary event"),
        (
            "<boundaryEvent id=\"b\" attachedToRef=\"t\"/>".to_owned() + out.as_str(),
            "b: the event does not say what it waits for",
        ),
        (
            "<boundaryEvent id=\"b\" attachedToRef=\"t\" cancelActivity=\"false\"><errorEventDefinition id=\"d\"/></boundaryEvent>".to_owned() + out.as_str(),
            "b: an error always interrupts",
        ),
        (
            format!("{on_task}{out}<subProcess id=\"ev\" triggeredByEvent=\"true\">{SUB}</subProcess><boundaryEvent id=\"c\" attachedToRef=\"ev\">{}</boundaryEvent>{}", TIMER.replace("td", "te"), flow("cf", "c", "e")),
            "c: attachedToRef `ev` names no activity beside the event",
        ),
    ] {
        refused(&through("<task id=\"t\"/>", &more), expected);
    }
    let inside = format!(
        "<subProcess id=\"t\">{SUB}{}{}</subProcess>",
        boundary(" attachedToRef=\"t\""),
        flow("bf", "b", "ie")
    );
    refused(&through(&inside, ""), "b: attachedToRef `t` names no activity beside the event");
}

#[test]
fn one_error_is_caught_once_at_one_place() {
    let caught = |id: &str, kind: &str, reference: &str| {
        format!(
            "<boundaryEvent id=\"{id}\" attachedToRef=\"t\"><{kind}EventDefinition id=\"d{id}\"{reference}/></boundaryEvent>{}",
            flow(&format!("f{id}"), id, "e")
        )
    };
    let error = " errorRef=\"E\"";
    for (kind, reference, expected) in [
        ("error", "", "b: the error without a code is caught here twice"),
        ("error", error, "b: the error `NO_STOCK` is caught here twice"),
        ("escalation", " escalationRef=\"X\"", "b: the escalation `LATE` is caught here twice"),
    ] {
        let more = caught("a", kind, reference) + caught("b", kind, reference).as_str();
        assert_eq!(problems(&through("<task id=\"t\"/>", &more)), [expected]);
    }
    let both = caught("a", "error", error)
        + caught("b", "error", "").as_str()
        + caught("c", "escalation", "").as_str();
    assert!(runfleet_flow::Definition::parse(&through("<task id=\"t\"/>", &both)).is_ok());
    let event = |id: &str| {
        let start = format!(
            "<startEvent id=\"{id}s\"><errorEventDefinition id=\"{id}d\" errorRef=\"E\"/></startEvent>"
        );
        let inner = SUB
            .replace("<startEvent id=\"is\"/>", &start)
            .replace("\"is\"", &format!("\"{id}s\""))
            .replace("\"i", &format!("\"{id}"));
        format!("<subProcess id=\"{id}\" triggeredByEvent=\"true\">{inner}</subProcess>")
    };
    let more = event("v") + event("w").as_str();
    assert_eq!(
        problems(&through("<task id=\"t\"/>", &more)),
        ["ws: the error `NO_STOCK` is caught here twice"]
    );
}

#[test]
fn sub_processes_have_a_start_and_an_end_of_their_own() {
    for (inner, expected) in [
        ("", "t: the sub-process must have exactly one start event, and has 0"),
        (
            "<startEvent id=\"a\"/><startEvent id=\"b\"/>",
            "t: the sub-process must have exactly one start event, and has 2",
        ),
        ("<startEvent id=\"a\"/>", "t: the sub-process has no end event"),
        (
            "<startEvent id=\"a\"><signalEventDefinition id=\"d\" signalRef=\"S\"/></startEvent>",
            "a: `signalEventDefinition` is not supported in a `startEvent` outside an event sub-process",
        ),
        (
            "<startEvent id=\"a\"/><task id=\"b\"/><endEvent id=\"c\"/>",
            "b: this element cannot be reached from the start event",
        ),
        ("<laneSet id=\"l\"/>", "l: `laneSet` is not supported"),
        (
            "<standardLoopCharacteristics id=\"l\"/>",
            "l: `standardLoopCharacteristics` is not supported",
        ),
        ("<standardLoopCharacteristics/>", "t: `standardLoopCharacteristics` is not supported"),
    ] {
        refused(&through(&format!("<subProcess id=\"t\">{inner}</subProcess>"), ""), expected);
    }
    let event = |inner: &str, more: &str| {
        through(
            "<task id=\"t\"/>",
            &format!("<subProcess id=\"ev\" triggeredByEvent=\"true\">{inner}</subProcess>{more}"),
        )
    };
    let start = SUB
        .replace("<startEvent id=\"is\"/>", &format!("<startEvent id=\"is\">{TIMER}</startEvent>"));
    refused(&event(SUB, ""), "is: the start of an event sub-process needs an event");
    refused(
        &event("<endEvent id=\"ie\"/>", ""),
        "ev: the event sub-process must have exactly one start event, and has 0",
    );
    refused(
        &event(&start, &flow("x", "t", "ev")),
        "ev: no sequence flow can lead into or out of an event sub-process",
    );
    refused(
        &event(&start, &flow("x", "ev", "e")),
        "ev: no sequence flow can lead into or out of an event sub-process",
    );
    let error = start
        .replace(TIMER, "<errorEventDefinition id=\"d\"/>")
        .replace("\"is\">", "\"is\" isInterrupting=\"false\">");
    refused(&event(&error, ""), "is: an error always interrupts");
    let mapped = format!("<extensionElements><zeebe:ioMapping/></extensionElements>{start}");
    refused(&event(&mapped, ""), "ev: `zeebe:ioMapping` is not supported in a `subProcess`");
}

#[test]
fn flows_stay_in_their_scope() {
    let sub = |more: &str| {
        format!(
            "<subProcess id=\"t\">{SUB}<task id=\"it\"/>{}{}{more}</subProcess>",
            flow("i1", "is", "it"),
            flow("i2", "it", "ie")
        )
    };
    assert!(runfleet_flow::Definition::parse(&through(&sub(""), "")).is_ok());
    refused(
        &through(&sub(""), &flow("x", "s", "it")),
        "x: targetRef `it` lies in another process or sub-process",
    );
    refused(
        &through(&sub(""), &flow("x", "it", "e")),
        "x: sourceRef `it` lies in another process or sub-process",
    );
    refused(
        &through(&sub(&flow("x", "s", "it")), ""),
        "x: sourceRef `s` lies in another process or sub-process",
    );
    let around = through(&sub("<task id=\"far\"/>"), &flow("x", "s", "far"));
    refused(&around, "far: this element cannot be reached from the start event");
}

#[test]
fn an_event_based_gateway_is_followed_by_events_alone() {
    let catch = |id: &str| {
        format!(
            "<intermediateCatchEvent id=\"{id}\">{}</intermediateCatchEvent>{}",
            TIMER.replace("td", &format!("{id}d")),
            flow(&format!("{id}e"), id, "e")
        )
    };
    let drawn = |more: &str| {
        let receive = format!("<receiveTask id=\"r\" messageRef=\"M\"/>{}", flow("re", "r", "e"));
        let flows =
            flow("tg", "t", "g") + flow("gc", "g", "c").as_str() + flow("gr", "g", "r").as_str();
        through(
            "<task id=\"t\"/>",
            &format!("<eventBasedGateway id=\"g\"/>{}{receive}{flows}{more}", catch("c")),
        )
    };
    assert!(runfleet_flow::Definition::parse(&drawn("")).is_ok());
    for (more, expected) in [
        (flow("x", "t", "c"), "c: only the event-based gateway before it can lead to this element"),
        (flow("x", "g", "e"), "e: an event-based gateway is followed by catch events and receive tasks only"),
        (
            format!("<boundaryEvent id=\"b\" attachedToRef=\"r\">{TIMER}</boundaryEvent>{}", flow("x", "b", "e")),
            "r: a receive task after an event-based gateway has no boundary events and is not multi-instance",
        ),
        (
            "<sequenceFlow id=\"x\" sourceRef=\"g\" targetRef=\"c\"><conditionExpression>true</conditionExpression></sequenceFlow>".to_owned(),
            "x: only a flow that leaves an exclusive or inclusive gateway or an activity can have a condition",
        ),
    ] {
        refused(&drawn(&more), expected);
    }
    let single = format!(
        "<eventBasedGateway id=\"g\"/>{}{}{}",
        catch("c"),
        flow("tg", "t", "g"),
        flow("gc", "g", "c")
    );
    refused(
        &through("<task id=\"t\"/>", &single),
        "g: an event-based gateway needs at least two sequence flows that leave it",
    );
}

#[test]
fn conditions_and_defaults_stand_where_somebody_decides() {
    let conditional = |source: &str| {
        format!(
            "<sequenceFlow id=\"x\" sourceRef=\"{source}\" targetRef=\"e\"><conditionExpression>true</conditionExpression></sequenceFlow>"
        )
    };
    let told = "x: only a flow that leaves an exclusive or inclusive gateway or an activity can have a condition";
    for node in ["<parallelGateway id=\"t\"/>", "<intermediateThrowEvent id=\"t\"/>"] {
        refused(&through(node, &conditional("t")), told);
        refused(
            &through(&node.replace("\"t\"", "\"t\" default=\"out\""), ""),
            "t: this element cannot have a default flow",
        );
    }
    refused(&through("<task id=\"t\"/>", &conditional("s")), told);
    refused(
        &through("<task id=\"t\" default=\"out\"/>", ""),
        "t: a default flow needs another flow with a condition",
    );
    refused(
        &through("<task id=\"t\" default=\"in\"/>", &conditional("t")),
        "t: the default flow does not leave this element",
    );
    refused(
        &through("<inclusiveGateway id=\"t\"/>", &conditional("t")),
        "out: a flow that leaves a gateway with several flows needs a condition, or to be the default",
    );
    assert!(
        runfleet_flow::Definition::parse(&through(
            "<inclusiveGateway id=\"t\" default=\"out\"/>",
            &conditional("t")
        ))
        .is_ok()
    );
    assert!(
        runfleet_flow::Definition::parse(&through(
            "<task id=\"t\" default=\"out\"/>",
            &conditional("t")
        ))
        .is_ok()
    );
}
