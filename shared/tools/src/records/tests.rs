//! Records from documents and from a service on this machine.

use super::*;
use crate::testing::{Peer, call, later, service, soon};

fn record(slug: &str, id: &str, name: &str) -> Record {
    let fields = json!({"name": name, "tags": [{"n": 7}]}).as_object().unwrap().clone();
    let activities = vec![json!({"what": "called"})];
    Record { object_slug: slug.to_owned(), record_id: id.to_owned(), fields, activities }
}

fn documents() -> Records {
    Records::new(Arc::new(Documents::new(vec![
        record("deal", "d1", "Big Deal"),
        record("deal", "d2", "Small deal"),
        record("contact", "c1", "Deal maker"),
    ])))
}

async fn ids(tool: &Records, arguments: &Value) -> Vec<String> {
    let ToolOutcome::Done(got) = tool.call(call(arguments), later()).await else {
        panic!("{arguments}")
    };
    let records = got["content"]["records"].as_array().unwrap();
    records.iter().map(|record| record["recordId"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn documents_are_found_by_kind_id_and_text() {
    let tool = documents();
    for (arguments, expected) in [
        (json!({"objectSlug": "deal"}), vec!["d1", "d2"]),
        (json!({"objectSlug": "deal", "limit": 1}), vec!["d1"]),
        (json!({"objectSlug": "deal", "recordIds": ["d2", "c1"]}), vec!["d2"]),
        (json!({"objectSlug": "deal", "search": "BIG"}), vec!["d1"]),
        (json!({"objectSlug": "contact", "search": "7"}), vec!["c1"]),
        (json!({"objectSlug": "deal", "search": ""}), vec!["d1", "d2"]),
        (json!({"objectSlug": "none"}), vec![]),
    ] {
        assert_eq!(ids(&tool, &arguments).await, expected, "{arguments}");
    }
}

#[tokio::test]
async fn activities_come_only_when_they_are_asked_for() {
    for (arguments, expected) in [
        (json!({"objectSlug": "contact"}), Value::Null),
        (json!({"objectSlug": "contact", "withActivities": true}), json!([{"what": "called"}])),
    ] {
        let ToolOutcome::Done(got) = documents().call(call(&arguments), later()).await else {
            panic!()
        };
        assert_eq!(got["content"]["records"][0]["activities"], expected);
    }
}

#[tokio::test]
async fn arguments_that_make_no_sense_are_named() {
    for (arguments, path) in [
        (json!({}), "/objectSlug"),
        (json!({"objectSlug": ""}), "/objectSlug"),
        (json!({"objectSlug": "deal", "recordIds": [1]}), "/recordIds"),
        (json!({"objectSlug": "deal", "recordIds": vec!["x"; IDS_MAX + 1]}), "/recordIds"),
        (json!({"objectSlug": "deal", "search": 1}), "/search"),
        (json!({"objectSlug": "deal", "limit": 51}), "/limit"),
        (json!({"objectSlug": "deal", "limit": 0}), "/limit"),
        (json!({"objectSlug": "deal", "withActivities": "yes"}), "/withActivities"),
    ] {
        let got = documents().call(call(&arguments), later()).await;
        let expected = ToolOutcome::Failed { path: path.to_owned(), message: texts::ARGUMENT };
        assert_eq!(got, expected, "{arguments}");
    }
}

#[tokio::test]
async fn a_service_is_told_who_asks_and_hands_on_nothing_that_was_not_asked_for() {
    let all = [record("deal", "d1", "a"), record("deal", "d2", "b"), record("secret", "d1", "c")];
    let body = json!({"records": all}).to_string();
    let peer = Peer::saying(200, "application/json", &body).await;
    let endpoint = Endpoint::new(peer.url("/records").parse().unwrap());
    let tool = Records::new(Arc::new(HttpRecords::new(service("127.0.0.1"), endpoint)));
    let arguments = json!({"objectSlug": "deal", "recordIds": ["d1"]});
    assert_eq!(ids(&tool, &arguments).await, ["d1"]);
    let seen = peer.requests().join("");
    let asked: Value = serde_json::from_str(seen.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(
        asked,
        json!({
            "workspace": "acme", "project": "crm", "personnelId": "p-1", "objectSlug": "deal",
            "recordIds": ["d1"], "search": null, "limit": 10, "withActivities": false,
        })
    );
}

#[tokio::test]
async fn each_failure_of_a_service_has_its_text() {
    for (status, body, text) in [
        (403, "s3cret", texts::FORBIDDEN),
        (404, "s3cret", texts::NOT_FOUND),
        (500, "s3cret", texts::UNREACHABLE),
        (200, "s3cret", texts::UNREADABLE),
        (200, r#"{"records": [{"objectSlug": 1}]}"#, texts::UNREADABLE),
    ] {
        let peer = Peer::saying(status, "application/json", body).await;
        let endpoint = Endpoint::new(peer.url("/").parse().unwrap());
        let tool = Records::new(Arc::new(HttpRecords::new(service("127.0.0.1"), endpoint)));
        let got = tool.call(call(&json!({"objectSlug": "deal"})), later()).await;
        assert_eq!(got, ToolOutcome::failed(text), "{status} {body}");
    }
    let silent = Peer::start(|_| None).await;
    let endpoint = Endpoint::new(silent.url("/").parse().unwrap());
    let tool = Records::new(Arc::new(HttpRecords::new(service("127.0.0.1"), endpoint)));
    let got = tool.call(call(&json!({"objectSlug": "deal"})), soon()).await;
    assert_eq!(got, ToolOutcome::failed(texts::UNREACHABLE));
}

/// CG-237
#[tokio::test]
async fn a_write_tells_the_service_who_writes_and_which_write_it_is() {
    let body = json!({"records": [record("deal", "d9", "x"), record("deal", "d1", "won")]});
    let peer = Peer::saying(200, "application/json", &body.to_string()).await;
    let endpoint = Endpoint::new(peer.url("/records").parse().unwrap());
    let source = HttpRecords::new(service("127.0.0.1"), endpoint);
    let call = call(&json!({}));
    let write = RecordWrite {
        object_slug: "deal".to_owned(),
        record_id: Some("d1".to_owned()),
        fields: json!({"stage": "won"}).as_object().unwrap().clone(),
        request_id: "m-1".to_owned(),
        hops: 3,
    };
    let bound = Duration::from_secs(5);
    let written = source.write(&call.caller, &write, bound).await.unwrap();
    assert_eq!(written, Some(record("deal", "d1", "won")));
    let seen = peer.requests().join("");
    let asked: Value = serde_json::from_str(seen.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(
        asked,
        json!({
            "workspace": "acme", "project": "crm", "personnelId": "p-1", "operation": "update",
            "objectSlug": "deal", "recordId": "d1", "fields": {"stage": "won"},
            "requestId": "m-1", "hops": 3,
        })
    );
    let documents = Documents::new(vec![record("deal", "d1", "a")]);
    let refused = documents.write(&call.caller, &write, bound).await;
    assert_eq!(refused, Err(SourceFailure::ReadOnly));
}

#[tokio::test]
async fn documents_are_found_by_the_values_of_their_fields() {
    let documents = Documents::new(vec![record("deal", "d1", "a"), record("deal", "d2", "b")]);
    let query = RecordQuery {
        object_slug: "deal".to_owned(),
        record_ids: Vec::new(),
        search: None,
        limit: 10,
        with_activities: false,
        filter: json!({"name": "b"}).as_object().unwrap().clone(),
    };
    let caller = call(&json!({})).caller;
    let found = documents.fetch(&caller, &query, Duration::from_secs(1)).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].record_id, "d2");
}
