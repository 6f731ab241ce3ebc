//! Scripts: which rule is played, and what is said about those that are wrong.

use std::io::Write;

use super::*;
use crate::turn::ToolResult;

const SCRIPT: &str = r#"
rules:
  - when: { turn: 1, attempt: 1, user: flaky }
    failure: { rateLimited: { retryAfterMs: 1500 } }
  - when: { tool: { name: weather, contains: rain } }
    delayMs: 5000
    answer: { text: Take an umbrella., usage: { inputTokens: 7, outputTokens: 3 } }
  - when: { user: weather }
    answer:
      text: Let me look.
      toolCalls:
        - { name: weather, arguments: { city: Hanoi } }
        - { id: mine, name: weather, arguments: '{"city": ' }
        - { name: now }
  - when: { user: hang }
    failure: hang
  - when: { model: other, system: strict }
    failure: { refused: { status: 400 } }
  - when: { user: long }
    answer: { text: and so on, stop: maxTokens }
  - when: { user: flaky }
    answer: { text: At last. }
"#;

fn model() -> ScriptedModel {
    ScriptedModel::from_text("script.yaml", SCRIPT).unwrap()
}

fn request(user: &str) -> TurnRequest {
    TurnRequest {
        model: "m".to_owned(),
        messages: vec![Message::User { text: user.to_owned() }],
        within: Duration::from_secs(10),
        turn: 1,
        attempt: 1,
        ..TurnRequest::default()
    }
}

async fn play(request: &TurnRequest) -> Result<TurnAnswer, ModelFailure> {
    model().turn(request, CancellationToken::new()).await
}

#[tokio::test(start_paused = true)]
async fn the_first_rule_that_fits_is_played_and_the_same_request_hears_the_same() {
    let mut asked = request("what about the weather?");
    let first = play(&asked).await.unwrap();
    assert_eq!(first, play(&asked).await.unwrap());
    let calls = first.tool_calls.iter().map(|call| (&*call.id, &*call.name, &*call.arguments));
    let expected = [
        ("call-1-1", "weather", r#"{"city":"Hanoi"}"#),
        ("mine", "weather", r#"{"city": "#),
        ("call-1-3", "now", "{}"),
    ];
    assert_eq!(calls.collect::<Vec<_>>(), expected);
    assert_eq!((first.text.as_str(), first.stop), ("Let me look.", Stop::ToolCalls));
    assert_eq!(first.usage, Usage { input_tokens: 6, output_tokens: 14, cached_tokens: 0 });
    let result = ToolResult {
        call_id: "mine".to_owned(),
        name: "weather".to_owned(),
        content: "heavy rain".to_owned(),
        failed: false,
    };
    asked.messages.push(Message::Assistant { text: first.text, tool_calls: first.tool_calls });
    asked.messages.push(Message::Tools { results: vec![result] });
    let began = Instant::now();
    let second = play(&asked).await.unwrap();
    assert_eq!(second.text, "Take an umbrella.");
    assert_eq!(second.usage, Usage { input_tokens: 7, output_tokens: 3, cached_tokens: 0 });
    assert_eq!(began.elapsed(), Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn failures_are_played_too_and_a_second_attempt_may_go_better() {
    let mut asked = request("flaky");
    let failure = play(&asked).await.unwrap_err();
    assert_eq!(failure.retry_after(), Some(Duration::from_millis(1_500)));
    assert!(failure.retryable);
    asked.attempt = 2;
    assert_eq!(play(&asked).await.unwrap().text, "At last.");
    assert_eq!(play(&request("long")).await.unwrap().stop, Stop::MaxTokens);
    let strict = TurnRequest {
        model: "other".to_owned(),
        system: "be strict".to_owned(),
        ..request("hello")
    };
    let refused = play(&strict).await.unwrap_err();
    assert_eq!(refused, FailureKind::Refused { status: 400 }.into());
    let none = play(&request("hello")).await.unwrap_err();
    assert_eq!(none, FailureKind::Refused { status: 404 }.into());
}

#[tokio::test(start_paused = true)]
async fn a_script_that_hangs_or_is_slow_ends_with_the_time_or_when_it_is_cancelled() {
    let hang = request("hang");
    let began = Instant::now();
    let failure = play(&hang).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Timeout(TimeoutPhase::Total));
    assert_eq!(began.elapsed(), hang.within);
    let (cancel, model) = (CancellationToken::new(), model());
    let cancelling = async {
        sleep(Duration::from_millis(20)).await;
        cancel.cancel();
    };
    let (answer, ()) = tokio::join!(model.turn(&hang, cancel.clone()), cancelling);
    assert_eq!(answer.unwrap_err().kind, FailureKind::Cancelled);
}

#[test]
fn a_script_that_is_wrong_is_told_with_its_file_and_the_place() {
    for (text, expected) in [
        ("rules: []", "s.yaml: rules: has no rule"),
        (
            "rules:\n - when: {turn: 1}",
            "s.yaml: rules[0]: has to have either `answer` or `failure`",
        ),
        (
            "rules:\n - answer: {text: a}\n - answer: {toolCalls: [{arguments: {}}]}",
            "s.yaml: rules[1].answer.toolCalls[0]: missing field `name`",
        ),
        ("rules:\n - answer: {txt: a}", "s.yaml: rules[0].answer.txt: unknown field `txt`"),
        ("rules:\n - failure: boom", "s.yaml: rules[0].failure: unknown variant `boom`"),
        (
            "rules:\n - {delayMs: 900001, failure: cut}",
            "s.yaml: rules[0].delayMs: is more than 15 minutes",
        ),
        ("rules: [", "s.yaml: is not YAML: "),
        ("{}", "s.yaml: the document: missing field `rules`"),
    ] {
        let error = ScriptedModel::from_text("s.yaml", text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    let missing = ScriptedModel::from_file(Path::new("/nowhere/script.yaml")).unwrap_err();
    assert_eq!(missing.to_string(), "/nowhere/script.yaml: cannot be read");
    let mut large = tempfile::NamedTempFile::new().unwrap();
    large.write_all(&vec![b'#'; 1_024 * 1_024 + 1]).unwrap();
    let error = ScriptedModel::from_file(large.path()).unwrap_err();
    assert!(matches!(error, ScriptError::TooLarge { .. }));
}

#[tokio::test]
async fn the_script_in_the_readme_plays() {
    let readme = include_str!("../../README.md");
    let script = readme.split("```yaml").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let model = ScriptedModel::from_text("README.md", script).unwrap();
    let mut asked = request("Is it raining in Hanoi?");
    let failure = model.turn(&asked, CancellationToken::new()).await.unwrap_err();
    assert_eq!(failure.retry_after(), Some(Duration::from_millis(200)));
    asked.attempt = 2;
    let answer = model.turn(&asked, CancellationToken::new()).await.unwrap();
    assert_eq!(answer.tool_calls[0].name, "get_weather");
}

#[tokio::test]
async fn a_rule_may_want_something_to_have_been_said_before_the_last_text_of_the_user() {
    let script =
        "rules: [{when: {earlier: apples}, answer: {text: known}}, {answer: {text: unknown}}]";
    let model = ScriptedModel::from_text("script.yaml", script).unwrap();
    let user = |text: &str| Message::User { text: text.to_owned() };
    let agent = |text: &str| Message::Assistant { text: text.to_owned(), tool_calls: Vec::new() };
    for (messages, expected) in [
        (vec![user("apples?")], "unknown"),
        (vec![user("apples?"), agent("Apples.")], "unknown"),
        (vec![user("apples?"), agent("Yes."), user("And?")], "known"),
        (vec![user("Hello."), agent("I like apples."), user("And?")], "known"),
    ] {
        let asked = TurnRequest { messages, ..request("") };
        let answer = model.turn(&asked, CancellationToken::new()).await.unwrap();
        assert_eq!(answer.text, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_said_word_by_word_in_its_time_and_whole_where_no_time_is_given() {
    let say = async |answer: &str| {
        let text = format!("rules: [{{ answer: {{ {answer} }} }}]");
        let model = ScriptedModel::from_text("words.yaml", &text).unwrap();
        let (began, mut heard) = (Instant::now(), Vec::new());
        let mut hear = |piece: &str| heard.push(piece.to_owned());
        let asked = request("x");
        let answer = model.turn_with(&asked, CancellationToken::new(), &mut hear).await.unwrap();
        assert_eq!(heard.concat(), answer.text);
        (heard, began.elapsed())
    };
    let (heard, took) = say(r#"text: "Take an\numbrella.", wordMs: 100"#).await;
    assert_eq!(heard, ["Take ", "an\n", "umbrella."]);
    assert_eq!(took, Duration::from_millis(300));
    assert_eq!(
        say("text: Take an umbrella.").await,
        (vec!["Take an umbrella.".to_owned()], Duration::ZERO)
    );
    let slow = "rules: [{ answer: { text: a b c, wordMs: 300001 } }]";
    let error = ScriptedModel::from_text("slow.yaml", slow).unwrap_err().to_string();
    assert!(error.contains("rules[0].answer.wordMs"), "{error}");
}
