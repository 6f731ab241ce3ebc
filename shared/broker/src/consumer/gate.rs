//! Closes a lane for a while, from outside: its owner saw that what it hands on would be refused.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// A gate in front of one lane. Clones are the same gate. Open from the start.
#[derive(Debug, Clone)]
pub struct Gate {
    closed_until: Arc<watch::Sender<Option<Instant>>>,
}

impl Default for Gate {
    fn default() -> Self {
        Self { closed_until: Arc::new(watch::Sender::new(None)) }
    }
}

impl Gate {
    /// Takes nothing from the lane for this long from now. A shorter closing never shortens a longer one. Messages that a
    /// handler has already are not touched.
    pub fn close_for(&self, time: Duration) {
        let until = Instant::now() + time;
        self.closed_until.send_if_modified(|closed| {
            let longer = closed.is_none_or(|closed| closed < until);
            if longer {
                *closed = Some(until);
            }
            longer
        });
    }

    /// Opens at once.
    pub fn open(&self) {
        self.closed_until.send_replace(None);
    }

    /// Whether the lane is taken from.
    pub fn is_open(&self) -> bool {
        is_past(*self.closed_until.borrow())
    }
}

/// What a lane waits for before it takes a message: its gate, and a broker that takes publishes. A handler that cannot
/// publish would only fail.
pub(crate) struct Doors {
    closed_until: watch::Receiver<Option<Instant>>,
    blocked: watch::Receiver<bool>,
}

impl Doors {
    pub(crate) fn new(gate: &Gate, blocked: watch::Receiver<bool>) -> Self {
        Self { closed_until: gate.closed_until.subscribe(), blocked }
    }

    pub(crate) fn are_open(&self) -> bool {
        !*self.blocked.borrow() && is_past(*self.closed_until.borrow())
    }

    pub(crate) async fn opened(&mut self) {
        loop {
            let blocked = *self.blocked.borrow_and_update();
            let until = *self.closed_until.borrow_and_update();
            match until.filter(|_| !is_past(until)) {
                None if !blocked => return,
                None => self.changed().await,
                Some(until) => tokio::select! {
                    () = sleep_until(until) => {}
                    () = self.changed() => {}
                },
            }
        }
    }

    pub(crate) async fn closed(&mut self) {
        while self.are_open() {
            self.changed().await;
        }
    }

    async fn changed(&mut self) {
        // The senders are held by the lane and by the session, so these do not fail while somebody waits here.
        tokio::select! {
            Ok(()) = self.closed_until.changed() => {}
            Ok(()) = self.blocked.changed() => {}
            else => std::future::pending().await,
        }
    }
}

fn is_past(until: Option<Instant>) -> bool {
    until.is_none_or(|until| until <= Instant::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doors(gate: &Gate) -> (Doors, watch::Sender<bool>) {
        let (sender, receiver) = watch::channel(false);
        (Doors::new(gate, receiver), sender)
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_gate_opens_by_itself_and_a_shorter_closing_does_not_shorten_it() {
        let gate = Gate::default();
        let (mut doors, _blocked) = doors(&gate);
        let began = Instant::now();
        doors.opened().await;
        gate.close_for(Duration::from_secs(3));
        gate.close_for(Duration::from_secs(1));
        assert!(!gate.is_open());
        doors.closed().await;
        doors.opened().await;
        assert!(gate.is_open());
        assert_eq!(began.elapsed().as_secs(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn opening_wakes_whoever_waits() {
        let gate = Gate::default();
        let (mut doors, _blocked) = doors(&gate);
        gate.close_for(Duration::from_hours(1));
        let began = Instant::now();
        tokio::join!(doors.opened(), async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            gate.open();
        });
        assert_eq!(began.elapsed().as_secs(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_blocked_broker_closes_the_doors_too() {
        let gate = Gate::default();
        let (mut doors, blocked) = doors(&gate);
        tokio::join!(doors.closed(), async { blocked.send_replace(true) });
        gate.close_for(Duration::from_secs(1));
        let began = Instant::now();
        tokio::join!(doors.opened(), async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            blocked.send_replace(false);
        });
        assert_eq!(began.elapsed().as_secs(), 5);
    }
}
