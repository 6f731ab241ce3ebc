//! `runfleet chat`: conversations of a person with agents, over the public path, as that person.

use std::process::ExitCode;

use anyhow::{Result, bail};
use runfleet_client::{Client, Error};
use runfleet_contracts::chat::{
    ChatAuthor, ChatDecide, ChatDecision, ChatEntry, ChatListed, ChatPage, ChatQuietHours,
    ChatRead, ChatSettings, HeldCall,
};
use serde_json::value::RawValue;

use crate::calls::{client, json, print};
use crate::context::Identity;
use crate::out;

/// Longest beginning of a message in a list, in characters.
const SHOWN_CHARS: usize = 60;

#[derive(clap::Subcommand)]
pub(crate) enum ChatCommand {
    /// List the conversations of a person, the one with the newest message first.
    List(List),
    /// Show the newest messages of a conversation, and what waits for a decision.
    Read(Read),
    /// Say something in a conversation; its agent answers.
    Reply(Reply),
    /// Let an agent make a tool call that waits for you.
    Approve(Decide),
    /// Let an agent make a tool call with other arguments.
    Edit(Edit),
    /// Do not let an agent make a tool call.
    Reject(Reject),
    /// Say when you want no messages, or show what you have said.
    Settings(Settings),
}

/// Arguments of `chat list`.
#[derive(clap::Args)]
pub(crate) struct List {
    /// Only conversations whose last message is older than this, in Unix milliseconds.
    #[arg(long)]
    before: Option<u64>,
    /// Most conversations: 1 to 100.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100))]
    limit: Option<u32>,
    /// The answer as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    identity: Identity,
}

/// Arguments of `chat read`.
#[derive(clap::Args)]
pub(crate) struct Read {
    /// The id of the conversation.
    conversation: String,
    /// Only messages with a lower number.
    #[arg(long)]
    before: Option<u64>,
    /// Most messages: 1 to 100.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100))]
    limit: Option<u32>,
    /// Leave them unread.
    #[arg(long)]
    unread: bool,
    /// The answer as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    identity: Identity,
}

/// Arguments of `chat reply`.
#[derive(clap::Args)]
pub(crate) struct Reply {
    /// The id of the conversation.
    conversation: String,
    /// What you say.
    text: String,
    #[command(flatten)]
    identity: Identity,
}

/// Which call, and who decides.
#[derive(clap::Args)]
pub(crate) struct Decide {
    /// The id of the conversation.
    conversation: String,
    /// The id of the call, as `chat read` shows it.
    call: String,
    /// The run that wants to make it, when several want to make one with that id.
    #[arg(long)]
    run: Option<String>,
    #[command(flatten)]
    identity: Identity,
}

/// Arguments of `chat edit`.
#[derive(clap::Args)]
pub(crate) struct Edit {
    #[command(flatten)]
    on: Decide,
    /// The arguments of the call: a JSON object.
    args: String,
}

/// Arguments of `chat reject`.
#[derive(clap::Args)]
pub(crate) struct Reject {
    #[command(flatten)]
    on: Decide,
    /// Why: the agent is told.
    #[arg(long)]
    message: Option<String>,
}

/// Arguments of `chat settings`.
#[derive(clap::Args)]
pub(crate) struct Settings {
    /// Whether no agent may write to you.
    #[arg(long)]
    opt_out: Option<bool>,
    /// Hours without messages, such as `22:00-07:30`.
    #[arg(long, requires = "time_zone", conflicts_with = "no_quiet_hours")]
    quiet_hours: Option<String>,
    /// The time zone of those hours, such as `Europe/Berlin`.
    #[arg(long, requires = "quiet_hours")]
    time_zone: Option<String>,
    /// No hours without messages any more.
    #[arg(long)]
    no_quiet_hours: bool,
    #[command(flatten)]
    identity: Identity,
}

pub(crate) async fn run(command: ChatCommand) -> Result<ExitCode> {
    match command {
        ChatCommand::List(args) => list(args).await,
        ChatCommand::Read(args) => read(args).await,
        ChatCommand::Reply(args) => {
            let (client, broker) = client(&args.identity)?;
            let answer = client.chat().reply(args.conversation, args.text).await;
            broker.close().await;
            print(answer)
        }
        ChatCommand::Approve(on) => decide(on, ChatDecision::Approve, None, None).await,
        ChatCommand::Edit(edit) => {
            let args = json("ARGS", Some(edit.args))?;
            decide(edit.on, ChatDecision::Edit, args, None).await
        }
        ChatCommand::Reject(reject) => {
            decide(reject.on, ChatDecision::Reject, None, reject.message).await
        }
        ChatCommand::Settings(args) => settings(args).await,
    }
}

async fn list(args: List) -> Result<ExitCode> {
    let (client, broker) = client(&args.identity)?;
    let answer = client.chat().list(args.before, args.limit).await;
    broker.close().await;
    match answer {
        Ok(page) if !args.json => {
            page.conversations.iter().for_each(|listed| out::line(line(listed)));
            if let Some(next) = page.next {
                out::line(format_args!("more: --before {next}"));
            }
            Ok(ExitCode::SUCCESS)
        }
        answer => print(answer),
    }
}

async fn read(args: Read) -> Result<ExitCode> {
    let options = ChatRead {
        conversation_id: args.conversation,
        before: args.before,
        limit: args.limit,
        mark_read: Some(!args.unread),
    };
    let (client, broker) = client(&args.identity)?;
    let answer = client.chat().read(&options).await;
    broker.close().await;
    match answer {
        Ok(page) if !args.json => {
            show(&page);
            Ok(ExitCode::SUCCESS)
        }
        answer => print(answer),
    }
}

/// The run of a call is that which answers now, or one that this has asked: the conversation says it.
async fn decide(
    on: Decide,
    decision: ChatDecision,
    args: Option<Box<RawValue>>,
    message: Option<String>,
) -> Result<ExitCode> {
    let (client, broker) = client(&on.identity)?;
    let held = held(&client, &on).await;
    if let Ok([first, _, ..]) = held.as_deref() {
        broker.close().await;
        let of = first.agent_id.as_deref().map_or(String::new(), |agent| format!(" of {agent}"));
        bail!("several calls have this id; name one with --run, such as {}{of}", first.run_id);
    }
    let answer = match held {
        Ok(calls) => {
            let run_id = calls.into_iter().next().map_or(String::new(), |call| call.run_id);
            let Decide { conversation: conversation_id, call: call_id, .. } = on;
            let options = ChatDecide { conversation_id, run_id, call_id, decision, args, message };
            client.chat().decide(&options).await
        }
        Err(error) => Err(error),
    };
    broker.close().await;
    print(answer)
}

/// The calls that are meant, as the conversation shows them; none when they do not wait for a decision.
async fn held(client: &Client, on: &Decide) -> Result<Vec<HeldCall>, Error> {
    let options = ChatRead {
        conversation_id: on.conversation.clone(),
        before: None,
        limit: Some(1),
        mark_read: None,
    };
    let page = client.chat().read(&options).await?;
    let of_run = |held: &HeldCall| on.run.as_ref().is_none_or(|run| *run == held.run_id);
    let meant = page.held.into_iter().filter(|held| held.call_id == on.call && of_run(held));
    Ok(meant.collect())
}

async fn settings(args: Settings) -> Result<ExitCode> {
    let quiet_hours = match (args.quiet_hours, args.time_zone) {
        (Some(hours), Some(time_zone)) => {
            let Some((from, to)) = hours.split_once('-') else {
                bail!("--quiet-hours is not of the form 22:00-07:30");
            };
            Some(Some(ChatQuietHours { from: from.to_owned(), to: to.to_owned(), time_zone }))
        }
        _ => args.no_quiet_hours.then_some(None),
    };
    let (client, broker) = client(&args.identity)?;
    let options = ChatSettings { opt_out: args.opt_out, quiet_hours };
    let answer = client.chat().settings(&options).await;
    broker.close().await;
    print(answer)
}

/// One line for a conversation.
fn line(listed: &ChatListed) -> String {
    let conversation = &listed.conversation;
    let title = conversation.title.as_deref().map_or(String::new(), |title| format!(" [{title}]"));
    format!(
        "{}  {:>3} unread  {}{title}: {}",
        conversation.conversation_id,
        conversation.unread,
        conversation.agent_id,
        plain(&listed.last.text, SHOWN_CHARS),
    )
}

/// A page: its messages, and what waits for a decision.
fn show(page: &ChatPage) {
    if let (true, Some(first)) = (page.older, page.messages.first()) {
        out::line(format_args!("older: --before {}", first.seq));
    }
    page.messages.iter().for_each(|entry| out::line(said(entry, &page.conversation.agent_id)));
    if let Some(run) = &page.conversation.active_run_id {
        out::line(format_args!("… {} is at work ({run})", page.conversation.agent_id));
    }
    for call in &page.held {
        let of = call.agent_id.as_ref();
        let of = of.map_or(String::new(), |agent| format!(" of {agent} ({})", call.run_id));
        out::line(format_args!("? {}{of} wants {}: {}", call.call_id, call.tool, call.args));
    }
}

/// One message. Texts come from models: nothing in them may command the terminal.
fn said(entry: &ChatEntry, agent: &str) -> String {
    let from = match entry.from {
        ChatAuthor::Agent => agent,
        ChatAuthor::Person => "you",
        ChatAuthor::System => "(no answer)",
    };
    format!("{:>4} {from}: {}", entry.seq, plain(&entry.text, usize::MAX))
}

/// A text without control characters but line breaks and tabs, cut to a number of characters.
fn plain(text: &str, chars: usize) -> String {
    let harmless = |letter: char| {
        if letter.is_control() && !matches!(letter, '\n' | '\t') { '\u{fffd}' } else { letter }
    };
    let one_line = chars < usize::MAX;
    let shown = text.chars().map(|letter| if one_line && letter == '\n' { ' ' } else { letter });
    let mut shown: String = shown.map(harmless).take(chars).collect();
    if one_line && text.chars().nth(chars).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_command_the_terminal_and_is_otherwise_shown_as_it_is() {
        assert_eq!(plain("a\u{1b}[2Jb\r\u{9b}c", usize::MAX), "a\u{fffd}[2Jb\u{fffd}\u{fffd}c");
        assert_eq!(plain("שלום\n👋 e\u{301}", usize::MAX), "שלום\n👋 e\u{301}");
        assert_eq!(plain("one\ntwo", 5), "one t…");
        assert_eq!(plain("one", 3), "one");
    }
}
