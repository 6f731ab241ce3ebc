//! Random models of blocks inside blocks, and how often each of their elements is visited.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::play::Dice;

/// How often an element is left and ended early.
pub(crate) type Counts = BTreeMap<String, (u64, u64)>;

/// A part of a model with one way in and one way out.
#[derive(Debug)]
enum Block {
    /// One element; the text is its kind.
    Leaf(&'static str),
    Sequence(Vec<Block>),
    /// The branch that is taken, among others.
    Exclusive(usize, Vec<Block>),
    Parallel(Vec<Block>),
    /// The branches that are taken, among others.
    Inclusive(Vec<bool>, Vec<Block>),
    Loop(u64, Box<Block>),
    Sub(Box<Block>),
    /// Items, and whether one comes after the other.
    Multi(u64, bool, Box<Block>),
    /// Ended early, with somebody beside it who never answers; then the second goes on.
    Cut(Cut, Box<Block>, Box<Block>),
    /// What it throws without an end to it is dealt with beside it by the second.
    Beside(bool, Box<Block>, Box<Block>),
}

/// What ends a sub-process early.
#[derive(Debug, Clone, Copy)]
enum Cut {
    Timer,
    Error,
    Terminate,
    Escalation,
    EventSub,
}

const LEAVES: [&str; 13] = [
    "pass",
    "script total = total + 1",
    "script total = total + 1",
    "task work | pauses 0",
    "task work | pauses 0 | in a = total",
    "user",
    "call other",
    "catch timer PT1H",
    "catch msg come",
    "user | times 3 | seq",
    "task work | pauses 0 | times 2",
    "user | times 3 | until loopCounter = 9",
    "throw signal gone",
];

/// A random model.
pub(crate) struct Model {
    pub(crate) text: String,
    pub(crate) counts: Counts,
    /// How often scripts are executed.
    pub(crate) total: u64,
}

struct Writer {
    next: u32,
    counts: Counts,
    total: u64,
}

/// Draws a model with about `size` blocks.
pub(crate) fn draw(dice: &mut Dice, size: usize) -> Model {
    let mut size = size;
    let block = random(dice, &mut size, 0, 1);
    let mut writer = Writer { next: 0, counts: Counts::new(), total: 0 };
    let mut text = "input total:number\noutput total:number\n".to_owned();
    let (first, last) = writer.write(&block, &mut text, 1);
    let _ = writeln!(text, "start -> {first}\n{last} -> end");
    Model { text, counts: writer.counts, total: writer.total }
}

fn random(dice: &mut Dice, size: &mut usize, depth: usize, times: u64) -> Block {
    *size = size.saturating_sub(1);
    // Each takes up to two sub-processes, and no more than ten lie in each other.
    if *size == 0 || depth > 3 {
        return Block::Leaf(LEAVES[dice.below(LEAVES.len())]);
    }
    let mut some = |dice: &mut Dice, times: u64| random(dice, size, depth + 1, times);
    let mut several = |dice: &mut Dice, most: usize| -> Vec<Block> {
        (0..2 + dice.below(most - 1)).map(|_| some(dice, times)).collect()
    };
    match dice.below(14) {
        0..=2 => Block::Sequence(several(dice, 4)),
        3 => {
            let blocks = several(dice, 3);
            Block::Exclusive(dice.below(blocks.len()), blocks)
        }
        4 | 5 => Block::Parallel(several(dice, 3)),
        6 => {
            let blocks = several(dice, 3);
            let mut taken: Vec<bool> = blocks.iter().map(|_| dice.below(2) == 0).collect();
            let sure = dice.below(taken.len());
            taken[sure] = true;
            Block::Inclusive(taken, blocks)
        }
        7 if times < 6 => {
            let rounds = 1 + dice.below(3) as u64;
            Block::Loop(rounds, Box::new(some(dice, times * rounds)))
        }
        8 => Block::Sub(Box::new(some(dice, times))),
        9 | 10 if times < 6 => {
            let items = dice.below(4) as u64;
            let sequential = dice.below(2) == 0;
            Block::Multi(items, sequential, Box::new(some(dice, times * items.max(1))))
        }
        11 | 12 => {
            let cuts = [Cut::Timer, Cut::Error, Cut::Terminate, Cut::Escalation, Cut::EventSub];
            let cut = cuts[dice.below(cuts.len())];
            // What goes on beside the body has ended when a sub-process around both has.
            let body = Block::Sub(Box::new(some(dice, times)));
            Block::Cut(cut, Box::new(body), Box::new(some(dice, times)))
        }
        13 => {
            let boundary = dice.below(2) == 0;
            let body = some(dice, times);
            Block::Beside(boundary, Box::new(body), Box::new(some(dice, times)))
        }
        _ => Block::Leaf(LEAVES[dice.below(LEAVES.len())]),
    }
}

/// Longest time that a block takes, in hours, when everybody answers at once.
fn hours(block: &Block) -> u64 {
    let longest = |blocks: &[Block]| blocks.iter().map(hours).max().unwrap_or_default();
    match block {
        Block::Leaf(kind) => u64::from(kind.starts_with("catch timer")),
        Block::Sequence(blocks) => blocks.iter().map(hours).sum(),
        Block::Exclusive(taken, blocks) => hours(&blocks[*taken]),
        Block::Parallel(blocks) | Block::Inclusive(_, blocks) => longest(blocks),
        Block::Loop(rounds, body) | Block::Multi(rounds, true, body) => rounds * hours(body),
        Block::Sub(body) | Block::Multi(_, false, body) => hours(body),
        Block::Cut(cut, body, after) => {
            hours(body) + u64::from(matches!(cut, Cut::Timer)) + hours(after)
        }
        Block::Beside(_, body, beside) => hours(body).max(hours(beside)),
    }
}

impl Writer {
    fn id(&mut self, letter: &str) -> String {
        self.next += 1;
        format!("{letter}{}", self.next)
    }

    fn left(&mut self, id: &str, times: u64) {
        self.counts.entry(id.to_owned()).or_default().0 += times;
    }

    fn ended_early(&mut self, id: &str, times: u64) {
        self.counts.entry(id.to_owned()).or_default().1 += times;
    }

    /// A gateway that is passed.
    fn gateway(&mut self, kind: &str, out: &mut String, times: u64) -> String {
        let id = self.id("g");
        let _ = writeln!(out, "{id}: {kind}");
        self.left(&id, times);
        id
    }

    /// Writes a block into a scope, being passed so many times, and gives its first and last element.
    fn write(&mut self, block: &Block, out: &mut String, times: u64) -> (String, String) {
        match block {
            Block::Leaf(kind) => self.leaf(kind, out, times),
            Block::Sequence(blocks) => self.sequence(blocks, out, times),
            Block::Exclusive(taken, blocks) => {
                let taken: Vec<bool> = (0..blocks.len()).map(|place| place == *taken).collect();
                self.branches(["xor", "xor"], Some(&taken), blocks, out, times)
            }
            Block::Parallel(blocks) => self.branches(["and", "and"], None, blocks, out, times),
            Block::Inclusive(taken, blocks) => {
                self.branches(["or", "or"], Some(taken), blocks, out, times)
            }
            Block::Loop(rounds, body) => self.repeated(*rounds, body, out, times),
            Block::Sub(body) => {
                let id = self.id("S");
                let _ = writeln!(out, "{id}: sub {{");
                self.inside(&id, body, out, times);
                self.left(&id, times);
                (id.clone(), id)
            }
            Block::Multi(items, sequential, body) => {
                self.multi(*items, *sequential, body, out, times)
            }
            Block::Cut(cut, body, after) => self.cut(*cut, body, after, out, times),
            Block::Beside(boundary, body, beside) => {
                self.beside(*boundary, body, beside, out, times)
            }
        }
    }

    /// Items whose numbers are collected, and a script that looks at them, in a sub-process that has the list for itself.
    fn multi(
        &mut self,
        items: u64,
        sequential: bool,
        body: &Block,
        out: &mut String,
        times: u64,
    ) -> (String, String) {
        let (around, id, list, look) = (self.id("S"), self.id("M"), self.id("r"), self.id("K"));
        let how = if sequential { " | seq" } else { "" };
        let _ = writeln!(
            out,
            "{around}: sub | in {list} = null {{\n{id}: sub | times {items}{how} | collect {list} = loopCounter {{"
        );
        self.inside(&id, body, out, times * items);
        self.left(&id, times * (items + 1));
        let numbers: Vec<String> = (1..=items).map(|item| item.to_string()).collect();
        let numbers = numbers.join(", ");
        let _ = writeln!(
            out,
            "{look}: script total = total + (if {list} = [{numbers}] then 1 else 1000)\nstart -> {id} -> {look} -> end\n}}"
        );
        self.total += times;
        self.left(&look, times);
        self.left(&around, times);
        self.ends(&around, times);
        (around.clone(), around)
    }

    fn leaf(&mut self, kind: &str, out: &mut String, times: u64) -> (String, String) {
        let id = self.id("A");
        let _ = writeln!(out, "{id}: {kind}");
        let items = match kind.split_once("times ") {
            Some((_, rest)) => 1 + rest[..1].parse::<u64>().expect("a digit"),
            None => 1,
        };
        self.left(&id, times * items);
        self.total += times * u64::from(kind.starts_with("script"));
        (id.clone(), id)
    }

    fn sequence(&mut self, blocks: &[Block], out: &mut String, times: u64) -> (String, String) {
        let mut ends: Option<(String, String)> = None;
        for block in blocks {
            let (first, last) = self.write(block, out, times);
            ends = Some(match ends {
                None => (first, last),
                Some((start, before)) => {
                    let _ = writeln!(out, "{before} -> {first}");
                    (start, last)
                }
            });
        }
        ends.expect("a sequence is not empty")
    }

    /// Branches between a gateway that splits and one that joins; all are taken when none are named.
    fn branches(
        &mut self,
        kinds: [&str; 2],
        taken: Option<&[bool]>,
        blocks: &[Block],
        out: &mut String,
        times: u64,
    ) -> (String, String) {
        let [split, join] = kinds.map(|kind| self.gateway(kind, out, times));
        for (place, block) in blocks.iter().enumerate() {
            let is_taken = taken.is_none_or(|taken| taken[place]);
            let (first, last) = self.write(block, out, if is_taken { times } else { 0 });
            let condition = match (taken, is_taken) {
                (None, _) => "",
                (_, true) => " if 1 = 1",
                (_, false) => " if 1 = 2",
            };
            let _ = writeln!(out, "{split} -> {first}{condition}\n{last} -> {join}");
        }
        (split, join)
    }

    /// A loop with a counter that belongs to the sub-process around it.
    fn repeated(
        &mut self,
        rounds: u64,
        body: &Block,
        out: &mut String,
        times: u64,
    ) -> (String, String) {
        let (id, counter) = (self.id("L"), self.id("k"));
        let _ = writeln!(out, "{id}: sub | in {counter} = 0 {{");
        let mut inner = String::new();
        let all = times * rounds;
        let [merge, test] = ["xor", "xor"].map(|kind| self.gateway(kind, &mut inner, all));
        let count = self.id("K");
        let (first, last) = self.write(body, &mut inner, all);
        let _ = writeln!(
            inner,
            "{count}: script {counter} = {counter} + 1\nstart -> {merge} -> {first}\n{last} -> {count} -> {test}\n\
             {test} -> {merge} if {counter} < {rounds}\n{test} -> end else\n}}"
        );
        self.left(&count, all);
        out.push_str(&inner);
        self.ends(&id, times);
        self.left(&id, times);
        (id.clone(), id)
    }

    fn ends(&mut self, scope: &str, times: u64) {
        self.left(&format!("{scope}_start"), times);
        self.left(&format!("{scope}_end"), times);
    }

    /// The inside of a sub-process, with its closing bracket.
    fn inside(&mut self, id: &str, body: &Block, out: &mut String, times: u64) {
        let (first, last) = self.write(body, out, times);
        let _ = writeln!(out, "start -> {first}\n{last} -> end\n}}");
        self.ends(id, times);
    }

    fn cut(
        &mut self,
        cut: Cut,
        body: &Block,
        after: &Block,
        out: &mut String,
        times: u64,
    ) -> (String, String) {
        let (id, never, stop) = (self.id("C"), self.id("N"), self.id("X"));
        let _ = writeln!(out, "{id}: sub {{\n{never}: user");
        let split = self.gateway("and", out, times);
        let (first, last) = self.write(body, out, times);
        let _ = writeln!(out, "start -> {split} -> {first}\n{split} -> {never} -> end");
        self.left(&format!("{id}_start"), times);
        self.ended_early(&never, times);
        let thrown = match cut {
            Cut::Timer => "pass",
            Cut::Error | Cut::EventSub => "end error GONE",
            Cut::Terminate => "end terminate",
            Cut::Escalation => "end escalation GONE",
        };
        let _ = writeln!(out, "{stop}: {thrown}\n{last} -> {stop}");
        self.left(&stop, times);
        if matches!(cut, Cut::Timer) {
            let _ = writeln!(out, "{stop} -> {never}");
            // The second one to come there waits too.
            self.ended_early(&never, times);
        }
        if matches!(cut, Cut::EventSub) {
            let event = self.id("E");
            let _ = writeln!(out, "{event}: eventsub error {{");
            self.inside(&event, &Block::Leaf("pass"), out, times);
            self.left(&event, times);
        }
        out.push_str("}\n");
        let (first, last) = self.write(after, out, times);
        let trigger = match cut {
            Cut::Timer => format!("timer PT{}H", hours(body) + 1),
            Cut::Error => "error GONE".to_owned(),
            Cut::Escalation => "escalation GONE".to_owned(),
            Cut::Terminate | Cut::EventSub => {
                let _ = writeln!(out, "{id} -> {first}");
                self.left(&id, times);
                return (id, last);
            }
        };
        self.ended_early(&id, times);
        let (boundary, other) = (self.id("b"), self.id("z"));
        let _ = writeln!(
            out,
            "{boundary}: on {id} {trigger}\n{boundary} -> {first}\n{other}: end\n{id} -> {other}"
        );
        self.left(&boundary, times);
        self.left(&other, 0);
        (id, last)
    }

    fn beside(
        &mut self,
        boundary: bool,
        body: &Block,
        beside: &Block,
        out: &mut String,
        times: u64,
    ) -> (String, String) {
        let (id, thrower, caught) = (self.id("B"), self.id("T"), self.id("b"));
        let _ = writeln!(out, "{id}: sub {{\n{thrower}: throw escalation NEWS");
        let (first, last) = self.write(body, out, times);
        let _ = writeln!(out, "start -> {thrower} -> {first}\n{last} -> end");
        self.ends(&id, times);
        self.left(&thrower, times);
        self.left(&id, times);
        if !boundary {
            let _ = writeln!(out, "{caught}: eventsub beside escalation {{");
            self.inside(&caught, beside, out, times);
            self.left(&caught, times);
            out.push_str("}\n");
            return (id.clone(), id);
        }
        out.push_str("}\n");
        let (first, last) = self.write(beside, out, times);
        let other = self.id("z");
        let _ = writeln!(
            out,
            "{caught}: beside {id} escalation NEWS\n{other}: end\n{caught} -> {first}\n{last} -> {other}"
        );
        self.left(&caught, times);
        self.left(&other, times);
        (id.clone(), id)
    }
}
