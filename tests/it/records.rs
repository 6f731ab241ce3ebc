//! Records that code of a project reads and writes, through real workers and a service that has them.

use anyhow::{Context as _, Result};
use runfleet_client::{Client, Error};
use runfleet_contracts::Claims;
use runfleet_contracts::claims::Source;
use runfleet_contracts::data::QueryRecords;
use runfleet_domain::Name;
use runfleet_testkit::wait_until;
use runfleet_tests::{BOUND, Fleet, Options, Web, WebAnswer};
use serde_json::{Value, json};

fn client(fleet: &Fleet, change: impl FnOnce(&mut Claims)) -> Result<Client> {
    let mut claims = fleet.claims();
    claims.source = Source::Job;
    claims.user = Some("ada".parse()?);
    change(&mut claims);
    Ok(Client::new(&fleet.broker, fleet.token(&claims)?))
}

fn lead(fields: &Value) -> Value {
    json!({"records": [{"objectSlug": "lead", "recordId": "L-7", "fields": fields}]})
}

/// The code of a refusal and its reason or resource.
fn refused<T: std::fmt::Debug>(answer: Result<T, Error>) -> (String, String) {
    let error = answer.unwrap_err();
    let body = error.body().unwrap();
    let detail = ["reason", "resource"].iter().find_map(|name| body.details.get(*name));
    let detail = detail.and_then(Value::as_str).unwrap_or_default();
    (body.code.as_str().to_owned(), detail.to_owned())
}

fn told(code: &str, detail: &str) -> (String, String) {
    (code.to_owned(), detail.to_owned())
}

/// Every request of the service said for whom it was made, and each write which one it was.
fn the_source_was_told_who_asks(web: &Web) -> Result<()> {
    let requests = web.requests("/records");
    assert!(requests.iter().all(|request| request.authorization == "Bearer crm-s3cret"));
    assert!(requests.iter().all(|request| request.body["personnelId"] == "ada"));
    let filtered = requests.iter().find(|request| request.body["filter"].is_object());
    assert_eq!(filtered.context("no filter")?.body["limit"], 5);
    let writes: Vec<_> =
        requests.iter().filter(|request| request.body["operation"].is_string()).collect();
    assert_eq!((writes.len(), &writes[0].body["hops"]), (3, &json!(3)));
    assert_eq!(writes[0].body["operation"], "update");
    assert_eq!(writes[1].body["operation"], "create");
    assert_ne!(writes[0].body["requestId"], writes[1].body["requestId"]);
    Ok(())
}

/// CG-237
#[tokio::test]
async fn records_are_read_and_written_as_the_person_of_the_execution() -> Result<()> {
    let web = Web::start(|request, _| match request.body["objectSlug"].as_str() {
        Some("lead") => {
            let written = request.body["fields"].clone();
            let fields = if written.is_object() { written } else { json!({"stage": 1}) };
            WebAnswer::new(200, lead(&fields))
        }
        Some("secret") => WebAnswer::new(403, Value::Null),
        Some("broken") => WebAnswer::new(500, Value::Null),
        _ => WebAnswer::new(404, Value::Null),
    })
    .await?;
    let settings = vec![
        web.allowed(),
        ("RUNFLEET_SECRET_VARIABLES".to_owned(), "CRM_TOKEN".to_owned()),
        ("CRM_TOKEN".to_owned(), "Bearer crm-s3cret".to_owned()),
    ];
    let fleet = Fleet::start(Options { settings, ..Options::default() }).await?;
    let ada = client(&fleet, |claims| claims.hops = 3)?;
    // The example has one source, of documents: it is the project's, and can only be read.
    let written = ada.data().update("lead", "L-7", &json!({"stage": 2})).await;
    assert_eq!(refused(written), told("NOT_SUPPORTED", "RECORDS_READ_ONLY"));
    let source = format!(
        "apiVersion: runfleet/v1\nkind: RecordSource\nmetadata: {{name: crm}}\nspec: {{http: {{url: '{}', headers: \
         {{Authorization: {{env: CRM_TOKEN}}}}}}}}\n",
        web.url("/records")
    );
    fleet.apply_documents("crm", &source).await?;
    let refusal =
        wait_until("there are two sources, and the project names none", BOUND, || async {
            let read = ada.data().get("lead", "L-7").await;
            Ok(read.err())
        })
        .await?;
    assert_eq!(refused::<()>(Err(refusal)), told("NOT_SUPPORTED", "NO_RECORD_SOURCE"));
    let crm: Name = "crm".parse()?;
    fleet.apply_changed(|project| project.record_source = Some(crm.clone())).await?;
    let found = wait_until("the source is known", BOUND, || async {
        Ok(ada.data().get("lead", "L-7").await.ok().flatten())
    })
    .await?;
    assert_eq!(found.fields["stage"], 1);
    assert_eq!(ada.data().get("nothing", "L-7").await?, None);
    let query: QueryRecords =
        serde_json::from_value(json!({"objectSlug": "lead", "filter": {"stage": 1}, "limit": 5}))?;
    assert_eq!(ada.data().query(&query).await?.len(), 1);
    let won = ada.data().update("lead", "L-7", &json!({"stage": 2})).await?.context("no record")?;
    assert_eq!(won.fields["stage"], 2);
    ada.data().create("lead", &json!({"stage": 0})).await?;
    assert_eq!(
        refused(ada.data().get("secret", "1").await),
        told("PERMISSION_DENIED", "RECORDS_DENIED")
    );
    assert_eq!(
        refused(ada.data().get("broken", "1").await),
        told("RETRYABLE", "RECORDS_UNAVAILABLE")
    );
    let missing = ada.data().update("nothing", "1", &json!({})).await;
    assert_eq!(refused(missing), told("NOT_FOUND", "record"));

    let reader = client(&fleet, |claims| claims.read_only = true)?;
    reader.data().get("lead", "L-7").await?;
    let write = reader.data().update("lead", "L-7", &json!({"stage": 3})).await;
    assert_eq!(refused(write), told("PERMISSION_DENIED", "READ_ONLY"));
    let before = client(&fleet, |claims| claims.source = Source::TriggerBefore)?;
    let read = before.data().get("lead", "L-7").await;
    assert_eq!(refused(read), told("PERMISSION_DENIED", "TRIGGER_READ_ONLY"));

    the_source_was_told_who_asks(&web)?;
    fleet.remove().await
}
