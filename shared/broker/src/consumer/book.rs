//! Which deliveries of one channel may be acknowledged now, and with how few frames. Pure: no I/O, and the time comes from
//! outside.
//!
//! One frame can acknowledge everything up to a tag. A tag that is still being handled must never be among that, or its
//! message is lost when the process dies. So a group ends before the first open tag; what was settled behind it waits a
//! little for the group, and then is acknowledged by itself.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How long the same open tag may keep settled ones behind it waiting.
pub(super) const GAP_STOOD: Duration = Duration::from_millis(10);

/// The deliveries of one channel. Holds at most as many tags as the prefetch of the channel.
#[derive(Debug)]
pub(super) struct Book {
    /// Delivered, and neither settled nor given back.
    open: BTreeSet<u64>,
    /// May be acknowledged, and was not yet.
    settled: BTreeSet<u64>,
    /// The last tag that began.
    last: u64,
    /// Whether the tags came one after the other. If not, one that is not known could lie within a group.
    in_order: bool,
    /// Settled tags that are not left waiting, whatever they wait for.
    enough: usize,
    gap: Option<Gap>,
}

/// The first open tag, as the last takes saw it.
#[derive(Debug, Clone, Copy)]
struct Gap {
    tag: u64,
    since: Instant,
}

/// What to acknowledge, in this order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Due {
    /// Everything up to this tag, which is itself not acknowledged yet.
    pub(super) through: Option<u64>,
    /// Each of these by itself; all are behind `through`.
    pub(super) each: Vec<u64>,
    /// How many deliveries these are.
    pub(super) count: usize,
}

impl Book {
    /// An empty one for a channel on which nothing was delivered.
    pub(super) fn new(prefetch: u16) -> Self {
        Self {
            open: BTreeSet::new(),
            settled: BTreeSet::new(),
            last: 0,
            in_order: true,
            enough: enough(prefetch),
            gap: None,
        }
    }

    /// A delivery is going to be handled.
    pub(super) fn begin(&mut self, tag: u64) {
        self.in_order &= tag == self.last + 1;
        self.last = tag;
        self.open.insert(tag);
    }

    /// Its handling has ended well. True if so many wait that they are due at once.
    pub(super) fn settle(&mut self, tag: u64) -> bool {
        if self.open.remove(&tag) {
            self.settled.insert(tag);
        }
        self.settled.len() >= self.enough
    }

    /// The broker was told that this one goes back. Only after its frame is written: until then a group must not reach it.
    pub(super) fn forget(&mut self, tag: u64) {
        self.open.remove(&tag);
    }

    /// Whether something waits to be acknowledged.
    pub(super) fn has_settled(&self) -> bool {
        !self.settled.is_empty()
    }

    /// What is due now. Each settled tag is in exactly one answer. `all` leaves nothing waiting.
    pub(super) fn take(&mut self, now: Instant, all: bool) -> Due {
        let first_open = self.open.first().copied();
        let mut due = Due::default();
        if self.in_order {
            let behind = first_open.map_or_else(BTreeSet::new, |tag| self.settled.split_off(&tag));
            let group = std::mem::replace(&mut self.settled, behind);
            due.through = group.last().copied();
            due.count = group.len();
        }
        if all || self.settled.len() >= self.enough || self.has_stood(first_open, now) {
            due.count += self.settled.len();
            due.each = std::mem::take(&mut self.settled).into_iter().collect();
        }
        due
    }

    fn has_stood(&mut self, first_open: Option<u64>, now: Instant) -> bool {
        let gap = match (self.gap, first_open) {
            (Some(gap), Some(tag)) if gap.tag == tag => Some(gap),
            (_, tag) => tag.map(|tag| Gap { tag, since: now }),
        };
        self.gap = gap;
        // Without an open tag only tags that came out of order wait, and nothing will join them.
        gap.is_none_or(|gap| now.duration_since(gap.since) >= GAP_STOOD)
    }
}

/// A quarter of the window may be settled and unacknowledged; the broker fills the rest meanwhile.
fn enough(prefetch: u16) -> usize {
    usize::from(prefetch / 4).max(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The broker's side: what it would redeliver if the channel closed now.
    #[derive(Default)]
    struct Channel {
        unacked: BTreeSet<u64>,
        acked: BTreeSet<u64>,
        returned: BTreeSet<u64>,
        frames: usize,
    }

    impl Channel {
        /// As RabbitMQ does it: a tag that is not outstanding closes the channel.
        fn apply(&mut self, due: &Due) {
            let before = self.acked.len();
            if let Some(through) = due.through {
                assert!(self.unacked.contains(&through), "{through} is not outstanding");
                let behind = self.unacked.split_off(&(through + 1));
                self.acked.append(&mut std::mem::replace(&mut self.unacked, behind));
                self.frames += 1;
            }
            for tag in &due.each {
                assert!(self.unacked.remove(tag), "{tag} is not outstanding");
                self.acked.insert(*tag);
                self.frames += 1;
            }
            assert_eq!(self.acked.len() - before, due.count);
        }
    }

    fn begun(prefetch: u16, tags: u64) -> (Book, Channel) {
        let (mut book, mut channel) = (Book::new(prefetch), Channel::default());
        for tag in 1..=tags {
            book.begin(tag);
            channel.unacked.insert(tag);
        }
        (book, channel)
    }

    /// Every order in which `tags` can end.
    fn orders(tags: &[u64]) -> Vec<Vec<u64>> {
        if tags.is_empty() {
            return vec![vec![]];
        }
        let first = |(index, tag): (usize, &u64)| {
            let mut rest = tags.to_vec();
            rest.remove(index);
            let tag = *tag;
            orders(&rest).into_iter().map(move |order| [vec![tag], order].concat())
        };
        tags.iter().enumerate().flat_map(first).collect()
    }

    #[test]
    fn every_order_of_six_with_takes_anywhere_acks_what_was_settled_once_and_nothing_else() {
        let start = Instant::now();
        for order in orders(&[1, 2, 3, 4, 5, 6]) {
            for takes in 0_u32..1 << 6 {
                // Alternately a tag is given back instead, and the window is small or large.
                let given_back = u64::from(takes % 7);
                let (mut book, mut channel) = begun(if takes % 2 == 0 { 6 } else { 100 }, 6);
                let mut settled = BTreeSet::new();
                for (step, tag) in order.iter().enumerate() {
                    if *tag == given_back {
                        channel.unacked.remove(tag);
                        channel.returned.insert(*tag);
                        book.forget(*tag);
                    } else {
                        book.settle(*tag);
                        settled.insert(*tag);
                    }
                    if takes & (1 << step) != 0 {
                        let now = start + Duration::from_millis(step as u64 * 4);
                        channel.apply(&book.take(now, false));
                        assert!(channel.acked.is_subset(&settled), "{order:?} {takes:b}");
                    }
                }
                channel.apply(&book.take(start, true));
                assert_eq!(channel.acked, settled, "{order:?} {takes:b}");
                assert!(channel.unacked.is_empty());
            }
        }
    }

    #[derive(Debug, Clone, Copy)]
    enum Step {
        Deliver,
        Skip,
        Settle(usize),
        GiveBack(usize),
        Take(u64, bool),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => Just(Step::Deliver),
            6 => (0_usize..64).prop_map(Step::Settle),
            1 => (0_usize..64).prop_map(Step::GiveBack),
            3 => (0_u64..8, any::<bool>()).prop_map(|(wait, all)| Step::Take(wait, all)),
        ]
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        // Some histories have a tag that the book never sees.
        let odd = prop_oneof![20 => step(), 1 => Just(Step::Skip)];
        prop_oneof![
            3 => proptest::collection::vec(step(), 1..300),
            1 => proptest::collection::vec(odd, 1..300),
        ]
    }

    proptest! {
        #[test]
        fn no_history_acks_what_was_not_settled_or_anything_twice(
            prefetch in 1_u16..40,
            steps in steps(),
        ) {
            let (mut book, mut channel) = (Book::new(prefetch), Channel::default());
            let (mut open, mut settled, mut now) = (Vec::new(), BTreeSet::new(), Instant::now());
            let mut next = 1;
            for step in steps {
                match step {
                    Step::Deliver if channel.unacked.len() < usize::from(prefetch) => {
                        book.begin(next);
                        open.push(next);
                        channel.unacked.insert(next);
                        next += 1;
                    }
                    Step::Skip if channel.unacked.len() < usize::from(prefetch) => {
                        channel.unacked.insert(next);
                        next += 1;
                    }
                    Step::Settle(at) if !open.is_empty() => {
                        let tag = open.swap_remove(at % open.len());
                        settled.insert(tag);
                        if book.settle(tag) {
                            channel.apply(&book.take(now, false));
                        }
                    }
                    Step::GiveBack(at) if !open.is_empty() => {
                        let tag = open.swap_remove(at % open.len());
                        channel.unacked.remove(&tag);
                        book.forget(tag);
                    }
                    Step::Take(wait, all) => {
                        now += Duration::from_millis(wait);
                        channel.apply(&book.take(now, all));
                    }
                    _ => {}
                }
                prop_assert!(channel.acked.is_subset(&settled));
                prop_assert!(book.settled.len() + book.open.len() <= usize::from(prefetch));
                // The window is never used up by what only waits for its ack.
                prop_assert!(settled.len() - channel.acked.len() < book.enough);
            }
            channel.apply(&book.take(now, true));
            prop_assert_eq!(channel.acked, settled);
        }
    }

    #[test]
    fn one_frame_acknowledges_all_that_ended_before_the_first_that_runs() {
        let (mut book, mut channel) = begun(192, 40);
        for tag in (1..=40).rev().filter(|tag| *tag != 31) {
            book.settle(tag);
        }
        let now = Instant::now();
        let due = book.take(now, false);
        assert_eq!(due, Due { through: Some(30), each: vec![], count: 30 });
        channel.apply(&due);
        assert!(book.has_settled());
        assert_eq!(book.take(now + GAP_STOOD / 2, false), Due::default());
        let due = book.take(now + GAP_STOOD, false);
        assert_eq!(due.each, (32..=40).collect::<Vec<_>>());
        channel.apply(&due);
        book.settle(31);
        assert_eq!(book.take(now, false), Due { through: Some(31), each: vec![], count: 1 });
    }

    #[test]
    fn many_behind_a_gap_do_not_wait_for_it() {
        let (mut book, mut channel) = begun(192, 49);
        for tag in 2..=48 {
            assert!(!book.settle(tag));
        }
        assert!(book.settle(49));
        channel.apply(&book.take(Instant::now(), false));
        assert_eq!(channel.unacked, BTreeSet::from([1]));
    }

    #[test]
    fn a_window_of_one_is_due_at_once() {
        for prefetch in 1..8 {
            let (mut book, _) = begun(prefetch, 1);
            assert!(book.settle(1), "{prefetch}");
        }
    }

    #[test]
    fn after_a_tag_that_was_never_seen_each_is_acknowledged_by_itself() {
        let mut book = Book::new(100);
        for tag in [1, 2, 4, 5] {
            book.begin(tag);
            book.settle(tag);
        }
        let due = book.take(Instant::now(), false);
        assert_eq!(due, Due { through: None, each: vec![1, 2, 4, 5], count: 4 });
    }

    #[test]
    fn the_tag_that_would_mean_all_is_never_taken() {
        let (mut book, _) = begun(10, 2);
        book.settle(0);
        assert_eq!(book.take(Instant::now(), true), Due::default());
    }
}
