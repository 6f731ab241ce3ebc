//! A run that is driven by hand: each step goes through the stored form, as if the worker had died in between.
#![expect(clippy::needless_pass_by_value, reason = "rows of tests read better")]

use std::collections::BTreeMap;

use runfleet_agent::{
    Advanced, Answer, AnswerCall, AnswerUsage, Begin, Definition, Effect, End, Event, FailureKind,
    Message, ModelFailure, ModelRequest, State, Status, advance,
};
use serde_json::{Value, json};

pub(crate) const START: u64 = 1_000_000;
pub(crate) const DEADLINE: u64 = START + 300_000;

/// A definition: `spec` over the defaults, and tools by name.
pub(crate) fn definition(spec: Value, tools: Value) -> Definition {
    definition_with(json!({"spec": spec, "tools": tools}))
}

pub(crate) fn definition_with(fields: Value) -> Definition {
    let mut blueprint = json!({"format": 1, "agent": "coach", "model": "m/1", "spec": {}});
    for (name, value) in fields.as_object().unwrap() {
        blueprint[name] = value.clone();
    }
    Definition::parse(&blueprint.to_string()).unwrap()
}

/// A tool of a project with the schema `{n: integer, default 1}`.
pub(crate) fn tool(permission: &str, idempotent: bool) -> Value {
    json!({
        "description": "x", "permission": permission, "idempotent": idempotent, "timeoutSeconds": 20,
        "kind": {"project": {"project": "p", "function": "f"}},
        "inputSchema": {"type": "object", "properties": {
            "n": {"type": "integer", "default": 1}, "s": {"type": "string"}
        }, "additionalProperties": false}
    })
}

pub(crate) fn begin() -> Begin {
    Begin {
        instruction: "Look at the deal.".to_owned(),
        now_ms: START,
        deadline_ms: DEADLINE,
        ..Begin::default()
    }
}

pub(crate) fn says(text: &str) -> Answer {
    let usage = AnswerUsage { input_tokens: 10, output_tokens: 5, cached_tokens: 0 };
    Answer { text: text.to_owned(), usage, ..Answer::default() }
}

pub(crate) fn calls(list: &[(&str, &str)]) -> Answer {
    let call = |(name, arguments): &(&str, &str)| AnswerCall {
        name: (*name).to_owned(),
        arguments: (*arguments).to_owned(),
    };
    Answer { calls: list.iter().map(call).collect(), ..says("") }
}

pub(crate) struct Driven {
    pub(crate) definition: Definition,
    pub(crate) state: State,
    pub(crate) now_ms: u64,
    /// What became due in the last step.
    pub(crate) effects: Vec<Effect>,
    pub(crate) ignored: u32,
}

impl Driven {
    pub(crate) fn new(definition: Definition, begin: Begin) -> Self {
        let state = definition.begin(begin);
        let mut run = Self { definition, state, now_ms: START, effects: Vec::new(), ignored: 0 };
        run.step(Vec::new());
        run
    }

    pub(crate) fn step(&mut self, events: Vec<Event>) -> &mut Self {
        let json = self.state.to_json().unwrap();
        assert!(json.len() <= 256 * 1024, "{} bytes", json.len());
        let state = State::from_json(&json).unwrap();
        assert_eq!(state, self.state, "the stored form is the state");
        let advanced = advance(&self.definition, state, events, self.now_ms);
        let Advanced { state, status, effects, ignored } = advanced;
        assert_eq!(status, state.status());
        self.state = state;
        self.effects = effects;
        self.ignored += ignored;
        self
    }

    /// Lets time pass.
    pub(crate) fn at(&mut self, after_ms: u64) -> &mut Self {
        self.now_ms = START + after_ms;
        self.step(Vec::new())
    }

    pub(crate) fn wake_ms(&self) -> u64 {
        match self.state.status() {
            Status::Waiting { wake_ms } => wake_ms,
            other => panic!("{other:?}"),
        }
    }

    /// The model call that is outstanding.
    pub(crate) fn asked(&self) -> Option<(u32, u32, ModelRequest)> {
        self.state.outstanding(&self.definition).into_iter().find_map(|effect| match effect {
            Effect::AskModel { turn, attempt, request } => Some((turn, attempt, *request)),
            _ => None,
        })
    }

    pub(crate) fn request(&self) -> ModelRequest {
        self.asked().expect("a model was asked").2
    }

    /// The calls that are outstanding: id and arguments.
    pub(crate) fn called(&self) -> Vec<(String, Value)> {
        let outstanding = self.state.outstanding(&self.definition);
        let call = |effect| match effect {
            Effect::CallTool { call_id, arguments, .. } => Some((call_id, Value::from(arguments))),
            _ => None,
        };
        outstanding.into_iter().filter_map(call).collect()
    }

    pub(crate) fn answer(&mut self, answer: Answer) -> &mut Self {
        let (turn, attempt, _) = self.asked().expect("a model was asked");
        self.step(vec![Event::ModelAnswered { turn, attempt, answer }])
    }

    pub(crate) fn fail(&mut self, kind: FailureKind, retry_after_ms: Option<u64>) -> &mut Self {
        let (turn, attempt, _) = self.asked().expect("a model was asked");
        let failure = ModelFailure { kind, retry_after_ms };
        self.step(vec![Event::ModelFailed { turn, attempt, failure }])
    }

    pub(crate) fn done(&mut self, call_id: &str, output: Value) -> &mut Self {
        self.step(vec![Event::ToolDone { call_id: call_id.to_owned(), output }])
    }

    /// Answers every call with `ok`.
    pub(crate) fn done_all(&mut self) -> &mut Self {
        while let Some((call_id, _)) = self.called().first() {
            self.done(&call_id.clone(), json!("ok"));
        }
        self
    }

    pub(crate) fn end(&self) -> &End {
        self.state.end().unwrap_or_else(|| panic!("it goes on: {:?}", self.state.view()))
    }

    /// The code that it has ended with.
    pub(crate) fn code(&self) -> &'static str {
        self.end().error.map_or("", runfleet_agent::ErrorCode::as_str)
    }

    /// The results that the model is told in the next request, by call.
    pub(crate) fn told(&self) -> BTreeMap<String, (String, bool)> {
        let messages = self.request().messages;
        let result = |message| match message {
            Message::Tool { call_id, content, error, .. } => Some((call_id, (content, error))),
            _ => None,
        };
        messages.into_iter().filter_map(result).collect()
    }
}
