//! The example processes from their start to each of their ends, as the world around them answers.

use runfleet_flow::{Ask, Definition, Doing, Effect, Event, State, Status, Subscription, What};
use serde_json::{Value, json};

use crate::support::{NOW_MS, advance_with, map, parse};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// A run of an example and the world around it.
struct Journey {
    definition: Definition,
    state: State,
    now_ms: u64,
    effects: Vec<Effect>,
    status: Status,
    /// Elements that came to their end, in order.
    left: Vec<String>,
}

impl Journey {
    fn start(name: &str, input: Value) -> Self {
        let path = format!("{}/../../deploy/example/{name}.bpmn", env!("CARGO_MANIFEST_DIR"));
        let definition = parse(&std::fs::read_to_string(path).expect("the example is there"));
        let state = definition.start(map(input)).expect("the input fits");
        let (effects, status) = (Vec::new(), Status::Running);
        let mut journey =
            Self { definition, state, now_ms: NOW_MS, effects, status, left: Vec::new() };
        journey.go_on(Vec::new());
        journey
    }

    /// Lets events happen and executes until the run waits or has ended.
    fn go_on(&mut self, mut events: Vec<Event>) {
        self.effects.clear();
        loop {
            let stored = serde_json::to_string(&self.state).expect("a state can be written");
            let state = State::from_json(&stored).expect("a state can be read");
            let events = std::mem::take(&mut events);
            let advanced = advance_with(&self.definition, state, events, self.now_ms, 3);
            assert_eq!(advanced.ignored, 0, "an event came to nothing");
            self.effects.extend(advanced.effects);
            let left = advanced.history.into_iter().filter(|entry| entry.2 == What::Left);
            self.left.extend(left.map(|entry| entry.0));
            self.state = advanced.state;
            self.status = advanced.status;
            if self.status != Status::Running {
                return;
            }
        }
    }

    fn pass_days(&mut self, days: u64) {
        self.now_ms += days * DAY_MS;
        self.go_on(Vec::new());
    }

    /// What was asked for in the last step.
    fn asks(&self) -> Vec<Ask> {
        let asks = self.effects.iter().filter_map(|effect| match effect {
            Effect::Ask(ask) => Some(ask.clone()),
            _ => None,
        });
        asks.collect()
    }

    fn ask(&self, work: &str) -> Ask {
        let found = self.asks().into_iter().find(|ask| ask.work == work);
        found.unwrap_or_else(|| panic!("{work} in {:#?}", self.effects))
    }

    fn answer(&mut self, ask: &Ask, answer: Value) {
        self.go_on(vec![Event::TaskDone { task: ask.task, attempt: ask.attempt, answer }]);
    }

    fn person_does(&mut self, variables: Value) {
        let view = self.state.view(Some(&self.definition));
        let open = view.active.iter().find(|active| matches!(active.doing, Doing::Person { .. }));
        let task = open.expect("a person has something to do").instance;
        self.go_on(vec![Event::UserDone { task, variables: map(variables) }]);
    }

    fn message(&mut self, awaited: &str, correlation: &str, variables: Value) {
        let found = self.state.subscriptions().into_iter().find_map(|waits| match waits {
            Subscription::Message { id, name, key: Some(key) }
                if name == awaited && key == correlation =>
            {
                Some(id)
            }
            _ => None,
        });
        let subscription = found.expect("the run waits for it");
        self.go_on(vec![Event::Message { subscription, variables: map(variables) }]);
    }

    /// The history is the path that is drawn.
    fn walked(&self, path: &str) {
        assert_eq!(self.left.join(" "), path);
    }

    fn ended_with(&self, output: Value) {
        assert_eq!(self.status, Status::Completed { output: Some(map(output)) });
    }
}

fn onboarding() -> Journey {
    Journey::start("onboard-customer", json!({"customerId": "c-1", "email": "a@example.com"}))
}

#[test]
fn a_customer_is_onboarded_when_the_address_is_confirmed() {
    let mut journey = onboarding();
    journey.person_does(json!({"documentsComplete": true}));
    let ask = journey.ask("io.camunda:http-json:1");
    assert_eq!(
        Value::Object(ask.variables.clone()),
        json!({
            "method": "POST", "url": "https://accounts.example.com/accounts",
            "authentication": {"type": "bearer", "token": "{{secrets.ACCOUNTS_TOKEN}}"},
            "body": {"customer": "c-1", "email": "a@example.com", "country": null},
        })
    );
    journey.answer(&ask, json!({"status": 201, "headers": {}, "body": {"id": "A-7"}}));
    journey.message("address-confirmed", "c-1", json!({}));
    journey.ended_with(json!({"accountId": "A-7", "outcome": "onboarded"}));
    journey.walked(
        "Applied CheckDocuments Complete OpenAccount WaitForCustomer AddressConfirmed NoteOnboarded Onboarded",
    );
}

#[test]
fn a_customer_is_refused_or_known_or_silent() {
    let mut journey = onboarding();
    journey.pass_days(1);
    let remind = journey.ask("remind-team");
    assert_eq!(remind.headers, [("channel".to_owned(), "onboarding".to_owned())]);
    journey.answer(&remind, json!("sent"));
    journey.person_does(json!({"documentsComplete": false}));
    journey.ended_with(json!({"accountId": null, "outcome": "documents missing"}));
    journey.walked(
        "Applied NotCheckedInTime RemindTeam Reminded CheckDocuments Complete NoteRefused Refused",
    );

    let mut journey = onboarding();
    journey.person_does(json!({"documentsComplete": true}));
    let Ask { task, attempt, .. } = journey.ask("io.camunda:http-json:1");
    let code = "HTTP_STATUS_409".to_owned();
    journey.go_on(vec![Event::TaskFailed { task, attempt, code, retry: false, after_ms: None }]);
    journey.ended_with(json!({"accountId": null, "outcome": "account exists"}));
    journey.walked("Applied CheckDocuments Complete AccountExists NoteExisting Known");

    let mut journey = onboarding();
    journey.person_does(json!({"documentsComplete": true}));
    let ask = journey.ask("io.camunda:http-json:1");
    journey.answer(&ask, json!({"status": 201, "headers": {}, "body": {"id": "A-8"}}));
    journey.pass_days(3);
    journey.ended_with(json!({"accountId": "A-8", "outcome": "address not confirmed"}));
    journey.walked(
        "Applied CheckDocuments Complete OpenAccount WaitForCustomer ThreeDaysPassed NoteSilent Silent",
    );
}

fn order() -> Journey {
    Journey::start(
        "fulfil-order",
        json!({"orderId": "o-1", "amount": 120, "items": [{"sku": "a"}]}),
    )
}

/// The instance that has called another process.
fn call(journey: &Journey) -> u64 {
    let found = journey.effects.iter().find_map(|effect| match effect {
        Effect::Call { task, process, input, exact: true } if process == "approve-discount" => {
            assert_eq!(Value::Object(input.clone()), json!({"amount": 120, "customerTier": null}));
            Some(*task)
        }
        _ => None,
    });
    found.unwrap_or_else(|| panic!("a call in {:#?}", journey.effects))
}

#[test]
fn an_order_is_shipped_when_the_discount_is_decided_and_the_parcel_packed() {
    for pack_first in [true, false] {
        let mut journey = order();
        let (task, pack) = (call(&journey), journey.ask("pack-order"));
        let own = Value::Object(pack.variables.clone());
        assert_eq!(own, json!({"order": {"id": "o-1", "items": [{"sku": "a"}]}}));
        let output = map(json!({"approved": true, "discount": 6, "reason": "small"}));
        let ended = Event::ChildEnded { task, output: Some(output), failed: None };
        let answer = json!({"parcel": "p-9", "weight": 3});
        let packed = Event::TaskDone { task: pack.task, attempt: pack.attempt, answer };
        let (first, second) = if pack_first { (packed, ended) } else { (ended, packed) };
        journey.go_on(vec![first]);
        assert!(journey.asks().is_empty(), "it ships when both are done");
        journey.go_on(vec![second]);
        let ship = journey.ask("ship-order");
        assert_eq!(ship.variables.get("parcel"), Some(&json!("p-9")));
        assert_eq!(ship.variables.get("weight"), None, "only what is mapped comes out");
        journey.answer(&ship, json!({"trackingCode": "T1"}));
        journey.ended_with(json!({"discount": 6, "trackingCode": "T1", "outcome": "shipped"}));
        let both = if pack_first { "Pack DecideDiscount" } else { "DecideDiscount Pack" };
        journey.walked(&format!("Ordered Split {both} Join Ship NoteShipped Shipped"));
    }
}

#[test]
fn an_order_ends_early_without_stock_or_when_it_is_cancelled() {
    let mut journey = order();
    let (child, pack) = (call(&journey), journey.ask("pack-order"));
    let (code, variables) = ("NO_STOCK".to_owned(), map(json!({})));
    let Ask { task, attempt, .. } = pack;
    journey.go_on(vec![Event::TaskError { task, attempt, code, variables }]);
    assert!(journey.effects.contains(&Effect::CancelCall { task: child }));
    journey.ended_with(json!({"discount": null, "trackingCode": null, "outcome": "not in stock"}));
    journey.walked("Ordered Split NoStock NoteNoStock OutOfStock");

    let mut journey = order();
    journey.message("order-cancelled", "o-1", json!({}));
    let release = journey.ask("release-stock");
    journey.answer(&release, json!(true));
    journey.ended_with(json!({"discount": null, "trackingCode": null, "outcome": "cancelled"}));
    journey.walked("Ordered Split Cancelled Release NoteCancelled CancelledEnd Cancellation");
}

fn invoice() -> Journey {
    let people = json!([{"id": 1, "email": "a@example.com"}, {"id": 2, "email": "b@example.com"}]);
    Journey::start("remind", json!({"invoiceId": "i-1", "people": people}))
}

/// What one round adds to the path: a reminder for each of the two, and the activity around them.
const ROUND: &str = "WeekPassed Remind Remind Remind CountRound Reminded";

/// A week passes, everybody is reminded and answers.
fn remind(journey: &mut Journey) {
    journey.pass_days(7);
    let asks = journey.asks();
    assert_eq!(asks.len(), 2);
    for (ask, to) in asks.iter().zip(["a@example.com", "b@example.com"]) {
        assert_eq!(ask.variables.get("to"), Some(&json!(to)));
        assert_eq!(ask.variables.get("subject"), Some(&json!("Invoice i-1 is not paid")));
    }
    // The second one is faster.
    journey.answer(&asks[1], json!("later"));
    journey.answer(&asks[0], json!("soon"));
}

#[test]
fn everybody_is_reminded_every_week_until_the_invoice_is_paid() {
    let mut journey = invoice();
    remind(&mut journey);
    remind(&mut journey);
    journey.message("invoice-paid", "i-1", json!({"paidOn": "2027-01-31"}));
    let answers = json!([{"person": 1, "answer": "soon"}, {"person": 2, "answer": "later"}]);
    journey.ended_with(json!({"paid": true, "rounds": 2, "answers": answers}));
    journey.walked(&format!("Sent NoRounds {ROUND} {ROUND} AwaitPayment NotePaid Paid"));
}

#[test]
fn an_invoice_is_given_up_after_thirty_days_and_three_rounds() {
    let mut journey = invoice();
    for _ in 0..3 {
        remind(&mut journey);
    }
    journey.pass_days(7);
    assert!(journey.asks().is_empty(), "a fourth week brings nothing");
    journey.pass_days(2);
    let answers = json!([{"person": 1, "answer": "soon"}, {"person": 2, "answer": "later"}]);
    journey.ended_with(json!({"paid": false, "rounds": 3, "answers": answers}));
    let rounds = [ROUND; 3].join(" ");
    journey.walked(&format!("Sent NoRounds {rounds} MonthPassed NoteUnpaid Unpaid"));
}
