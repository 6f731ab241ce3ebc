//! A server that takes electronic mail, as far as tests need one: it remembers what it has taken, and can be in a bad mood.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

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

#[derive(Default)]
struct Seen {
    mails: Vec<Mail>,
    connections: usize,
}

/// The server. It stops when this is dropped.
pub struct MailServer {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

impl MailServer {
    /// Starts it. `mood` gets the number of the connection, from 1.
    pub async fn start(mood: impl Fn(usize) -> Mood + Send + Sync + 'static) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let seen = Arc::new(Mutex::new(Seen::default()));
        let shared = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = {
                    let mut seen = shared.lock().unwrap_or_else(PoisonError::into_inner);
                    seen.connections += 1;
                    seen.connections
                };
                tokio::spawn(serve(stream, mood(number), Arc::clone(&shared)));
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
}

impl Drop for MailServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(stream: TcpStream, mood: Mood, seen: Arc<Mutex<Seen>>) -> std::io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    let mut to = String::new();
    write.write_all(b"220 mail.test ready\r\n").await?;
    while let Some(line) = lines.next_line().await? {
        let word = line.get(..4).unwrap_or_default().to_ascii_uppercase();
        let answer = match word.as_str() {
            "EHLO" => "250-mail.test\r\n250-8BITMIME\r\n250 SMTPUTF8",
            "RCPT" if mood == Mood::Refuses => "550 5.1.1 no such user",
            "RCPT" if mood == Mood::Busy => "451 4.3.0 later",
            "RCPT" => {
                line.split(['<', '>']).nth(1).unwrap_or_default().clone_into(&mut to);
                "250 fine"
            }
            "DATA" => {
                write.write_all(b"354 go on\r\n").await?;
                let mut text = String::new();
                while let Some(line) = lines.next_line().await?.filter(|line| line != ".") {
                    text += line.strip_prefix('.').unwrap_or(&line);
                    text.push('\n');
                }
                let mail = Mail { to: to.clone(), text };
                seen.lock().unwrap_or_else(PoisonError::into_inner).mails.push(mail);
                if mood == Mood::Silent {
                    // Whoever waits here waits until the other side gives up.
                    let _ = lines.next_line().await;
                    return Ok(());
                }
                "250 taken"
            }
            "QUIT" => "221 bye",
            _ => "250 fine",
        };
        write.write_all(format!("{answer}\r\n").as_bytes()).await?;
        if word == "QUIT" {
            break;
        }
    }
    Ok(())
}
