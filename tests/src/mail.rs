//! A server that takes electronic mail, as far as tests need one: it remembers what it has taken, can be in a bad mood, and can want
//! TLS and a login.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use rustls::ServerConfig;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// A mail that was taken.
#[derive(Debug, Clone)]
pub struct Mail {
    /// Who gets it.
    pub to: String,
    /// Head and body as they came, with dots put back.
    pub text: String,
}

/// How a server treats a mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// It takes it.
    Good,
    /// It says that there is no such recipient.
    Refuses,
    /// It asks to come again later.
    Busy,
    /// It takes the mail and never says so.
    Silent,
}

/// How a server protects its connections.
#[derive(Clone)]
pub enum Protection {
    /// Not at all, and it cannot.
    None,
    /// From the first byte.
    Tls(Arc<ServerConfig>),
    /// When it is asked to.
    Starttls(Arc<ServerConfig>),
}

/// A login that a server wants.
#[derive(Clone)]
pub struct Login {
    /// `PLAIN` or `LOGIN`: the only way that it offers.
    pub mechanism: &'static str,
    /// The user.
    pub user: &'static str,
    /// The password.
    pub password: &'static str,
}

#[derive(Default)]
struct Seen {
    mails: Vec<Mail>,
    connections: usize,
    logins: usize,
}

/// What every connection of a server knows.
struct Manners {
    protection: Protection,
    login: Option<Login>,
    seen: Arc<Mutex<Seen>>,
}

/// The server. It stops when this is dropped.
pub struct MailServer {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

impl MailServer {
    /// Starts one that wants neither. `mood` gets the number of the connection, from 1.
    pub async fn start(mood: impl Fn(usize) -> Mood + Send + Sync + 'static) -> Result<Self> {
        Self::with(mood, Protection::None, None).await
    }

    /// Starts one in a good mood that protects its connections and wants a login.
    pub async fn guarded(protection: Protection, login: Login) -> Result<Self> {
        Self::with(|_| Mood::Good, protection, Some(login)).await
    }

    async fn with(
        mood: impl Fn(usize) -> Mood + Send + Sync + 'static,
        protection: Protection,
        login: Option<Login>,
    ) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let seen = Arc::new(Mutex::new(Seen::default()));
        let manners = Arc::new(Manners { protection, login, seen: Arc::clone(&seen) });
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = manners.with(|seen| {
                    seen.connections += 1;
                    seen.connections
                });
                tokio::spawn(greet(stream, mood(number), Arc::clone(&manners)));
            }
        });
        Ok(Self { address, seen, task })
    }

    /// Its port on this machine.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// What it has taken.
    pub fn mails(&self) -> Vec<Mail> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).mails.clone()
    }

    /// How often somebody has come.
    pub fn connections(&self) -> usize {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).connections
    }

    /// How often somebody has tried to log in.
    pub fn logins(&self) -> usize {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).logins
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Manners {
    fn with<T>(&self, f: impl FnOnce(&mut Seen) -> T) -> T {
        f(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn greet(stream: TcpStream, mood: Mood, manners: Arc<Manners>) -> io::Result<()> {
    match &manners.protection {
        Protection::None => {
            Talk::new(stream, mood, &manners, true).greeted().await?.serve().await.map(drop)
        }
        Protection::Tls(config) => {
            let stream = TlsAcceptor::from(Arc::clone(config)).accept(stream).await?;
            Talk::new(stream, mood, &manners, true).greeted().await?.serve().await.map(drop)
        }
        Protection::Starttls(config) => {
            let talk = Talk::new(stream, mood, &manners, false);
            let Some(stream) = talk.greeted().await?.serve().await? else { return Ok(()) };
            let stream = TlsAcceptor::from(Arc::clone(config)).accept(stream).await?;
            Talk::new(stream, mood, &manners, true).serve().await.map(drop)
        }
    }
}

/// One connection.
struct Talk<'a, S> {
    stream: BufReader<S>,
    mood: Mood,
    manners: &'a Manners,
    /// Whether it is as well protected as the server can.
    protected: bool,
    known: bool,
}

impl<'a, S: AsyncRead + AsyncWrite + Unpin> Talk<'a, S> {
    fn new(stream: S, mood: Mood, manners: &'a Manners, protected: bool) -> Self {
        let known = manners.login.is_none();
        Self { stream: BufReader::new(stream), mood, manners, protected, known }
    }

    async fn greeted(mut self) -> io::Result<Self> {
        self.say("220 mail.test ready").await?;
        Ok(self)
    }

    async fn say(&mut self, line: &str) -> io::Result<()> {
        self.stream.write_all(format!("{line}\r\n").as_bytes()).await?;
        self.stream.flush().await
    }

    async fn hear(&mut self) -> io::Result<Option<String>> {
        let mut line = String::new();
        let read = self.stream.read_line(&mut line).await?;
        Ok((read > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned()))
    }

    /// Until the other side leaves, or wants TLS: then the connection is given back for that.
    async fn serve(mut self) -> io::Result<Option<S>> {
        let mut to = String::new();
        while let Some(line) = self.hear().await? {
            let word = line.get(..4).unwrap_or_default().to_ascii_uppercase();
            let answer = match word.as_str() {
                "EHLO" => self.offers(),
                "STAR" if !self.protected => {
                    self.say("220 go on").await?;
                    return Ok(Some(self.stream.into_inner()));
                }
                "AUTH" => self.log_in(&line).await?,
                "MAIL" if !self.known => "530 5.7.0 who are you".to_owned(),
                "RCPT" if self.mood == Mood::Refuses => "550 5.1.1 no such user".to_owned(),
                "RCPT" if self.mood == Mood::Busy => "451 4.3.0 later".to_owned(),
                "RCPT" => {
                    line.split(['<', '>']).nth(1).unwrap_or_default().clone_into(&mut to);
                    "250 fine".to_owned()
                }
                "DATA" => {
                    self.take(&to).await?;
                    if self.mood == Mood::Silent {
                        // Whoever waits here waits until the other side gives up.
                        let _ = self.hear().await;
                        return Ok(None);
                    }
                    "250 taken".to_owned()
                }
                "QUIT" => "221 bye".to_owned(),
                _ => "250 fine".to_owned(),
            };
            self.say(&answer).await?;
            if word == "QUIT" {
                break;
            }
        }
        Ok(None)
    }

    fn offers(&self) -> String {
        let more = match (&self.manners.login, self.protected) {
            (_, false) => "250-STARTTLS\r\n".to_owned(),
            (Some(login), true) => format!("250-AUTH {}\r\n", login.mechanism),
            (None, true) => String::new(),
        };
        format!("250-mail.test\r\n{more}250-8BITMIME\r\n250 SMTPUTF8")
    }

    async fn log_in(&mut self, line: &str) -> io::Result<String> {
        let Some(login) = self.manners.login.clone() else { return Ok("503 no need".to_owned()) };
        self.manners.with(|seen| seen.logins += 1);
        let said = line.strip_prefix("AUTH ").unwrap_or_default().to_owned();
        let good = if login.mechanism == "PLAIN" {
            said == format!("PLAIN {}", base64(&format!("\0{}\0{}", login.user, login.password)))
        } else if said == "LOGIN" {
            self.say(&format!("334 {}", base64("Username:"))).await?;
            let user = self.hear().await?;
            self.say(&format!("334 {}", base64("Password:"))).await?;
            let password = self.hear().await?;
            (user, password) == (Some(base64(login.user)), Some(base64(login.password)))
        } else {
            false
        };
        self.known = good;
        Ok(if good { "235 welcome" } else { "535 5.7.8 that is not you" }.to_owned())
    }

    async fn take(&mut self, to: &str) -> io::Result<()> {
        self.say("354 go on").await?;
        let mut text = String::new();
        while let Some(line) = self.hear().await?.filter(|line| line != ".") {
            text += line.strip_prefix('.').unwrap_or(&line);
            text.push('\n');
        }
        let mail = Mail { to: to.to_owned(), text };
        self.manners.with(|seen| seen.mails.push(mail));
        Ok(())
    }
}

/// A text as a login says it.
pub fn base64(text: &str) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut said = String::new();
    for three in text.as_bytes().chunks(3) {
        let byte = |place: usize| u32::from(three.get(place).copied().unwrap_or_default());
        let bits = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        for place in 0..4 {
            let index = usize::try_from((bits >> (18 - 6 * place)) & 63).unwrap_or_default();
            said.push(if place > three.len() { '=' } else { char::from(LETTERS[index]) });
        }
    }
    said
}
