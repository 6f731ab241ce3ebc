//! Mail over protected connections: with a login that works, and with everything about it that can be wrong.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Result;
use runfleet_tests::{
    Authority, Login, MailServer, Options, Post, Protection, base64, sink_documents,
};

const USER: &str = "coach";
const PASSWORD: &str = "mail-s3cret-9f2c";

/// What is wrong with a server.
struct Case {
    agent: &'static str,
    server: MailServer,
    security: &'static str,
    file: &'static str,
    expected: &'static str,
    logins: usize,
}

async fn cases() -> Result<(Authority, Vec<Case>)> {
    let (authority, stranger) = (Authority::new()?, Authority::new()?);
    let login = |mechanism| Login { mechanism, user: USER, password: PASSWORD };
    let good = authority.server("127.0.0.1")?;
    let other = authority.server("mail.example")?;
    let case = async |agent, protection, mechanism, security, file, expected, logins| {
        let server = MailServer::guarded(protection, login(mechanism)).await?;
        anyhow::Ok(Case { agent, server, security, file, expected, logins })
    };
    let (tls, starttls) = (Protection::Tls, Protection::Starttls);
    let (failed, unavailable) = ("FAILED:DELIVERY_FAILED", "FAILED:DELIVERY_UNAVAILABLE");
    let cases = vec![
        case("implicit", tls(good.clone()), "PLAIN", "tls", "right", "SENT", 1).await?,
        case("upgrade", starttls(good.clone()), "LOGIN", "starttls", "right", "SENT", 1).await?,
        case("password", starttls(good.clone()), "PLAIN", "starttls", "wrong", failed, 1).await?,
        // Nothing is said to a server that is not the one, or does not protect what is said.
        case(
            "stranger",
            tls(stranger.server("127.0.0.1")?),
            "PLAIN",
            "tls",
            "right",
            unavailable,
            0,
        )
        .await?,
        case("name", starttls(other), "PLAIN", "starttls", "right", unavailable, 0).await?,
        case("clear", Protection::None, "PLAIN", "starttls", "right", unavailable, 0).await?,
    ];
    Ok((authority, cases))
}

#[tokio::test]
async fn mail_goes_over_tls_with_a_login_and_nobody_else_hears_the_password() -> Result<()> {
    let (authority, cases) = cases().await?;
    let files = tempfile::tempdir()?;
    let trusted = files.path().join("trusted.pem");
    std::fs::write(&trusted, authority.pem())?;
    let (mut documents, mut reach) = (sink_documents("http://127.0.0.1:1", 1), String::new());
    for Case { agent, server, security, file, .. } in &cases {
        let port = server.port();
        write!(
            documents,
            "---\napiVersion: runfleet/v1\nkind: ChatSink\nmetadata: {{name: {agent}}}\nspec: {{type: smtp, \
             host: 127.0.0.1, port: {port}, security: {security}, user: {USER}, passwordFile: {file}, \
             from: agent@demo.example, timeoutSeconds: 3}}\n\
             ---\napiVersion: runfleet/v1\nkind: Agent\nmetadata: {{name: {agent}}}\n\
             spec: {{model: played/one, chatSink: {agent}}}\n"
        )?;
        write!(reach, "{agent}: ada@demo.example, ")?;
    }
    let settings = vec![
        ("SSL_CERT_FILE".to_owned(), trusted.display().to_string()),
        ("RUNFLEET_LOG".to_owned(), "debug".to_owned()),
    ];
    let options = Options { without: Post::others(), settings, ..Options::default() };
    let post = Post::start(documents, options).await?;
    std::fs::write(post.secrets().join("demo/right"), PASSWORD)?;
    std::fs::write(post.secrets().join("demo/wrong"), "another-s3cret")?;
    post.people(&format!("{{id: ada, reach: {{{reach}}}}}")).await?;
    for Case { agent, server, expected, logins, .. } in &cases {
        let run = post.run(agent, "ada").await?;
        // No time for a second attempt.
        post.send(run, "call_1_1", "Hello.", Duration::from_secs(8)).await?;
        post.told(run, "call_1_1").await?;
        assert_eq!(post.word(run).await?, *expected, "{agent}");
        assert_eq!(server.mails().len(), usize::from(*expected == "SENT"), "{agent}");
        assert_eq!((server.connections(), server.logins()), (1, *logins), "{agent}");
    }
    let logs = post.fleet.logs();
    let plain = base64(&format!("\0{USER}\0{PASSWORD}"));
    for secret in [PASSWORD, "another-s3cret", &base64(PASSWORD), &plain] {
        assert!(!logs.contains(secret), "a password is in the logs");
    }
    post.fleet.remove().await
}
