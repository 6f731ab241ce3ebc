//! Multi-instance: an activity once for each item.

use serde_json::{Value as Json, json};

use super::run::{Run, mismatch};
use crate::definition::{Node, Repeat};
use crate::failure::{Failure, FailureCode};
use crate::history::What;
use crate::limits;
use crate::state::{Repeating, Stage};
use crate::value;

/// Variable with the number of the item, from 1.
const LOOP_COUNTER: &str = "loopCounter";

impl Run<'_> {
    /// Begins a multi-instance activity.
    pub(super) fn begin_repeating(
        &mut self,
        id: u64,
        node: &Node,
        repeat: &Repeat,
    ) -> Result<(), Failure> {
        let over = self.evaluate(id, &repeat.over, &[], &node.id)?;
        let (total, items) = match over {
            Json::Array(items) => (items.len() as u64, items),
            Json::Number(number) => (number.as_u64().ok_or_else(|| invalid(node))?, Vec::new()),
            _ => return Err(invalid(node)),
        };
        let total = u32::try_from(total).unwrap_or(u32::MAX);
        if total > limits::ITEMS_MAX {
            return Err(Failure::at(FailureCode::TooManyItems, &node.id));
        }
        let results = match &repeat.collect {
            Some(_) => vec![Json::Null; total as usize],
            None => Vec::new(),
        };
        let size = items.iter().chain(&results).map(value::bytes).sum();
        self.charge(0, size, &node.id)?;
        self.instance(id)?.stage =
            Stage::Repeating(Repeating { total, begun: 0, ended: 0, items, results });
        self.go_on_repeating(id, node, repeat)
    }

    /// Begins as many items as may be active, or ends the activity.
    fn go_on_repeating(&mut self, id: u64, node: &Node, repeat: &Repeat) -> Result<(), Failure> {
        let width = if repeat.sequential { 1 } else { limits::PARALLEL_ITEMS_MAX };
        loop {
            let Stage::Repeating(repeating) = &mut self.instance(id)?.stage else {
                return Err(mismatch());
            };
            if repeating.ended == repeating.total {
                return self.end_repeating(id, node, repeat);
            }
            let number = repeating.begun;
            if number == repeating.total || number.saturating_sub(repeating.ended) >= width {
                return Ok(());
            }
            repeating.begun += 1;
            let value = match repeating.items.get_mut(number as usize) {
                Some(item) => std::mem::take(item),
                None => Json::Null,
            };
            // What leaves the list is charged again where it goes.
            self.charge(value::bytes(&value), value::bytes(&Json::Null), &node.id)?;
            self.begin_item(id, node, repeat, number, value)?;
        }
    }

    fn begin_item(
        &mut self,
        body: u64,
        node: &Node,
        repeat: &Repeat,
        number: u32,
        value: Json,
    ) -> Result<(), Failure> {
        let id = self.add(node, body)?;
        self.instance(id)?.item = Some(number);
        // A result that is one variable belongs to the item, so that items do not overwrite each other's.
        if let Some((_, result)) = &repeat.collect
            && let [name] = result.variables()
            && name == result.text()
        {
            self.set_own(id, name, Json::Null, &node.id)?;
        }
        self.set_own(id, LOOP_COUNTER, json!(u64::from(number) + 1), &node.id)?;
        if let Some(name) = &repeat.item {
            self.set_own(id, name, value, &node.id)?;
        }
        self.ready(id);
        Ok(())
    }

    /// Ends one item and goes on with the activity.
    pub(super) fn finish_item(&mut self, id: u64, node: &Node) -> Result<(), Failure> {
        let Some(repeat) = &node.repeat else { return Err(mismatch()) };
        let result = match &repeat.collect {
            Some((_, expression)) => Some(self.evaluate(id, expression, &[], &node.id)?),
            None => None,
        };
        let item = self.instance(id)?;
        let (body, number) = (item.scope, item.item.unwrap_or_default());
        let Stage::Repeating(repeating) = &mut self.instance(body)?.stage else {
            return Err(mismatch());
        };
        repeating.ended += 1;
        let mut sizes = (0, 0);
        if let (Some(result), Some(place)) = (result, repeating.results.get_mut(number as usize)) {
            sizes = (value::bytes(place), value::bytes(&result));
            *place = result;
        }
        let active = repeating.begun.saturating_sub(repeating.ended);
        let counts = [repeating.total, repeating.ended, active];
        self.charge(sizes.0, sizes.1, &node.id)?;
        let enough = self.is_enough(id, node, repeat, counts)?;
        self.note(id, What::Left);
        self.remove(id);
        if enough {
            self.kill_members(body);
            return self.end_repeating(body, node, repeat);
        }
        self.go_on_repeating(body, node, repeat)
    }

    /// Whether an item that ends, and whose variables the condition sees, makes the others needless. `counts` has the
    /// number of items in all, of those that have ended, and of those that are active.
    fn is_enough(
        &mut self,
        item: u64,
        node: &Node,
        repeat: &Repeat,
        counts: [u32; 3],
    ) -> Result<bool, Failure> {
        let Some(until) = &repeat.until else { return Ok(false) };
        let [total, ended, active] = counts.map(|count| json!(count));
        let extra = [
            ("numberOfInstances", &total),
            ("numberOfCompletedInstances", &ended),
            ("numberOfActiveInstances", &active),
            ("numberOfTerminatedInstances", &json!(0)),
        ];
        self.decide(item, until, &extra, &node.id)
    }

    fn end_repeating(&mut self, id: u64, node: &Node, repeat: &Repeat) -> Result<(), Failure> {
        let Stage::Repeating(repeating) = &mut self.instance(id)?.stage else {
            return Err(mismatch());
        };
        let results = std::mem::take(&mut repeating.results);
        let items = std::mem::take(&mut repeating.items);
        let size = results.iter().chain(&items).map(value::bytes).sum();
        self.charge(size, 0, &node.id)?;
        if let Some((name, _)) = &repeat.collect {
            let scope = self.instance(id)?.scope;
            self.set(scope, name, Json::Array(results), &node.id)?;
        }
        // The mappings of the activity are those of its items; nothing is mapped for the whole.
        self.leave_whole(id, node)
    }
}

fn invalid(node: &Node) -> Failure {
    Failure::at(FailureCode::CollectionInvalid, &node.id)
}
