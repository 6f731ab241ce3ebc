//! `kind: Workspace`: its name for people, and everybody in it.

use std::collections::{BTreeMap, BTreeSet};

use runfleet_domain::Name;

use super::agent::model;
use super::ids;
use crate::bounds::{
    CREDITS, DISPLAY_CHARS_MAX, PEOPLE_MAX, PRICES_MAX, REACH_CHARS_MAX, REACH_MAX,
};
use crate::model::{Billing, Grant, Person, Price, Workspace};
use crate::node::Value;
use crate::reader::At;

/// A workspace and its people.
pub(super) type Declared = (Workspace, BTreeMap<Name, Person>);

pub(super) fn read(id: Option<Name>, spec: Option<At<'_>>) -> Option<Declared> {
    let Some(spec) = spec else {
        let workspace = Workspace { id: id?, display_name: None, billing: None, delivery: true };
        return Some((workspace, BTreeMap::new()));
    };
    let mut fields = spec.fields()?;
    let display_name = fields.or("displayName", None, |at| at.display(DISPLAY_CHARS_MAX).map(Some));
    let people = fields.or("people", BTreeMap::new(), |at| people(&at));
    let billing = fields.or("billing", None, |at| billing(at).map(Some));
    let delivery = fields.or("delivery", true, |at| at.boolean());
    fields.finish();
    let workspace =
        Workspace { id: id?, display_name: display_name?, billing: billing?, delivery: delivery? };
    Some((workspace, people?))
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
    let may_start = fields.or("mayStart", (Grant::All, Grant::All), may_start);
    let ai_seat = fields.or("aiSeat", true, |at| at.boolean());
    let reach = fields.or("reach", BTreeMap::new(), |at| reach(&at));
    fields.finish();
    let person = || {
        let (may_start_processes, may_use_agents) = may_start?;
        Some(Person {
            name: name?,
            account: account?,
            active: active?,
            may_start_processes,
            may_use_agents,
            ai_seat: ai_seat?,
            reach: reach?,
        })
    };
    let person = person();
    Some((at?, id?, person))
}

/// By what sinks know a person: the sink and what it needs, such as a mail address.
fn reach(at: &At<'_>) -> Option<BTreeMap<Name, String>> {
    let entries = at.entries(REACH_MAX)?;
    let read = |(sink, at): (String, At<'_>)| match sink.parse::<Name>() {
        Ok(sink) => Some((sink, at.display(REACH_CHARS_MAX)?)),
        Err(error) => {
            at.mistake(format!("has the name of a sink that {error}"));
            None
        }
    };
    entries.into_iter().map(read).collect()
}

/// What a person may do with Processes, and with agents.
fn may_start(at: At<'_>) -> Option<(Grant, Grant)> {
    let mut fields = at.fields()?;
    let processes = fields.or("processes", Grant::All, |at| grant(&at));
    let agents = fields.or("agents", Grant::All, |at| grant(&at));
    fields.finish();
    Some((processes?, agents?))
}

pub(super) fn grant(at: &At<'_>) -> Option<Grant> {
    match at.node.value {
        Value::List(_) => ids(at).map(Grant::Only),
        Value::Text(ref text) if text == "all" => Some(Grant::All),
        Value::Text(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Integer(_)
        | Value::Fraction(_)
        | Value::Map(_) => {
            at.mistake("must be `all` or a list of names");
            None
        }
    }
}

fn billing(at: At<'_>) -> Option<Billing> {
    let mut fields = at.fields()?;
    let subscription = fields.or("subscription", true, |at| at.boolean());
    let credits = fields.or("credits", None, |at| match &at.node.value {
        Value::Text(text) if text == "unlimited" => Some(None),
        _ => at.integer(CREDITS).map(Some),
    });
    let prices = fields.or("prices", BTreeMap::new(), |at| prices(&at));
    fields.finish();
    Some(Billing { subscription: subscription?, credits: credits?, prices: prices? })
}

fn prices(at: &At<'_>) -> Option<BTreeMap<String, Price>> {
    let mut prices = BTreeMap::new();
    for item in at.items(PRICES_MAX)? {
        let mut fields = item.fields()?;
        let at = fields.required("model");
        let name = at.as_ref().and_then(model);
        let mut price = |name: &str| fields.required(name).and_then(|at| at.integer(CREDITS));
        let (input, output) = (price("inputPerMillion"), price("outputPerMillion"));
        let cached = fields.or("cachedPerMillion", None, |at| at.integer(CREDITS).map(Some));
        fields.finish();
        let (Some(at), Some(name), Some(input_per_million), Some(output_per_million), Some(cached)) =
            (at, name, input, output, cached)
        else {
            continue;
        };
        let price = Price { input_per_million, output_per_million, cached_per_million: cached };
        if prices.insert(name, price).is_some() {
            at.mistake("names a model that is listed above");
        }
    }
    // A price that is left out has left its mistakes.
    Some(prices)
}
