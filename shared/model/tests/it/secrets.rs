//! Nothing that is secret, or that people or models have said, is ever shown.

use std::fmt::Write as _;
use std::io::Write;
use std::sync::{Arc, Mutex};

use runfleet_model::{FailureKind, Message, ProviderSettings, ToolCall, ToolResult, TurnAnswer};
use secrecy::SecretString;
use tracing_subscriber::fmt::MakeWriter;

use crate::peers::{Peer, Then};
use crate::{PROTOCOLS, ask, local, request, settings};

const KEY: &str = "canary-key-77f0";
const WORDS: &str = "canary-words-77f0";

/// Everything that is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn no_key_and_no_word_of_people_or_models_reaches_a_log_an_error_or_a_debug_text() {
    let log = Log::default();
    tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(log.clone())
        .init();
    let mut shown = String::new();
    for protocol in PROTOCOLS {
        for (head, body) in [
            ("HTTP/1.1 401 no", format!("{{\"error\":{{\"message\":\"{KEY} {WORDS}\"}}}}")),
            ("HTTP/1.1 500 no", format!("{WORDS} {KEY}")),
            ("HTTP/1.1 200 OK", format!("data: {{\"error\": \"{WORDS} {KEY}\"}}\n\n")),
            ("HTTP/1.1 200 OK", format!("{WORDS}\n\n")),
        ] {
            let head = format!("{head}\r\ncontent-length: {}", body.len());
            let peer = Peer::start(&head, &body, Then::Close).await;
            let key = Some(SecretString::from(KEY));
            let settings = ProviderSettings { key, ..settings(protocol, &peer.url()) };
            let mut asked = request(WORDS);
            WORDS.clone_into(&mut asked.system);
            let model = local(settings.clone());
            let failure = ask(&model, &asked).await.unwrap_err();
            assert_ne!(failure.kind, FailureKind::NotAllowed, "{protocol:?}");
            let sent = peer.requests().pop().unwrap();
            assert!(sent.contains(KEY) && sent.contains(WORDS), "the provider is told: {sent}");
            writeln!(shown, "{failure} {failure:?} {settings:?} {model:?} {asked:?}").unwrap();
        }
    }
    let unwritten = SecretString::from(format!("{KEY}\n"));
    let settings =
        ProviderSettings { key: Some(unwritten), ..settings(PROTOCOLS[1], "http://127.0.0.1:9") };
    let failure = ask(&local(settings), &request("hello")).await.unwrap_err();
    writeln!(shown, "{failure} {failure:?}").unwrap();
    writeln!(shown, "{:?}", said()).unwrap();
    let logged = String::from_utf8_lossy(&log.0.lock().unwrap()).into_owned();
    assert!(logged.contains("127.0.0.1"), "the log has the calls in it");
    for (place, text) in [("log", logged), ("text", shown)] {
        assert!(!text.contains(KEY) && !text.contains(WORDS), "{place}: {text}");
    }
}

/// Everything that can be said, with the canary in it.
fn said() -> (TurnAnswer, Vec<Message>, ToolResult) {
    let word = || WORDS.to_owned();
    let call = ToolCall { id: word(), name: word(), arguments: word(), signature: Some(word()) };
    let result = ToolResult { call_id: word(), name: word(), content: word(), failed: false };
    let answer =
        TurnAnswer { text: word(), tool_calls: vec![call.clone()], ..TurnAnswer::default() };
    let messages = vec![
        Message::User { text: word() },
        Message::Assistant { text: word(), tool_calls: vec![call] },
        Message::Tools { results: vec![result.clone()] },
    ];
    (answer, messages, result)
}
