//! Electronic mail over SMTP. One connection for each message, to an address that was judged; the certificate is that of the name.
//!
//! A server that has answered says what became of the message. One that falls silent after the message was on its way leaves it
//! open, and mail knows no ids that servers compare.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use lettre::message::{Mailbox, SinglePart};
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{AsyncSmtpConnection, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{Address, Message};
use runfleet_catalog::{SmtpSecurity, SmtpServer};
use runfleet_http::{Breaker, Judge, NoAddress, Verdict};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::time::{Instant, timeout_at};

use super::Letter;
use crate::outcome::Outcome;

/// How a login is tried: in the clear, inside of TLS.
const MECHANISMS: [Mechanism; 2] = [Mechanism::Plain, Mechanism::Login];

/// Longest time of saying goodbye.
const QUIT_WITHIN: Duration = Duration::from_secs(1);

/// Sends one message.
pub(super) async fn send(
    judge: &Judge,
    breaker: &Breaker,
    server: &SmtpServer,
    password: Option<SecretString>,
    letter: &Letter<'_>,
    within: Duration,
) -> Outcome {
    let Some(message) = message(server, letter) else { return Outcome::Refused };
    let Some(permit) = breaker.admit() else { return Outcome::Busy(None) };
    let until = Instant::now() + within;
    let connecting = connect(judge, server, password, within);
    let mut connection = match timeout_at(until, connecting).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(outcome)) => {
            permit.ended(verdict(outcome));
            return outcome;
        }
        Err(_) => {
            permit.ended(Verdict::Failed);
            return Outcome::Busy(None);
        }
    };
    runfleet_faults::point("delivery.mail_connected");
    let formatted = message.formatted();
    let sending = connection.send(message.envelope(), &formatted);
    let outcome = match timeout_at(until, sending).await {
        Ok(Ok(_)) => Outcome::Taken,
        Ok(Err(error)) => of_error(&error),
        Err(_) => Outcome::Unsure(None),
    };
    permit.ended(verdict(outcome));
    if outcome == Outcome::Taken {
        // What is not said any more changes nothing.
        let _ = tokio::time::timeout(QUIT_WITHIN, connection.quit()).await;
    }
    outcome
}

fn verdict(outcome: Outcome) -> Verdict {
    match outcome {
        Outcome::Taken | Outcome::Refused => Verdict::Works,
        Outcome::Busy(_) | Outcome::Unsure(_) => Verdict::Failed,
    }
}

/// A connection over which the message may be said. Up to here nothing was sent.
async fn connect(
    judge: &Judge,
    server: &SmtpServer,
    password: Option<SecretString>,
    within: Duration,
) -> Result<AsyncSmtpConnection, Outcome> {
    let protected = server.security != SmtpSecurity::None;
    let addresses = judge.addresses(&server.host, server.port, protected).await;
    let addresses = addresses.map_err(|error| match error {
        NoAddress::NotAllowed(_) => Outcome::Refused,
        NoAddress::Unknown => Outcome::Busy(None),
    })?;
    let tls = if protected {
        Some(TlsParameters::new(server.host.clone()).map_err(|_| Outcome::Refused)?)
    } else {
        None
    };
    let hello = hello(&server.from);
    let mut connection = dial(&addresses, server, tls.as_ref(), &hello, within).await?;
    if let (SmtpSecurity::Starttls, Some(tls)) = (server.security, tls) {
        let upgraded = connection.starttls(tls, &hello).await;
        upgraded.map_err(|error| before_sending(&error))?;
    }
    if let (Some(user), Some(password)) = (&server.user, password) {
        let credentials = Credentials::new(user.clone(), password.expose_secret().to_owned());
        let login = connection.auth(&MECHANISMS, &credentials).await;
        login.map_err(|error| before_sending(&error))?;
    }
    Ok(connection)
}

/// Tries the addresses in their order.
async fn dial(
    addresses: &[IpAddr],
    server: &SmtpServer,
    tls: Option<&TlsParameters>,
    hello: &ClientId,
    within: Duration,
) -> Result<AsyncSmtpConnection, Outcome> {
    let wrapped = tls.filter(|_| server.security == SmtpSecurity::Tls);
    let mut last = Outcome::Busy(None);
    for address in addresses {
        let place = SocketAddr::new(*address, server.port);
        let dialled =
            AsyncSmtpConnection::connect_tokio1(place, Some(within), hello, wrapped.cloned(), None);
        match dialled.await {
            Ok(connection) => return Ok(connection),
            Err(error) => last = before_sending(&error),
        }
    }
    Err(last)
}

/// An error while nothing was sent.
fn before_sending(error: &Error) -> Outcome {
    if error.is_permanent() { Outcome::Refused } else { Outcome::Busy(None) }
}

/// An error while the message was said.
fn of_error(error: &Error) -> Outcome {
    if error.is_permanent() || error.is_client() {
        Outcome::Refused
    } else if error.is_transient() {
        Outcome::Busy(None)
    } else {
        Outcome::Unsure(None)
    }
}

/// The mail; none when there is no good address to send it to.
fn message(server: &SmtpServer, letter: &Letter<'_>) -> Option<Message> {
    let from: Address = server.from.parse().ok()?;
    let to: Address = letter.reach?.parse().ok()?;
    let domain = from.domain().to_owned();
    let subject = letter.title.or(server.subject.as_deref());
    let subject =
        subject.map_or_else(|| format!("Message from {}", letter.agent_name), str::to_owned);
    Message::builder()
        .from(Mailbox::new(Some(line(letter.agent_name)), from))
        .to(Mailbox::new(None, to))
        .subject(line(&subject))
        .message_id(Some(format!("<{}@{domain}>", letter.id)))
        .singlepart(SinglePart::plain(letter.text.to_owned()))
        .ok()
}

/// A text that goes into a header: the library panics at a line break in the name of a sender.
fn line(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// Who says hello: the domain that mail comes from.
fn hello(from: &str) -> ClientId {
    let domain = from.rsplit_once('@').map_or("localhost", |(_, domain)| domain);
    ClientId::Domain(domain.to_owned())
}

#[cfg(test)]
mod tests {
    use runfleet_domain::Name;

    use super::*;

    fn server(subject: Option<&str>) -> SmtpServer {
        SmtpServer {
            host: "mail.example".to_owned(),
            port: 25,
            security: SmtpSecurity::None,
            user: None,
            password: None,
            from: "agent@acme.example".to_owned(),
            subject: subject.map(str::to_owned),
        }
    }

    fn written(reach: Option<&str>, title: Option<&str>, name: &str) -> Option<String> {
        let word = |text: &str| text.parse::<Name>().unwrap();
        let (workspace, project, agent, person) =
            (word("acme"), word("shop"), word("coach"), word("ada"));
        let letter = Letter {
            id: "AG1.call_1_1",
            workspace: &workspace,
            project: &project,
            agent: &agent,
            agent_name: name,
            person: &person,
            reach,
            conversation: "CV1501KC5Q8A9B2C3D4E5F6G7H8J9K".parse().unwrap(),
            new_conversation: true,
            title,
            text: "Grüße\n.\nEnde",
            now_ms: 0,
        };
        let message = message(&server(Some("News")), &letter)?;
        Some(String::from_utf8(message.formatted()).unwrap())
    }

    #[test]
    fn a_mail_says_who_writes_and_carries_the_id_of_the_message() {
        let mail = written(Some("ada@acme.example"), None, "Coach").unwrap();
        for line in [
            "From: Coach <agent@acme.example>\r\n",
            "To: ada@acme.example\r\n",
            "Subject: News\r\n",
            "Message-ID: <AG1.call_1_1@acme.example>\r\n",
        ] {
            assert!(mail.contains(line), "{line}\n{mail}");
        }
        let titled = written(Some("ada@acme.example"), Some("Your deal"), "Coach").unwrap();
        assert!(titled.contains("Subject: Your deal\r\n"));
    }

    #[test]
    fn nobody_adds_a_header_or_a_recipient() {
        for text in [
            "a\r\nBcc: b@c.example",
            "\u{0}",
            "\"x\\\" <y@z.example>",
            "Grüße 👩‍👩‍👧 שלום",
            "e\u{301}",
            "",
        ] {
            let mail = written(Some("ada@acme.example"), Some(text), text).unwrap();
            let (head, _) = mail.split_once("\r\n\r\n").unwrap();
            assert!(!head.contains("\nBcc:"), "{mail}");
            assert_eq!(head.matches("\nTo: ").count(), 1, "{mail}");
        }
        for reach in [
            None,
            Some(""),
            Some("ada"),
            Some("a@b.example, c@d.example"),
            Some("a@b\r\nRCPT TO:<x@y>"),
        ] {
            assert!(written(reach, None, "Coach").is_none(), "{reach:?}");
        }
    }
}
