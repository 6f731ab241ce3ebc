//! Every element that is read, and what it says about itself when it is described.

use crate::support::{document, parse, through};

/// An extension of the modeler inside `extensionElements`.
fn extended(inner: &str) -> String {
    format!("<extensionElements>{inner}</extensionElements>")
}

const WORKER: &str = "<zeebe:taskDefinition type=\"pack\"/>";
const SUB: &str = "<startEvent id=\"is\"/><endEvent id=\"ie\"/><sequenceFlow id=\"if\" sourceRef=\"is\" targetRef=\"ie\"/>";

/// Asserts that the process is read and that its description has all `lines`.
fn described(xml: &str, lines: &[&str]) {
    let text = parse(xml).describe();
    for line in lines {
        assert!(text.lines().any(|found| found == *line), "{line:?} in\n{text}");
    }
}

#[test]
fn every_task_is_read() {
    for (task, lines) in [
        ("<task id=\"t\"/>".to_owned(), &["t: nothing to do"][..]),
        ("<manualTask id=\"t\" name=\"Wave\"/>".to_owned(), &["t \"Wave\": nothing to do"]),
        (
            "<scriptTask id=\"t\" scriptFormat=\"feel\" rf:resultVariable=\"a\"><script>x + 1</script></scriptTask>".to_owned(),
            &["t: script task", "  a = x + 1"],
        ),
        (
            format!("<scriptTask id=\"t\">{}</scriptTask>", extended("<zeebe:script expression=\"=x\" resultVariable=\"a\"/>")),
            &["t: script task", "  a = x"],
        ),
        (
            format!("<scriptTask id=\"t\">{}</scriptTask>", extended(WORKER)),
            &["t: task for pack", "  3 attempts of at most 3600 s, pauses 5 s 30 s 120 s"],
        ),
        (
            format!("<serviceTask id=\"t\">{}</serviceTask>", extended("<zeebe:taskDefinition type=\"=x.kind\" retries=\"=x.tries\"/>")),
            &["t: task for = x.kind", "  = x.tries attempts of at most 3600 s, pauses 5 s 30 s 120 s"],
        ),
        (format!("<sendTask id=\"t\">{}</sendTask>", extended(WORKER)), &["t: task for pack"]),
        ("<sendTask id=\"t\" messageRef=\"M\"/>".to_owned(), &["t: send the message paid for = x"]),
        (format!("<businessRuleTask id=\"t\">{}</businessRuleTask>", extended(WORKER)), &["t: task for pack"]),
        ("<receiveTask id=\"t\" messageRef=\"M\"/>".to_owned(), &["t: wait for the message paid for = x"]),
        (
            "<receiveTask id=\"t\" messageRef=\"bpmn:Any\"/>".to_owned(),
            &["t: wait for the message = \"order-\" + x"],
        ),
        ("<userTask id=\"t\"/>".to_owned(), &["t: user task"]),
        (
            format!("<userTask id=\"t\">{}</userTask>", extended(
                "<zeebe:userTask/><zeebe:assignmentDefinition assignee=\"=x\" candidateGroups=\"sales, ops\" candidateUsers=\"=[x]\"/>\
                 <zeebe:taskSchedule dueDate=\"2027-01-31T08:00:00Z\"/><zeebe:formDefinition formId=\"check\" bindingType=\"latest\"/>\
                 <zeebe:priorityDefinition priority=\"70\"/>",
            )),
            &["t: user task", "  assignee = x", "  candidate groups sales, ops", "  candidate users = [x]", "  due 2027-01-31T08:00:00Z", "  form check"],
        ),
        (
            format!("<callActivity id=\"t\">{}</callActivity>", extended("<zeebe:calledElement processId=\"approve-discount\"/>")),
            &["t: call of approve-discount", "  hands over all inputs that it declares", "  takes over all its output"],
        ),
        (
            format!("<callActivity id=\"t\">{}</callActivity>", extended(
                "<zeebe:calledElement processId=\"=x\" propagateAllParentVariables=\"false\" propagateAllChildVariables=\"false\"/>",
            )),
            &["t: call of = x"],
        ),
        ("<callActivity id=\"t\" calledElement=\"other\"/>".to_owned(), &["t: call of other"]),
        (format!("<subProcess id=\"t\" name=\"Inside\">{SUB}</subProcess>"), &["t \"Inside\": sub-process", "  is: start", "    -> ie"]),
    ] {
        described(&through(&task, ""), lines);
    }
}

#[test]
fn every_gateway_is_read() {
    for (gateway, title) in [
        ("exclusiveGateway", "exclusive gateway"),
        ("parallelGateway", "parallel gateway"),
        ("inclusiveGateway", "inclusive gateway"),
    ] {
        described(&through(&format!("<{gateway} id=\"t\"/>"), ""), &[&format!("t: {title}")]);
    }
    let more = "<intermediateCatchEvent id=\"c\"><timerEventDefinition id=\"cd\"><timeDuration>PT1H</timeDuration></timerEventDefinition></intermediateCatchEvent>\
        <receiveTask id=\"r\" messageRef=\"M\"/><sequenceFlow id=\"1\" sourceRef=\"g\" targetRef=\"c\"/><sequenceFlow id=\"2\" sourceRef=\"g\" targetRef=\"r\"/>\
        <sequenceFlow id=\"3\" sourceRef=\"c\" targetRef=\"e\"/><sequenceFlow id=\"4\" sourceRef=\"r\" targetRef=\"e\"/>\
        <eventBasedGateway id=\"g\"/><sequenceFlow id=\"5\" sourceRef=\"t\" targetRef=\"g\"/>";
    described(
        &through("<task id=\"t\"/>", more),
        &[
            "g: event-based gateway",
            "c: wait for the timer PT1H",
            "r: wait for the message paid for = x",
        ],
    );
}

#[test]
fn every_event_between_start_and_end_is_read() {
    for (definition, caught) in [
        (
            "<timerEventDefinition id=\"d\"><timeDate>2027-01-31T08:00:00+01:00</timeDate></timerEventDefinition>",
            "the time 2027-01-31T08:00:00+01:00",
        ),
        (
            "<timerEventDefinition id=\"d\"><timeDuration>PT15M</timeDuration></timerEventDefinition>",
            "the timer PT15M",
        ),
        (
            "<timerEventDefinition id=\"d\"><timeDuration>=duration(x)</timeDuration></timerEventDefinition>",
            "the timer = duration(x)",
        ),
        ("<messageEventDefinition id=\"d\" messageRef=\"M\"/>", "the message paid for = x"),
        ("<signalEventDefinition id=\"d\" signalRef=\"S\"/>", "the signal stop"),
        ("<signalEventDefinition id=\"d\" signalRef=\"Computed\"/>", "the signal = x"),
    ] {
        let event =
            format!("<intermediateCatchEvent id=\"t\">{definition}</intermediateCatchEvent>");
        described(&through(&event, ""), &[&format!("t: wait for {caught}")]);
    }
    for (inner, title) in [
        (String::new(), "nothing to do"),
        (
            "<messageEventDefinition id=\"d\" messageRef=\"M\"/>".to_owned(),
            "send the message paid for = x",
        ),
        (format!("{}<messageEventDefinition id=\"d\"/>", extended(WORKER)), "task for pack"),
        ("<signalEventDefinition id=\"d\" signalRef=\"S\"/>".to_owned(), "send the signal stop"),
        (
            "<escalationEventDefinition id=\"d\" escalationRef=\"X\"/>".to_owned(),
            "send the escalation LATE",
        ),
    ] {
        let event = format!("<intermediateThrowEvent id=\"t\">{inner}</intermediateThrowEvent>");
        described(&through(&event, ""), &[&format!("t: {title}")]);
    }
}

#[test]
fn every_end_is_read() {
    for (inner, title) in [
        (String::new(), "end"),
        ("<terminateEventDefinition id=\"d\"/>".to_owned(), "end of everything around it"),
        (
            "<errorEventDefinition id=\"d\" errorRef=\"E\"/>".to_owned(),
            "end with the error NO_STOCK",
        ),
        (
            "<messageEventDefinition id=\"d\" messageRef=\"M\"/>".to_owned(),
            "end, send the message paid for = x",
        ),
        (format!("{}<messageEventDefinition id=\"d\"/>", extended(WORKER)), "end, task for pack"),
        (
            "<signalEventDefinition id=\"d\" signalRef=\"S\"/>".to_owned(),
            "end, send the signal stop",
        ),
        (
            "<escalationEventDefinition id=\"d\" escalationRef=\"X\"/>".to_owned(),
            "end, send the escalation LATE",
        ),
    ] {
        let xml = through("<task id=\"t\"/>", "")
            .replace("<endEvent id=\"e\"/>", &format!("<endEvent id=\"e\">{inner}</endEvent>"));
        described(&xml, &[&format!("e: {title}")]);
    }
}

/// What may interrupt an activity or begin an event sub-process.
const TRIGGERS: [(&str, &str); 9] = [
    (
        "<timerEventDefinition id=\"d\"><timeDuration>PT1M</timeDuration></timerEventDefinition>",
        "the timer PT1M",
    ),
    (
        "<timerEventDefinition id=\"d\"><timeDate>=x</timeDate></timerEventDefinition>",
        "the time = x",
    ),
    (
        "<timerEventDefinition id=\"d\"><timeCycle>R3/PT10S</timeCycle></timerEventDefinition>",
        "the cycle R3/PT10S",
    ),
    ("<messageEventDefinition id=\"d\" messageRef=\"M\"/>", "the message paid for = x"),
    ("<signalEventDefinition id=\"d\" signalRef=\"S\"/>", "the signal stop"),
    ("<escalationEventDefinition id=\"d\" escalationRef=\"X\"/>", "the escalation LATE"),
    ("<escalationEventDefinition id=\"d\"/>", "any escalation"),
    // Errors always interrupt.
    ("<errorEventDefinition id=\"d\" errorRef=\"E\"/>", "the error NO_STOCK"),
    ("<errorEventDefinition id=\"d\"/>", "any error"),
];

#[test]
fn every_boundary_event_is_read_on_every_activity() {
    let hosts = [
        "<task id=\"t\"/>".to_owned(),
        "<userTask id=\"t\"/>".to_owned(),
        "<receiveTask id=\"t\" messageRef=\"M\"/>".to_owned(),
        "<callActivity id=\"t\" calledElement=\"other\"/>".to_owned(),
        format!("<serviceTask id=\"t\">{}</serviceTask>", extended(WORKER)),
        format!("<subProcess id=\"t\">{SUB}</subProcess>"),
    ];
    for (position, (definition, caught)) in TRIGGERS.iter().enumerate() {
        for (cancel, beside) in [("", ""), (" cancelActivity=\"false\"", "beside it, ")] {
            if !beside.is_empty() && position >= 7 {
                continue;
            }
            for host in &hosts {
                let more = format!(
                    "<boundaryEvent id=\"b\" attachedToRef=\"t\"{cancel}>{definition}</boundaryEvent>\
                     <sequenceFlow id=\"bf\" sourceRef=\"b\" targetRef=\"e\"/>"
                );
                described(
                    &through(host, &more),
                    &[&format!("  b: {beside}on {caught}"), "    -> e"],
                );
            }
        }
    }
}

#[test]
fn every_start_of_an_event_sub_process_is_read() {
    for (position, (definition, caught)) in TRIGGERS.iter().enumerate() {
        for (interrupting, beside) in [("", ""), (" isInterrupting=\"false\"", "beside it, ")] {
            if !beside.is_empty() && position >= 7 {
                continue;
            }
            let inner = SUB.replace(
                "<startEvent id=\"is\"/>",
                &format!("<startEvent id=\"is\"{interrupting}>{definition}</startEvent>"),
            );
            let more =
                format!("<subProcess id=\"ev\" triggeredByEvent=\"true\">{inner}</subProcess>");
            let line = format!("  is: {beside}start on {caught}");
            described(&through("<task id=\"t\"/>", &more), &["ev: event sub-process", &line]);
            let nested =
                format!("<subProcess id=\"t\">{}{more}</subProcess>", SUB.replace("=\"i", "=\"j"));
            described(&through(&nested, ""), &["  ev: event sub-process", &format!("  {line}")]);
        }
    }
}

#[test]
fn activities_can_be_repeated() {
    let repeated = |inner: &str, attributes: &str| {
        format!(
            "<multiInstanceLoopCharacteristics{attributes}>{inner}</multiInstanceLoopCharacteristics>"
        )
    };
    let all = extended(
        "<zeebe:loopCharacteristics inputCollection=\"=x\" inputElement=\"item1\" outputCollection=\"sums\" outputElement=\"=item1.sum + loopCounter\"/>",
    ) + "<completionCondition>=numberOfCompletedInstances &gt; 3</completionCondition>";
    let lines = [
        "  for each item1 in x",
        "  sums = list of item1.sum + loopCounter",
        "  until numberOfCompletedInstances > 3",
    ];
    for (attributes, how) in
        [("", "all at once"), (" isSequential=\"true\"", "one after the other")]
    {
        let task = format!("<userTask id=\"t\">{}</userTask>", repeated(&all, attributes));
        described(
            &through(&task, ""),
            &[&format!("t: user task, {how}"), lines[0], lines[1], lines[2]],
        );
        let sub = format!("<subProcess id=\"t\">{}{SUB}</subProcess>", repeated(&all, attributes));
        described(
            &through(&sub, ""),
            &[&format!("t: sub-process, {how}"), lines[0], lines[1], lines[2]],
        );
    }
    let task = format!(
        "<task id=\"t\">{}</task>",
        repeated("<loopCardinality>count(x)</loopCardinality>", "")
    );
    described(&through(&task, ""), &["t: nothing to do, all at once", "  for each of count(x)"]);
}

#[test]
fn a_task_for_somebody_else_says_everything_about_its_answer() {
    let task = format!(
        "<serviceTask id=\"t\" rf:resultVariable=\"answer\">{}</serviceTask>",
        extended(
            "<zeebe:taskDefinition type=\"io.camunda:http-json:1\" retries=\"5\"/><zeebe:taskHeaders>\
             <zeebe:header key=\"resultExpression\" value=\"={status: response.status}\"/>\
             <zeebe:header key=\"errorExpression\" value=\"=if error.code = &quot;HTTP_STATUS_404&quot; then {errorType: &quot;bpmnError&quot;, code: &quot;GONE&quot;} else null\"/>\
             <zeebe:header key=\"retryBackoff\" value=\"PT1.5S\"/><zeebe:header key=\"elementTemplate\" value=\"v1\"/></zeebe:taskHeaders>\
             <zeebe:ioMapping><zeebe:input source=\"GET &quot;it&quot; \\ now\" target=\"method\"/><zeebe:input source=\"= x.url\" target=\"authentication.url\"/>\
             <zeebe:output source=\"=status\" target=\"order.answer.status\"/></zeebe:ioMapping><rf:task timeoutSeconds=\"60\"/>\
             <zeebe:properties><zeebe:property name=\"a\" value=\"b\"/></zeebe:properties>"
        )
    );
    described(
        &through(&task, ""),
        &[
            "t: task for io.camunda:http-json:1",
            "  5 attempts of at most 60 s, pauses 1.500 s",
            "  header elementTemplate = v1",
            "  answer = response",
            "  result = {status: response.status}",
            "  in method = \"GET \\\"it\\\" \\\\ now\"",
            "  in authentication.url = x.url",
            "  out order.answer.status = status",
        ],
    );
    let task = format!(
        "<serviceTask id=\"t\">{}</serviceTask>",
        extended("<zeebe:taskDefinition type=\"http\"/><rf:retry backOffSeconds=\"0 7\"/>")
    );
    described(&through(&task, ""), &["  3 attempts of at most 30 s, pauses 0 s 7 s"]);
}

#[test]
fn paths_split_and_meet_without_gateways() {
    let more = "<task id=\"a\"/><task id=\"b\"/><sequenceFlow id=\"1\" sourceRef=\"t\" targetRef=\"a\"><conditionExpression>=x &gt; 1</conditionExpression></sequenceFlow>\
        <sequenceFlow id=\"2\" sourceRef=\"t\" targetRef=\"b\"/><sequenceFlow id=\"3\" sourceRef=\"a\" targetRef=\"b\"/><sequenceFlow id=\"4\" sourceRef=\"b\" targetRef=\"e\"/>\
        <sequenceFlow id=\"5\" sourceRef=\"s\" targetRef=\"b\"/>";
    described(
        &through("<task id=\"t\" default=\"out\"/>", more),
        &["  -> e  otherwise", "  -> a  if x > 1", "  -> b"],
    );
}

#[test]
fn the_process_says_what_becomes_of_a_run_whose_task_fails() {
    let xml = document(&format!(
        "<extensionElements><rf:process onFailure=\"fail\" deadlineSeconds=\"60\"/><zeebe:versionTag value=\"1\"/></extensionElements>{SUB}"
    ));
    described(&xml, &["  deadline 60 s", "  ends as failed when a task fails for good"]);
    parse(&xml.replace("\"fail\"", "\"hold\""));
}

#[test]
fn names_are_open_only_where_an_answer_without_names_comes_in() {
    let script = "<scriptTask id=\"z\" scriptFormat=\"feel\" rf:resultVariable=\"a\"><script>whatever</script></scriptTask>\
        <sequenceFlow id=\"zf\" sourceRef=\"t\" targetRef=\"z\"/><sequenceFlow id=\"zg\" sourceRef=\"z\" targetRef=\"e\"/>";
    let named =
        "<zeebe:ioMapping><zeebe:output source=\"=unknown.part\" target=\"b\"/></zeebe:ioMapping>";
    let worker = |more: &str| {
        format!("<serviceTask id=\"t\">{}</serviceTask>", extended(&format!("{WORKER}{more}")))
    };
    let result =
        "<zeebe:taskHeaders><zeebe:header key=\"resultVariable\" value=\"b\"/></zeebe:taskHeaders>";
    for (open, task) in [
        (false, "<task id=\"t\"/>".to_owned()),
        (true, "<userTask id=\"t\"/>".to_owned()),
        (false, format!("<userTask id=\"t\">{}</userTask>", extended(named))),
        (true, worker("")),
        (false, worker(named)),
        (false, worker("").replace("pack", "http")),
        (false, worker(result)),
        (true, worker(&result.replace("resultVariable", "resultExpression").replace("\"b\"", "\"=response\""))),
        (true, "<receiveTask id=\"t\" messageRef=\"M\"/>".to_owned()),
        (true, "<callActivity id=\"t\" calledElement=\"c\"/>".to_owned()),
        (false, format!("<callActivity id=\"t\">{}</callActivity>", extended("<zeebe:calledElement processId=\"c\" propagateAllChildVariables=\"false\"/>"))),
        (true, "<intermediateCatchEvent id=\"t\"><signalEventDefinition id=\"d\" signalRef=\"S\"/></intermediateCatchEvent>".to_owned()),
        (false, "<intermediateCatchEvent id=\"t\"><timerEventDefinition id=\"d\"><timeDuration>PT1S</timeDuration></timerEventDefinition></intermediateCatchEvent>".to_owned()),
    ] {
        let read = runfleet_flow::Definition::parse(&through(&task, script));
        assert_eq!(read.is_ok(), open, "{task}: {:?}", read.err());
    }
}
