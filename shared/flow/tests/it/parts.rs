//! Parts of elements that are refused, one row each: attributes, extensions, references, texts.

use crate::support::{document, problems, refused, through};

/// Asserts that `node`, which has the id `t`, is refused with exactly `expected` at it.
fn wrong(node: &str, expected: &str) {
    refused(&through(node, ""), &format!("t: {expected}"));
}

fn extended(inner: &str) -> String {
    format!("<extensionElements>{inner}</extensionElements>")
}

#[test]
fn extensions_are_refused_by_name_where_they_have_no_meaning() {
    for name in [
        "executionListeners",
        "taskListeners",
        "adHoc",
        "linkedResources",
        "conditionalFilter",
        "calledDecision",
        "newThing",
    ] {
        for element in [
            "task",
            "manualTask",
            "scriptTask",
            "serviceTask",
            "sendTask",
            "receiveTask",
            "userTask",
            "businessRuleTask",
            "callActivity",
            "subProcess",
            "exclusiveGateway",
            "parallelGateway",
            "inclusiveGateway",
            "eventBasedGateway",
            "intermediateCatchEvent",
            "intermediateThrowEvent",
        ] {
            wrong(
                &format!(
                    "<{element} id=\"t\">{}</{element}>",
                    extended(&format!("<zeebe:{name}/>"))
                ),
                &format!("`zeebe:{name}` is not supported in a `{element}`"),
            );
        }
        let xml =
            document(&format!("{}<startEvent id=\"s\"/>", extended(&format!("<zeebe:{name}/>"))));
        refused(&xml, &format!("p: `zeebe:{name}` is not supported in a `process`"));
    }
    for (element, name) in [
        ("task", "taskDefinition"),
        ("userTask", "taskDefinition"),
        ("receiveTask", "taskDefinition"),
        ("userTask", "taskHeaders"),
        ("serviceTask", "script"),
        ("serviceTask", "formDefinition"),
        ("callActivity", "taskDefinition"),
        ("task", "calledElement"),
        ("exclusiveGateway", "ioMapping"),
        ("intermediateThrowEvent", "taskDefinition"),
        ("serviceTask", "subscription"),
        ("userTask", "loopCharacteristics"),
    ] {
        wrong(
            &format!("<{element} id=\"t\">{}</{element}>", extended(&format!("<zeebe:{name}/>"))),
            &format!("`zeebe:{name}` is not supported in a `{element}`"),
        );
    }
    let flow = through("<task id=\"t\"/>", "").replace("targetRef=\"e\"/>", "targetRef=\"e\"><extensionElements><zeebe:executionListeners/></extensionElements></sequenceFlow>");
    refused(&flow, "out: `zeebe:executionListeners` is not supported in a `sequenceFlow`");
    let definition = format!(
        "<intermediateCatchEvent id=\"t\"><messageEventDefinition id=\"d\" messageRef=\"M\">{}</messageEventDefinition></intermediateCatchEvent>",
        extended("<zeebe:taskDefinition/>")
    );
    wrong(&definition, "`zeebe:taskDefinition` is not supported in a `messageEventDefinition`");
}

#[test]
fn own_extensions_are_refused_where_they_have_no_meaning() {
    for element in [
        "task",
        "userTask",
        "exclusiveGateway",
        "callActivity",
        "subProcess",
        "intermediateThrowEvent",
        "scriptTask",
    ] {
        for name in ["task", "retry", "process", "variable", "other"] {
            wrong(
                &format!("<{element} id=\"t\">{}</{element}>", extended(&format!("<rf:{name}/>"))),
                &format!("`rf:{name}` is not known here"),
            );
        }
        wrong(
            &format!("<{element} id=\"t\" rf:later=\"1\"/>"),
            "the attribute `rf:later` is not known here",
        );
        if element != "scriptTask" {
            wrong(
                &format!("<{element} id=\"t\" rf:resultVariable=\"a\"/>"),
                "the attribute `rf:resultVariable` is not known here",
            );
        }
    }
}

#[test]
fn work_for_an_agent_must_be_said_completely() {
    for (inner, expected) in [
        (
            "<zeebe:taskDefinition type=\"runfleet:robot\"/>",
            "the type of the task is reserved; there is only `runfleet:agent`",
        ),
        (
            "<zeebe:taskDefinition type=\"runfleet:agent\"/>",
            "the task for an agent has no `agentId` (a header or an input)",
        ),
        (
            "<zeebe:taskDefinition type=\"runfleet:agent\"/><zeebe:ioMapping><zeebe:input source=\"=1\" target=\"agentId\"/></zeebe:ioMapping>",
            "the task for an agent has no `instruction` (a header or an input)",
        ),
        (
            "<zeebe:taskDefinition type=\"runfleet:agent\"/><zeebe:taskHeaders><zeebe:header key=\"mood\" value=\"good\"/></zeebe:taskHeaders>",
            "the header `mood` is not known in a task for an agent",
        ),
        (
            "<zeebe:taskDefinition type=\"runfleet:agent\"/><zeebe:taskHeaders><zeebe:header key=\"resultSchema\" value=\"[]\"/></zeebe:taskHeaders>",
            "the header `resultSchema` is no JSON object",
        ),
        (
            "<zeebe:taskDefinition type=\"runfleet:agent\"/><rf:task timeoutSeconds=\"1801\"/>",
            "timeoutSeconds is 1 to 1800 here",
        ),
    ] {
        wrong(&format!("<serviceTask id=\"t\">{}</serviceTask>", extended(inner)), expected);
    }
}

#[test]
fn work_for_somebody_else_must_be_said_completely() {
    for element in ["serviceTask", "sendTask", "businessRuleTask"] {
        wrong(
            &format!("<{element} id=\"t\"/>"),
            &format!("the `{element}` does not say who carries it out (zeebe:taskDefinition)"),
        );
    }
    let long = "a".repeat(129);
    for (inner, expected) in [
        ("<zeebe:taskDefinition/>", "the type of the task is empty"),
        ("<zeebe:taskDefinition type=\" \"/>", "the type of the task is empty"),
        ("<zeebe:taskDefinition type=\"=1 +\"/>", "`1 +` is not a valid FEEL expression"),
        ("<zeebe:taskDefinition type=\"a\" retries=\"0\"/>", "`retries` is 1 to 100"),
        ("<zeebe:taskDefinition type=\"a\" retries=\"101\"/>", "`retries` is 1 to 100"),
        ("<zeebe:taskDefinition type=\"a\" retries=\"many\"/>", "`retries` is 1 to 100"),
        (
            "<zeebe:taskDefinition type=\"a\" later=\"1\"/>",
            "`later` of `zeebe:taskDefinition` is not supported",
        ),
        (
            "<zeebe:taskDefinition type=\"a\"><zeebe:x/></zeebe:taskDefinition>",
            "`x` is not supported in `zeebe:taskDefinition`",
        ),
        (
            "<zeebe:taskDefinition type=\"a\"/><zeebe:taskDefinition type=\"b\"/>",
            "`zeebe:taskDefinition` is given twice",
        ),
        (
            "<zeebe:taskDefinition type=\"a\"/><rf:task timeoutSeconds=\"0\"/>",
            "timeoutSeconds is 1 to 86400 here",
        ),
        (
            "<zeebe:taskDefinition type=\"a\"/><rf:task timeoutSeconds=\"86401\"/>",
            "timeoutSeconds is 1 to 86400 here",
        ),
        (
            "<zeebe:taskDefinition type=\"http\"/><rf:task timeoutSeconds=\"301\"/>",
            "timeoutSeconds is 1 to 300 here",
        ),
        ("<zeebe:taskDefinition type=\"a\"/><rf:task/><rf:task/>", "`rf:task` is given twice"),
        (
            "<zeebe:taskDefinition type=\"a\"/><rf:task other=\"1\"/>",
            "`other` is not known in `rf:task`",
        ),
        (
            "<zeebe:taskDefinition type=\"a\"/><rf:retry backOffSeconds=\"5 x\"/>",
            "backOffSeconds is a list of 1 to 20 pauses of at most 86400 seconds, such as `5 30 120`",
        ),
        (
            "<zeebe:taskDefinition type=\"a\"/><rf:retry backOffSeconds=\"\"/>",
            "backOffSeconds is a list of 1 to 20 pauses of at most 86400 seconds, such as `5 30 120`",
        ),
    ] {
        wrong(&format!("<serviceTask id=\"t\">{}</serviceTask>", extended(inner)), expected);
    }
    wrong(
        &format!(
            "<serviceTask id=\"t\">{}</serviceTask>",
            extended(&format!("<zeebe:taskDefinition type=\"{long}\"/>"))
        ),
        "the type of the task is longer than 128 bytes",
    );
    wrong(
        &format!(
            "<scriptTask id=\"t\" scriptFormat=\"feel\">{}<script>1</script></scriptTask>",
            extended("<zeebe:taskDefinition type=\"a\"/>")
        ),
        "a task is either a script or somebody else's (zeebe:taskDefinition)",
    );
}

#[test]
fn headers_of_a_task_are_checked() {
    for (headers, expected) in [
        ("<zeebe:header key=\"\" value=\"a\"/>", "the key of a header has 1 to 64 bytes"),
        ("<zeebe:header key=\"k\"/><zeebe:header key=\"k\"/>", "the header `k` is given twice"),
        ("<zeebe:header key=\"k\" type=\"a\"/>", "`type` of `zeebe:header` is not supported"),
        ("<zeebe:other/>", "`other` is not supported in `zeebe:taskHeaders`"),
        (
            "<zeebe:header key=\"retryBackoff\" value=\"soon\"/>",
            "the header `retryBackoff` is a duration such as `PT30S` of at most 86400 seconds",
        ),
        (
            "<zeebe:header key=\"retryBackoff\" value=\"P2D\"/>",
            "the header `retryBackoff` is a duration such as `PT30S` of at most 86400 seconds",
        ),
        (
            "<zeebe:header key=\"retryBackoff\" value=\"PT1S\"/><zeebe:header key=\"retryBackoff\" value=\"PT2S\"/>",
            "the header `retryBackoff` is given twice",
        ),
        (
            "<zeebe:header key=\"resultVariable\" value=\"sum\"/>",
            "`sum` has a meaning in expressions and cannot be the name of a variable",
        ),
        (
            "<zeebe:header key=\"resultExpression\" value=\"response\"/>",
            "the header `resultExpression` must be an expression, which begins with `=`",
        ),
        ("<zeebe:header key=\"resultExpression\" value=\"=error\"/>", "unknown name `error`"),
        (
            "<zeebe:header key=\"errorExpression\" value=\"=bpmnError(1)\"/>",
            "unknown function `bpmnError`",
        ),
    ] {
        // With a variable for the answer, so that names are not open.
        let own = if headers.contains("resultVariable") { "" } else { " rf:resultVariable=\"b\"" };
        let keep = "<zeebe:ioMapping><zeebe:output source=\"=x\" target=\"b\"/></zeebe:ioMapping>";
        let inner = format!(
            "<zeebe:taskDefinition type=\"a\"/>{keep}<zeebe:taskHeaders>{headers}</zeebe:taskHeaders>"
        );
        wrong(&format!("<serviceTask id=\"t\"{own}>{}</serviceTask>", extended(&inner)), expected);
    }
    let both = "<zeebe:taskDefinition type=\"a\"/><rf:retry backOffSeconds=\"1\"/><zeebe:taskHeaders><zeebe:header key=\"retryBackoff\" value=\"PT1S\"/>\
        <zeebe:header key=\"resultVariable\" value=\"c\"/></zeebe:taskHeaders>";
    let task =
        format!("<serviceTask id=\"t\" rf:resultVariable=\"b\">{}</serviceTask>", extended(both));
    wrong(&task, "`rf:retry` and the header `retryBackoff` exclude each other");
    wrong(&task, "the variable for the result is given twice");
    let many = (0..51)
        .map(|index| format!("<zeebe:header key=\"k{index}\" value=\"v\"/>"))
        .collect::<Vec<_>>()
        .concat();
    let inner =
        format!("<zeebe:taskDefinition type=\"a\"/><zeebe:taskHeaders>{many}</zeebe:taskHeaders>");
    wrong(
        &format!("<serviceTask id=\"t\">{}</serviceTask>", extended(&inner)),
        "the task has more than 50 headers",
    );
}

#[test]
fn mappings_are_checked() {
    for (mapping, expected) in [
        ("<zeebe:input target=\"a\"/>", "a `zeebe:input` has no source"),
        (
            "<zeebe:input source=\"=x\"/>",
            "a variable name is one word of letters, digits and `_` that begins with no digit, of at most 64 bytes",
        ),
        (
            "<zeebe:input source=\"=x\" target=\"if.a\"/>",
            "`if` has a meaning in expressions and cannot be the name of a variable",
        ),
        (
            "<zeebe:input source=\"=x\" target=\"a..b\"/>",
            "the target `a..b` is no path of at most 8 words",
        ),
        (
            "<zeebe:input source=\"=x\" target=\"a.b.c.d.e.f.g.h.i\"/>",
            "the target `a.b.c.d.e.f.g.h.i` is no path of at most 8 words",
        ),
        ("<zeebe:output source=\"=y\" target=\"a\"/>", "unknown name `y`"),
        ("<zeebe:output source=\"=\" target=\"a\"/>", "the expression is empty"),
        (
            "<zeebe:input source=\"=x\" target=\"a\" type=\"b\"/>",
            "`type` of `zeebe:input` is not supported",
        ),
        ("<zeebe:inout/>", "`inout` is not supported in `zeebe:ioMapping`"),
    ] {
        wrong(
            &format!(
                "<task id=\"t\">{}</task>",
                extended(&format!("<zeebe:ioMapping>{mapping}</zeebe:ioMapping>"))
            ),
            expected,
        );
    }
    let many = "<zeebe:input source=\"=x\" target=\"a\"/>".repeat(101);
    wrong(
        &format!(
            "<task id=\"t\">{}</task>",
            extended(&format!("<zeebe:ioMapping>{many}</zeebe:ioMapping>"))
        ),
        "the element has more than 100 mappings",
    );
    let mapping = extended(
        "<zeebe:ioMapping><zeebe:input source=\"=x\" target=\"a\"/><zeebe:output source=\"=x\" target=\"a\"/></zeebe:ioMapping>",
    );
    let xml = through("<task id=\"t\"/>", "");
    refused(
        &xml.replace("<endEvent id=\"e\"/>", &format!("<endEvent id=\"e\">{mapping}</endEvent>")),
        "e: a `endEvent` has no `zeebe:output`",
    );
    refused(
        &xml.replace(
            "<startEvent id=\"s\"/>",
            &format!("<startEvent id=\"s\">{mapping}</startEvent>"),
        ),
        "s: a `startEvent` has no `zeebe:input`",
    );
}

#[test]
fn user_tasks_and_calls_are_checked() {
    for (inner, expected) in [
        ("<zeebe:userTask kind=\"a\"/>", "`kind` of `zeebe:userTask` is not supported"),
        ("<zeebe:assignmentDefinition assignee=\"=y +\"/>", "`y +` is not a valid FEEL expression"),
        (
            "<zeebe:assignmentDefinition owner=\"a\"/>",
            "`owner` of `zeebe:assignmentDefinition` is not supported",
        ),
        (
            "<zeebe:taskSchedule followUpDate=\"a\"/>",
            "`followUpDate` of `zeebe:taskSchedule` is not supported",
        ),
        (
            "<zeebe:taskSchedule dueDate=\"2027-01-31\"/>",
            "the due date cannot be read: a date is written like `2027-01-31T08:00:00Z`, from 1970 on",
        ),
        ("<zeebe:formDefinition formId=\"a\" formKey=\"b\"/>", "the user task has two forms"),
        ("<zeebe:formDefinition formId=\"=x\"/>", "the form cannot be an expression"),
    ] {
        wrong(&format!("<userTask id=\"t\">{}</userTask>", extended(inner)), expected);
    }
    let nobody = "the call activity does not say which process it calls (zeebe:calledElement)";
    wrong("<callActivity id=\"t\"/>", nobody);
    for (inner, expected) in [
        ("<zeebe:calledElement/>", nobody),
        (
            "<zeebe:calledElement processId=\"a b\"/>",
            "the id of the called process must be 1 to 64 letters, digits, `_` and `-`",
        ),
        (
            "<zeebe:calledElement processId=\"a\" bindingType=\"deployment\"/>",
            "`bindingType` other than `latest` is not supported",
        ),
        (
            "<zeebe:calledElement processId=\"a\" versionTag=\"1\"/>",
            "`versionTag` of `zeebe:calledElement` is not supported",
        ),
        (
            "<zeebe:calledElement processId=\"a\" propagateAllChildVariables=\"maybe\"/>",
            "`propagateAllChildVariables` is `true` or `false`",
        ),
    ] {
        wrong(&format!("<callActivity id=\"t\">{}</callActivity>", extended(inner)), expected);
    }
}

#[test]
fn rare_attributes_are_refused_by_name() {
    for element in ["task", "userTask", "callActivity", "subProcess"] {
        wrong(
            &format!("<{element} id=\"t\" isForCompensation=\"true\"/>"),
            "compensation is not supported",
        );
        for attribute in ["startQuantity", "completionQuantity"] {
            wrong(
                &format!("<{element} id=\"t\" {attribute}=\"2\"/>"),
                &format!("`{attribute}` other than 1 is not supported"),
            );
        }
    }
    wrong(
        "<receiveTask id=\"t\" messageRef=\"M\" instantiate=\"true\"/>",
        "a receive task that starts a process is not supported",
    );
    wrong(
        "<eventBasedGateway id=\"t\" instantiate=\"1\"/>",
        "an event-based gateway that starts a process is not supported",
    );
    wrong(
        "<eventBasedGateway id=\"t\" eventGatewayType=\"Parallel\"/>",
        "an event-based gateway that waits for all events is not supported",
    );
    wrong(
        "<subProcess id=\"t\" triggeredByEvent=\"perhaps\"/>",
        "`triggeredByEvent` is `true` or `false`",
    );
}

#[test]
fn multi_instance_is_checked() {
    let task = |attributes: &str, inner: &str| {
        format!(
            "<task id=\"t\"><multiInstanceLoopCharacteristics{attributes}>{inner}</multiInstanceLoopCharacteristics></task>"
        )
    };
    let with = |attributes: &str| {
        task("", &extended(&format!("<zeebe:loopCharacteristics {attributes}/>")))
    };
    for (node, expected) in [
        (task("", ""), "multi-instance needs an `inputCollection` or a `loopCardinality`"),
        (
            task(" isSequential=\"so\"", "<loopCardinality>1</loopCardinality>"),
            "`isSequential` is `true` or `false`",
        ),
        (
            task(" behavior=\"One\"", "<loopCardinality>1</loopCardinality>"),
            "events of single instances (`behavior`) are not supported",
        ),
        (
            task("", "<loopDataInputRef>x</loopDataInputRef>"),
            "`loopDataInputRef` is not supported in `multiInstanceLoopCharacteristics`",
        ),
        (
            task(
                "",
                "<loopCardinality>1</loopCardinality><completionCondition>y</completionCondition>",
            ),
            "unknown name `y`",
        ),
        (
            with("inputCollection=\"x\""),
            "`inputCollection` must be an expression, which begins with `=`",
        ),
        (
            with("inputCollection=\"=x\" inputElement=\"a b\""),
            "a variable name is one word of letters, digits and `_` that begins with no digit, of at most 64 bytes",
        ),
        (
            with("inputCollection=\"=x\" outputCollection=\"a\""),
            "`outputCollection` and `outputElement` are given together",
        ),
        (
            with("inputCollection=\"=x\" outputCollection=\"a\" outputElement=\"b\""),
            "`outputElement` must be an expression, which begins with `=`",
        ),
        (
            with("inputCollection=\"=x\" other=\"a\""),
            "`other` of `zeebe:loopCharacteristics` is not supported",
        ),
        (
            with("inputCollection=\"=x\"")
                .replace("</multi", "<loopCardinality>1</loopCardinality></multi"),
            "`inputCollection` and `loopCardinality` exclude each other",
        ),
    ] {
        wrong(&node, expected);
    }
}

#[test]
fn multi_instance_stands_once_and_on_activities_only() {
    let twice = "<task id=\"t\"><multiInstanceLoopCharacteristics><loopCardinality>1</loopCardinality>\
        </multiInstanceLoopCharacteristics><multiInstanceLoopCharacteristics/></task>";
    wrong(twice, "`multiInstanceLoopCharacteristics` is given twice");
    for element in ["exclusiveGateway", "intermediateThrowEvent"] {
        wrong(
            &format!("<{element} id=\"t\"><multiInstanceLoopCharacteristics/></{element}>"),
            &format!("`multiInstanceLoopCharacteristics` is not supported in a `{element}`"),
        );
    }
    let event = "<subProcess id=\"ev\" triggeredByEvent=\"true\"><multiInstanceLoopCharacteristics><loopCardinality>2</loopCardinality></multiInstanceLoopCharacteristics></subProcess>";
    refused(
        &through("<task id=\"t\"/>", event),
        "ev: an event sub-process cannot be multi-instance",
    );
}

#[test]
fn what_events_refer_to_must_exist() {
    let catch = |definition: &str| {
        format!("<intermediateCatchEvent id=\"t\">{definition}</intermediateCatchEvent>")
    };
    let throw = |definition: &str| {
        format!("<intermediateThrowEvent id=\"t\">{definition}</intermediateThrowEvent>")
    };
    for (node, expected) in [
        (catch(""), "the event does not say what it waits for"),
        (catch("<messageEventDefinition id=\"d\"/>"), "no message is named (messageRef)"),
        (
            catch("<messageEventDefinition id=\"d\" messageRef=\"Z\"/>"),
            "messageRef `Z` names no message",
        ),
        (
            catch("<messageEventDefinition id=\"d\" messageRef=\"Nameless\"/>"),
            "the name of the message is empty",
        ),
        (catch("<signalEventDefinition id=\"d\"/>"), "no signal is named (signalRef)"),
        (
            catch("<signalEventDefinition id=\"d\" signalRef=\"M\"/>"),
            "signalRef `M` names no signal",
        ),
        (
            throw("<escalationEventDefinition id=\"d\"/>"),
            "the event does not say which escalation it throws (escalationRef)",
        ),
        (
            throw("<escalationEventDefinition id=\"d\" escalationRef=\"CodelessX\"/>"),
            "the code of the escalation is empty",
        ),
        (
            throw(
                "<signalEventDefinition id=\"d\" signalRef=\"S\"/><signalEventDefinition id=\"d2\" signalRef=\"S\"/>",
            ),
            "the event has more than one event definition",
        ),
        ("<receiveTask id=\"t\"/>".to_owned(), "no message is named (messageRef)"),
        ("<sendTask id=\"t\" messageRef=\"Z\"/>".to_owned(), "messageRef `Z` names no message"),
    ] {
        wrong(&node, expected);
    }
}

#[test]
fn an_end_with_an_error_names_one() {
    for (definition, expected) in [
        (
            "<errorEventDefinition id=\"d\"/>",
            "the event does not say which error it throws (errorRef)",
        ),
        (
            "<errorEventDefinition id=\"d\" errorRef=\"Codeless\"/>",
            "the code of the error is empty",
        ),
        (
            "<errorEventDefinition id=\"d\" errorRef=\"Feel\"/>",
            "the code of the error cannot be an expression",
        ),
        ("<errorEventDefinition id=\"d\" errorRef=\"Z\"/>", "errorRef `Z` names no error"),
    ] {
        let end = format!("<endEvent id=\"e\">{definition}</endEvent>");
        refused(
            &through("<task id=\"t\"/>", "").replace("<endEvent id=\"e\"/>", &end),
            &format!("e: {expected}"),
        );
    }
}

#[test]
fn root_elements_are_checked() {
    let xml = through("<task id=\"t\"/>", "");
    for (root, expected) in [
        ("<message name=\"a\"/>", "a `message` needs an id"),
        (
            "<message id=\"N\" name=\"a\"><other/></message>",
            "N: `other` is not supported in a `message`",
        ),
        (
            "<error id=\"N\"><extensionElements><zeebe:subscription/></extensionElements></error>",
            "N: `zeebe:subscription` is not supported in a `error`",
        ),
        (
            "<message id=\"N\"><extensionElements><zeebe:subscription key=\"a\"/></extensionElements></message>",
            "N: `key` of `zeebe:subscription` is not supported",
        ),
    ] {
        refused(&xml.replace("</process>", &format!("</process>{root}")), expected);
    }
    // What nobody refers to may be incomplete.
    assert!(runfleet_flow::Definition::parse(&xml).is_ok());
    let long = xml
        .replace("name=\"paid\"", &format!("name=\"{}\"", "a".repeat(129)))
        .replace("<task id=\"t\"/>", "<receiveTask id=\"t\" messageRef=\"M\"/>");
    assert_eq!(problems(&long), ["t: the name of the message is longer than 128 bytes"]);
}

#[test]
fn timers_are_read_when_the_process_is_read() {
    let timer = |inner: &str| {
        let definition = format!("<timerEventDefinition id=\"d\">{inner}</timerEventDefinition>");
        format!("<intermediateCatchEvent id=\"t\">{definition}</intermediateCatchEvent>")
    };
    for (node, expected) in [
        (timer(""), "a timer has one `timeDate`, `timeDuration` or `timeCycle`"),
        (
            timer("<timeDate>2027-01-31T08:00:00Z</timeDate><timeDuration>PT1S</timeDuration>"),
            "a timer has one `timeDate`, `timeDuration` or `timeCycle`",
        ),
        (timer("<timeDuration/>"), "the duration is empty"),
        (
            timer("<timeDuration>15 minutes</timeDuration>"),
            "the duration cannot be read: a duration is written like `PT15M` or `P1DT12H` and is not negative",
        ),
        (
            timer("<timeDuration>P11Y</timeDuration>"),
            "the duration cannot be read: a timer waits at most ten years",
        ),
        (
            timer("<timeDate>2027-01-31T08:00:00</timeDate>"),
            "the date cannot be read: a date needs `Z` or an offset such as `+02:00` at its end",
        ),
        (timer("<timeDate>=y +</timeDate>"), "`y +` is not a valid FEEL expression"),
        (
            timer("<timeCycle>R/PT1H</timeCycle>"),
            "an intermediate event waits once and has no `timeCycle`",
        ),
        (
            timer("<timeCycle>0 0 9 * * *</timeCycle>"),
            "the cycle cannot be read: cron expressions are not supported; write a cycle such as `R/2027-01-01T06:00:00Z/P1D`",
        ),
    ] {
        wrong(&node, expected);
    }
}
