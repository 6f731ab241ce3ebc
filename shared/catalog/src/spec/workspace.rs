//! `kind: Workspace`: its name for people, and everybody in it.

use std::collections::{BTreeMap, BTreeSet};

use runfleet_domain::Name;

use super::ids;
use crate::bounds::{DISPLAY_CHARS_MAX, PEOPLE_MAX};
use crate::model::{Grant, Person, Workspace};
use crate::node::Value;
use crate::reader::At;

/// A workspace and its people.
pub(super) type Declared = (Workspace, BTreeMap<Name, Person>);

pub(super) fn read(id: Option<Name>, spec: Option<At<'_>>) -> Option<Declared> {
    let Some(spec) = spec else {
        return Some((Workspace { id: id?, display_name: None }, BTreeMap::new()));
    };
    let mut fields = spec.fields()?;
    let display_name = fields.or("displayName", None, |at| at.display(DISPLAY_CHARS_MAX).map(Some));
    let people = fields.or("people", BTreeMap::new(), |at| people(&at));
    fields.finish();
    Some((Workspace { id: id?, display_name: display_name? }, people?))
}

fn people(at: &At<'_>) -> Option<BTreeMap<Name, Person>> {
    let mut people = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for item in at.items(PEOPLE_MAX)? {
        let Some((at, id, person)) = person(item) else { continue };
        if !seen.insert(id.clone()) {
            at.mistake("names a person who is listed above");
        }
        people.extend(person.map(|person| (id, person)));
    }
    // A person who is left out has left mistakes.
    Some(people)
}

fn person(item: At<'_>) -> Option<(At<'_>, Name, Option<Person>)> {
    let mut fields = item.fields()?;
    let at = fields.required("id");
    let id = at.as_ref().and_then(At::parse);
    let name = fields.or("name", None, |at| at.display(DISPLAY_CHARS_MAX).map(Some));
    let account = fields.or("account", true, |at| at.boolean());
    let active = fields.or("active", true, |at| at.boolean());
    let may_start_processes = fields.or("mayStart", Grant::All, may_start);
    fields.finish();
    let person = || {
        Some(Person {
            name: name?,
            account: account?,
            active: active?,
            may_start_processes: may_start_processes?,
        })
    };
    let person = person();
    Some((at?, id?, person))
}

fn may_start(at: At<'_>) -> Option<Grant> {
    let mut fields = at.fields()?;
    let processes = fields.or("processes", Grant::All, |at| match at.node.value {
        Value::List(_) => ids(&at).map(Grant::Only),
        Value::Text(ref text) if text == "all" => Some(Grant::All),
        Value::Text(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Integer(_)
        | Value::Fraction
        | Value::Map(_) => {
            at.mistake("must be `all` or a list of Process names");
            None
        }
    });
    fields.finish();
    processes
}
