//! Chat sinks, how people are reached, and quiet hours.

use runfleet_catalog::{
    Changed, ChatSink, QuietHours, QuietPolicy, Secretly, SinkKind, SmtpSecurity, Snapshot,
};
use runfleet_domain::Name;

use crate::bundle::{Files, WORKSPACE, document};

fn with(documents: &[(&str, &str, &str)]) -> Files {
    let files = Files::new(&[WORKSPACE]);
    for (position, (kind, name, spec)) in documents.iter().enumerate() {
        files.write(&format!("d{position}.yaml"), document(kind, name, spec));
    }
    files
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

#[test]
fn every_kind_of_sink_is_declared_and_stored() {
    let files = with(&[
        ("ChatSink", "own", "{type: builtin}"),
        (
            "ChatSink",
            "hook",
            "{type: webhook, url: 'https://a.example/x', keyFile: hook.key, deduplicates: true, timeoutSeconds: 3, parallel: 2}",
        ),
        ("ChatSink", "slack", "{type: slack, urlEnv: SLACK_URL}"),
        ("ChatSink", "most", "{type: mattermost, urlFile: most.url}"),
        (
            "ChatSink",
            "mail",
            "{type: smtp, host: mail.example, from: agent@a.example, user: u, passwordFile: mail.pw, subject: News}",
        ),
        ("Agent", "coach", "{model: m/1, chatSink: mail}"),
        ("Agent", "plain", "{model: m/1}"),
        ("Agent", "lost", "{model: m/1, chatSink: nowhere}"),
    ]);
    let merged = Snapshot::merge(None, files.load().unwrap()).unwrap();
    let text = merged.snapshot.to_json().unwrap();
    let snapshot = Snapshot::from_json(text.as_bytes()).unwrap();
    assert_eq!(snapshot, merged.snapshot);
    let sink = |name: &str| snapshot.chat_sinks[&name.parse().unwrap()].clone();
    let SinkKind::Webhook { url, key, deduplicates } = sink("hook").kind else { panic!() };
    assert_eq!(url, Secretly::Text("https://a.example/x".into()));
    assert_eq!((key, deduplicates), (Secretly::File("hook.key".into()), true));
    assert_eq!((sink("hook").timeout_seconds, sink("hook").parallel), (3, 2));
    assert_eq!(sink("slack").kind, SinkKind::Slack { url: Secretly::Env("SLACK_URL".into()) });
    let url = Secretly::File("most.url".into());
    assert_eq!(sink("most").kind, SinkKind::Mattermost { url });
    let SinkKind::Smtp(server) = sink("mail").kind else { panic!() };
    assert_eq!((server.port, server.security), (587, SmtpSecurity::Starttls));
    let of = |agent: &str| snapshot.sink_of(&name(agent));
    assert_eq!(of("coach").unwrap().0.as_str(), "mail");
    assert_eq!(of("plain").unwrap().1, ChatSink::builtin());
    assert!(of("lost").is_none());
    let warning = "agent lost names the chat sink nowhere, which is not declared";
    assert!(merged.changes.warnings.iter().any(|text| text == warning));
    let again = Snapshot::merge(Some(&snapshot), files.load().unwrap()).unwrap();
    let of_sinks = |change: &&runfleet_catalog::Change| change.kind == "chat sink";
    let changed: Vec<_> = again.changes.list.iter().filter(of_sinks).collect();
    assert_eq!(changed.len(), 5);
    assert!(changed.iter().all(|change| change.changed == Changed::Unchanged));
}

#[test]
fn people_are_reached_and_left_alone_as_documents_say() {
    let workspace = "apiVersion: runfleet/v1\nkind: Workspace\nmetadata: {name: demo}\nspec: {people: [{id: ada, reach: {mail: ada@a.example}}]}";
    let files = Files::new(&[]);
    files.write("workspace.yaml", workspace);
    let hours = "{policy: block, from: '22:00', to: '07:30', timeZone: Europe/Berlin}";
    files.write(
        "agent.yaml",
        document("Agent", "coach", &format!("{{model: m/1, quietHours: {hours}}}")),
    );
    let snapshot = Snapshot::merge(None, files.load().unwrap()).unwrap().snapshot;
    assert_eq!(snapshot.reach_of(&name("ada"), &name("mail")), Some("ada@a.example"));
    assert_eq!(snapshot.reach_of(&name("ada"), &name("hook")), None);
    let quiet = &snapshot.agent(&name("coach")).unwrap().spec.quiet_hours;
    let expected =
        QuietHours { from: "22:00".into(), to: "07:30".into(), time_zone: "Europe/Berlin".into() };
    assert_eq!((quiet.policy, quiet.hours.as_ref()), (QuietPolicy::Block, Some(&expected)));
}

#[test]
fn what_is_wrong_with_a_sink_or_with_quiet_hours_is_told_at_its_place() {
    for (kind, spec, problem) in [
        ("ChatSink", "{type: pigeon}", "spec.type: must be one of `builtin`, `webhook`"),
        (
            "ChatSink",
            "{type: webhook, url: 'https://a.example'}",
            "spec: must have one of keyEnv, keyFile",
        ),
        (
            "ChatSink",
            "{type: webhook, url: 'ftp://a.example', keyEnv: K}",
            "spec.url: must be an http or https",
        ),
        ("ChatSink", "{type: slack}", "spec: must have one of url, urlEnv, urlFile"),
        (
            "ChatSink",
            "{type: slack, url: 'https://a.example', urlEnv: U}",
            "spec: must have one of url",
        ),
        ("ChatSink", "{type: builtin, url: 'https://a.example'}", "spec.url: is not known"),
        ("ChatSink", "{type: smtp, host: 'a b', from: x}", "spec.host: must be a host name"),
        ("ChatSink", "{type: smtp, host: a, from: x}", "spec.from: must be a mail address"),
        (
            "ChatSink",
            "{type: smtp, host: a, from: x@y, user: u}",
            "spec: must have both user and password",
        ),
        (
            "ChatSink",
            "{type: smtp, host: a, from: x@y, user: u, passwordEnv: P, security: none}",
            "spec: must not send a password",
        ),
        (
            "ChatSink",
            "{type: slack, url: 'https://a.example', parallel: 65}",
            "spec.parallel: must be a whole number from 1 to 64",
        ),
        (
            "Agent",
            "{model: m/1, quietHours: {from: '22:00', to: '07:00'}}",
            "quietHours: must have all of",
        ),
        (
            "Agent",
            "{model: m/1, quietHours: {from: '25:00', to: '07:00', timeZone: UTC}}",
            "quietHours.from: must be a time of day",
        ),
        (
            "Agent",
            "{model: m/1, quietHours: {from: '07:00', to: '07:00', timeZone: UTC}}",
            "quietHours: must have different times",
        ),
        (
            "Agent",
            "{model: m/1, quietHours: {from: '22:00', to: '07:00', timeZone: Mars/Base}}",
            "quietHours.timeZone: must be a time zone",
        ),
    ] {
        let told = with(&[(kind, "x", spec)]).load().unwrap_err().to_string();
        assert!(told.contains(problem), "{spec}\n{told}");
    }
}
