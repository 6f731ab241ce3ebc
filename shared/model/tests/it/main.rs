//! Models behind HTTP: against an independent mock of providers, and against servers that behave as badly as servers can.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail as tests do")]

mod mock;
mod peers;
mod providers;
mod secrets;
mod wrong;

use std::time::Duration;

use prometheus::Registry;
use runfleet_http::{Client, Config, Service};
use runfleet_model::{
    ChatModel, HttpModel, Message, ModelFailure, Protocol, ProviderSettings, TurnAnswer,
    TurnRequest,
};
use tokio_util::sync::CancellationToken;

/// Long enough for everything that works, on a machine that is busy.
const LONG: Duration = Duration::from_secs(30);

/// Short enough to wait for.
const SHORT: Duration = Duration::from_millis(300);

const PROTOCOLS: [Protocol; 4] =
    [Protocol::OpenaiCompatible, Protocol::Anthropic, Protocol::Gemini, Protocol::Ollama];

fn service(allow: &str) -> Service {
    let config = Config { allow: allow.parse().unwrap(), ..Config::default() };
    Client::new(config, &Registry::new()).unwrap().service("model", None)
}

fn settings(protocol: Protocol, url: &str) -> ProviderSettings {
    ProviderSettings::new(protocol, url.parse().unwrap())
}

/// A model on this machine. One client serves all of a test: making one reads every certificate of the machine.
fn local(settings: ProviderSettings) -> HttpModel {
    thread_local! {
        static SERVICE: Service = service("127.0.0.1");
    }
    HttpModel::new(SERVICE.with(Clone::clone), settings)
}

fn request(user: &str) -> TurnRequest {
    TurnRequest {
        model: "a-model".to_owned(),
        system: "Be brief.".to_owned(),
        messages: vec![Message::User { text: user.to_owned() }],
        within: LONG,
        turn: 1,
        attempt: 1,
        ..TurnRequest::default()
    }
}

async fn ask(model: &HttpModel, request: &TurnRequest) -> Result<TurnAnswer, ModelFailure> {
    model.turn(request, CancellationToken::new()).await
}
