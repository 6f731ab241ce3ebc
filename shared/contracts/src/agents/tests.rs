//! Every option of `agents.start`, at and beyond its limits.

use serde_json::json;
use serde_json::value::to_raw_value;

use super::*;

fn parse(options: &Value) -> Result<ValidAgentStart, ErrorBody> {
    AgentStart::parse(&to_raw_value(options).unwrap())
}

/// Good options with `name` changed.
fn with(name: &str, value: Value) -> Value {
    let mut options = json!({"agentId": "deal-coach", "instruction": "Look at the deal."});
    options[name] = value;
    options
}

fn field(options: &Value) -> String {
    let error = parse(options).unwrap_err();
    assert_eq!(error.code, crate::ErrorCode::Validation);
    error.details["field"].as_str().unwrap().to_owned()
}

fn accepts(name: &str, value: Value) {
    let options = with(name, value);
    assert!(parse(&options).is_ok(), "{:?}", parse(&options).unwrap_err());
}

fn refuses(name: &str, value: Value, expected: &str) {
    assert_eq!(field(&with(name, value)), expected);
}

/// CG-050
#[test]
fn an_agent_is_named_by_1_to_64_letters_digits_underscores_and_hyphens() {
    accepts("agentId", json!("a".repeat(64)));
    for bad in ["", "a b", "é", &"a".repeat(65)] {
        refuses("agentId", json!(bad), "agentId");
    }
    refuses("agentId", json!(7), "agentId");
}

/// CG-051
#[test]
fn the_instruction_is_the_only_option_that_is_required() {
    let start = parse(&json!({"agentId": "a", "instruction": "Go."})).unwrap();
    assert_eq!(start.input.timeout_seconds, 300);
    assert_eq!(start.input.approval_policy, ApprovalPolicy::Deny);
    assert!(start.key.is_none() && start.on_result.is_none() && start.recipient.is_none());
    assert_eq!(field(&json!({"agentId": "a"})), "instruction");
    assert_eq!(field(&json!({"instruction": "Go."})), "agentId");
}

/// CG-051, CG-056
#[test]
fn an_instruction_has_1_to_10000_characters_and_is_not_blank() {
    accepts("instruction", json!("é".repeat(10_000)));
    refuses("instruction", json!("é".repeat(10_001)), "instruction");
    refuses("instruction", json!(""), "instruction");
    refuses("instruction", json!(" \n\t"), "instruction");
}

/// CG-052
#[test]
fn variables_are_strings_numbers_and_booleans() {
    accepts("variables", json!({"a": "x", "b": 1.5, "c": false}));
    for bad in [json!(null), json!([]), json!({})] {
        refuses("variables", json!({"a": bad}), "variables.a");
    }
    refuses("variables", json!([]), "variables");
}

/// CG-052, CG-056
#[test]
fn variables_are_bounded_in_number_name_and_size() {
    let many = |count: usize| -> Value {
        (0..count).map(|place| (format!("v{place}"), json!(1))).collect::<Map<_, _>>().into()
    };
    accepts("variables", many(50));
    refuses("variables", many(51), "variables");
    accepts("variables", json!({"a".repeat(64): 1}));
    refuses("variables", json!({"a".repeat(65): 1}), "variables");
    refuses("variables", json!({"_a": 1}), "variables");
    accepts("variables", json!({"a": "x".repeat(32_768)}));
    refuses("variables", json!({"a": "x".repeat(32_769)}), "variables.a");
    let big = |last: usize| json!({"a": "x".repeat(32_768), "b": "x".repeat(last)});
    let frame = big(0).to_string().len() - 32_768;
    accepts("variables", big(65_536 - 32_768 - frame));
    refuses("variables", big(65_537 - 32_768 - frame), "variables");
}

#[test]
fn a_variable_that_is_given_twice_is_refused_and_large_numbers_stay_as_they_are() {
    let raw = |text: &str| AgentStart::parse(&RawValue::from_string(text.to_owned()).unwrap());
    let twice = raw(r#"{"agentId":"a","instruction":"i","variables":{"x":1,"x":2}}"#);
    assert_eq!(twice.unwrap_err().details["problem"], "gives a name twice");
    let large = raw(r#"{"agentId":"a","instruction":"i","variables":{"x":9007199254740993}}"#);
    assert_eq!(large.unwrap().input.variables.unwrap().get(), r#"{"x":9007199254740993}"#);
}

/// CG-056
#[test]
fn records_are_bounded_and_each_is_listed_once() {
    let record = |place: usize| json!({"objectSlug": "lead", "recordId": place.to_string()});
    let list = |count: usize| Value::from((0..count).map(record).collect::<Vec<_>>());
    accepts("records", list(20));
    refuses("records", list(21), "records");
    refuses("records", json!([record(1), record(2), record(1)]), "records[2]");
    refuses("records", json!([{"objectSlug": "lead"}]), "records[0].recordId");
    refuses("records", json!([{"objectSlug": "1", "recordId": "a"}]), "records[0].objectSlug");
    let slug = |chars: usize| json!([{"objectSlug": "_".repeat(chars), "recordId": "a"}]);
    accepts("records", slug(355));
    refuses("records", slug(356), "records[0].objectSlug");
    let id = |chars: usize| json!([{"objectSlug": "lead", "recordId": "é".repeat(chars)}]);
    accepts("records", id(128));
    refuses("records", id(129), "records[0].recordId");
    refuses("records", id(0), "records[0].recordId");
    let unknown = json!([{"objectSlug": "lead", "recordId": "a", "with": true}]);
    refuses("records", unknown, "records[0].with");
}

/// CG-056
#[test]
fn words_and_numbers_outside_their_range_are_refused() {
    accepts("runAs", json!("caller"));
    accepts("runAs", json!("agent"));
    refuses("runAs", json!("root"), "runAs");
    accepts("approvalPolicy", json!("autoApprove"));
    refuses("approvalPolicy", json!("auto_approve"), "approvalPolicy");
    for good in [10, 1_800] {
        accepts("timeoutSeconds", json!(good));
    }
    for bad in [json!(9), json!(1_801), json!(-1), json!(10.5), json!("60")] {
        refuses("timeoutSeconds", bad, "timeoutSeconds");
    }
}

/// CG-056
#[test]
fn keys_jobs_and_payloads_have_their_grammar_and_size() {
    accepts("idempotencyKey", json!("a".repeat(128)));
    refuses("idempotencyKey", json!("a".repeat(129)), "idempotencyKey");
    refuses("idempotencyKey", json!(":a"), "idempotencyKey");
    accepts("onResult", json!({"job": "done", "payload": null}));
    refuses("onResult", json!({"job": "1"}), "onResult.job");
    refuses("onResult", json!({"payload": 1}), "onResult.job");
    accepts("onResult", json!({"job": "done", "payload": "x".repeat(8_190)}));
    refuses("onResult", json!({"job": "done", "payload": "x".repeat(8_191)}), "onResult.payload");
}

/// CG-079
#[test]
fn a_recipient_has_a_name_a_conversation_and_a_title_of_one_line() {
    let to = |name: &str, value: Value| {
        let mut to = json!({"personnelId": "ada"});
        to[name] = value;
        to
    };
    accepts("deliverTo", to("conversation", json!("latest")));
    accepts("deliverTo", to("conversation", json!("new")));
    refuses("deliverTo", to("conversation", json!("old")), "deliverTo.conversation");
    accepts("deliverTo", to("title", json!("é".repeat(200))));
    refuses("deliverTo", to("title", json!("é".repeat(201))), "deliverTo.title");
    for bad in ["", " ", "a\nb", "a\u{2028}b"] {
        refuses("deliverTo", to("title", json!(bad)), "deliverTo.title");
    }
    refuses("deliverTo", to("personnelId", json!("a b")), "deliverTo.personnelId");
    refuses("deliverTo", json!({}), "deliverTo.personnelId");
}

#[test]
fn an_option_that_is_not_known_or_null_is_refused_by_its_name() {
    assert_eq!(field(&with("timeout", json!(1))), "timeout");
    for option in ["variables", "records", "resultSchema", "runAs", "timeoutSeconds", "onResult"] {
        refuses(option, Value::Null, option);
    }
}

/// CG-057
#[test]
fn a_result_schema_is_checked_where_it_enters() {
    let schema = |extra: &str| {
        let mut schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
        schema[extra] = json!(false);
        schema
    };
    accepts("resultSchema", schema("additionalProperties"));
    refuses("resultSchema", schema("allOf"), "resultSchema");
}
