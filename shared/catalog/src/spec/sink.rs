//! `kind: ChatSink`, and what agents say about messages to people.

use super::tool::{address, place};
use crate::bounds::{
    DISPLAY_CHARS_MAX, SINK_PARALLEL, SINK_PARALLEL_DEFAULT, SINK_SECONDS, SINK_SECONDS_DEFAULT,
};
use crate::reader::{At, Fields};
use crate::sink::{
    ChatSink, QuietHours, QuietPolicy, QuietRules, SinkKind, SmtpSecurity, SmtpServer, minute_of,
};
use crate::tool::Secretly;

#[derive(Clone, Copy)]
enum Type {
    Builtin,
    Webhook,
    Slack,
    Mattermost,
    Smtp,
}

const TYPES: &[(&str, Type)] = &[
    ("builtin", Type::Builtin),
    ("webhook", Type::Webhook),
    ("slack", Type::Slack),
    ("mattermost", Type::Mattermost),
    ("smtp", Type::Smtp),
];

const SECURITIES: &[(&str, SmtpSecurity)] = &[
    ("tls", SmtpSecurity::Tls),
    ("starttls", SmtpSecurity::Starttls),
    ("none", SmtpSecurity::None),
];

const POLICIES: &[(&str, QuietPolicy)] =
    &[("wait", QuietPolicy::Wait), ("block", QuietPolicy::Block)];

pub(super) fn read(spec: At<'_>) -> Option<ChatSink> {
    let mut fields = spec.fields()?;
    let kind = fields.required("type").and_then(|at| at.word(TYPES));
    let kind = kind.and_then(|kind| self::kind(kind, &mut fields));
    let timeout = fields.or("timeoutSeconds", SINK_SECONDS_DEFAULT, |at| at.integer(SINK_SECONDS));
    let parallel = fields.or("parallel", SINK_PARALLEL_DEFAULT, |at| at.integer(SINK_PARALLEL));
    // Without a type nobody knows which fields there are.
    if kind.is_some() {
        fields.finish();
    }
    Some(ChatSink { kind: kind?, timeout_seconds: timeout?, parallel: parallel? })
}

fn kind(kind: Type, fields: &mut Fields<'_>) -> Option<SinkKind> {
    match kind {
        Type::Builtin => Some(SinkKind::Builtin),
        Type::Webhook => {
            let url = url(fields);
            let key = place(fields, "keyEnv", "keyFile");
            if key.is_none() {
                fields.mistake("must have one of keyEnv, keyFile: what is sent is signed");
            }
            let deduplicates = fields.or("deduplicates", false, |at| at.boolean());
            Some(SinkKind::Webhook { url: url?, key: key?, deduplicates: deduplicates? })
        }
        Type::Slack => url(fields).map(|url| SinkKind::Slack { url }),
        Type::Mattermost => url(fields).map(|url| SinkKind::Mattermost { url }),
        Type::Smtp => server(fields).map(SinkKind::Smtp),
    }
}

/// The address itself, or where it is found: many addresses of webhooks are secrets.
fn url(fields: &mut Fields<'_>) -> Option<Secretly> {
    let written = fields.optional("url");
    let kept = place(fields, "urlEnv", "urlFile");
    match (written, kept) {
        (Some(at), None) => address(&at).map(Secretly::Text),
        (None, Some(place)) => Some(place),
        _ => {
            fields.mistake("must have one of url, urlEnv, urlFile");
            None
        }
    }
}

fn server(fields: &mut Fields<'_>) -> Option<SmtpServer> {
    let host = fields.required("host").and_then(|at| host(&at));
    let security = fields.or("security", SmtpSecurity::Starttls, |at| at.word(SECURITIES));
    let port = fields.or("port", None, |at| at.integer(1..=65_535).map(Some));
    let user = fields.or("user", None, |at| at.line().map(Some));
    let password = place(fields, "passwordEnv", "passwordFile");
    let from = fields.required("from").and_then(|at| mailbox(&at));
    let subject = fields.or("subject", None, |at| at.display(DISPLAY_CHARS_MAX).map(Some));
    if matches!(&user, Some(user) if user.is_some() != password.is_some()) {
        fields.mistake("must have both user and password, or none of them");
    }
    if password.is_some() && security == Some(SmtpSecurity::None) {
        fields.mistake("must not send a password over a connection that is not protected");
    }
    let security = security?;
    let port = port?.and_then(|port| u16::try_from(port).ok()).unwrap_or(match security {
        SmtpSecurity::Tls => 465,
        SmtpSecurity::Starttls => 587,
        SmtpSecurity::None => 25,
    });
    Some(SmtpServer {
        host: host?,
        port,
        security,
        user: user?,
        password,
        from: from?,
        subject: subject?,
    })
}

fn host(at: &At<'_>) -> Option<String> {
    let text = at.line()?;
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
    if text.len() > 253 || !text.bytes().all(good) {
        at.mistake("must be a host name or an address");
        return None;
    }
    Some(text)
}

/// An address of mail, without a name in front of it. The worker reads it once more.
pub(super) fn mailbox(at: &At<'_>) -> Option<String> {
    let text = at.line()?;
    let good = text.split_once('@').is_some_and(|(local, domain)| {
        !local.is_empty() && !domain.is_empty() && !domain.contains('@')
    });
    if !good || text.len() > 254 || text.chars().any(|c| c.is_whitespace() || "<>,;".contains(c)) {
        at.mistake("must be a mail address");
        return None;
    }
    Some(text)
}

/// `{policy, from, to, timeZone}`: times all together or none.
pub(super) fn quiet(at: At<'_>) -> Option<QuietRules> {
    let mut fields = at.fields()?;
    let policy = fields.or("policy", QuietPolicy::default(), |at| at.word(POLICIES));
    let mut times = [fields.optional("from"), fields.optional("to")];
    let zone = fields.optional("timeZone");
    let given = times.iter().flatten().count() + usize::from(zone.is_some());
    let hours = if given == 0 {
        Some(None)
    } else if given < 3 {
        fields.mistake("must have all of from, to and timeZone, or none of them");
        None
    } else {
        let [from, to] = times.each_mut().map(|at| at.take().and_then(|at| time(&at)));
        let zone = zone.and_then(|at| time_zone(&at));
        let hours = || {
            let (from, to) = (from?, to?);
            if from == to {
                fields.mistake("must have different times in from and to");
                return None;
            }
            Some(QuietHours { from, to, time_zone: zone? })
        };
        hours().map(Some)
    };
    fields.finish();
    Some(QuietRules { policy: policy?, hours: hours? })
}

fn time(at: &At<'_>) -> Option<String> {
    let text = at.text()?;
    if minute_of(text).is_none() {
        at.mistake("must be a time of day, \"HH:MM\"");
        return None;
    }
    Some(text.to_owned())
}

fn time_zone(at: &At<'_>) -> Option<String> {
    let text = at.line()?;
    if text.len() > 64 || jiff::tz::TimeZone::get(&text).is_err() {
        at.mistake("must be a time zone of the IANA, such as Europe/Berlin");
        return None;
    }
    Some(text)
}
