//! Requests that nobody has thought about: random JSON, and golden requests with random damage.

use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::places::{places, requests};
use crate::reading::{read, told};

/// Values that fit every option and must not come back in an error.
const CANARY: &str = "c4nary";

/// Texts that have a meaning to readers of JSON.
const PIECES: [&str; 26] = [
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    "\\",
    "\\u0000",
    "\\ud800",
    "null",
    "true",
    "1e400",
    "-0",
    "9007199254740993",
    "{}",
    "[]",
    "\"\"",
    "\"operation\":",
    "\"payload\":",
    "\"input\":",
    "\"job\":",
    "\u{0}",
    "\u{feff}",
    "\u{2028}",
    "é",
];

/// JSON as a text, with everything that JSON allows: names given twice, large numbers, spaces.
fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        select(vec![
            "null",
            "true",
            "false",
            "0",
            "-0",
            "1.5",
            "1e400",
            "-1e-400",
            "9007199254740993",
            "123456789012345678901234567890",
            "\"\"",
            "\"a\"",
            "\"\\u0000\"",
            "\"\\ud83d\\ude00\"",
            "\"\\ud800\"",
            "\"approve-discount\"",
            "\"caller\"",
            "\"object\"",
        ])
        .prop_map(str::to_owned),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_filter_map("a number", |number| serde_json::to_string(&number).ok()),
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
    ];
    let name = prop_oneof![
        4 => select(vec![
            "a", "operation", "payload", "processInfoId", "input", "agentId", "instruction", "job",
            "variables", "records", "objectSlug", "recordId", "resultSchema", "type", "properties",
            "required", "enum", "items", "onComplete", "onResult", "deliverTo", "idempotencyKey",
            "$serde_json::private::RawValue",
        ])
        .prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    leaf.prop_recursive(6, 48, 5, move |inner| {
        let entry = (name.clone(), inner.clone()).prop_map(|(name, value)| {
            format!("{} : {value}", serde_json::to_string(&name).unwrap())
        });
        prop_oneof![
            prop::collection::vec(inner, 0..5).prop_map(|items| format!("[{}]", items.join(", "))),
            prop::collection::vec(entry, 0..5)
                .prop_map(|items| format!("{{{}}}", items.join(", "))),
        ]
    })
}

/// One damage to a text, at places that are told as parts of its length.
#[derive(Debug, Clone)]
enum Damage {
    Flip(Index, u8),
    Delete(Index, usize),
    Insert(Index, Vec<u8>),
    Copy(Index, usize, Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let piece = prop_oneof![
        select(PIECES.to_vec()).prop_map(|piece| piece.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 1..4),
        json().prop_map(String::into_bytes),
    ];
    prop_oneof![
        (any::<Index>(), 0..8_u8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        (any::<Index>(), 1..40_usize).prop_map(|(at, size)| Damage::Delete(at, size)),
        (any::<Index>(), piece).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        (any::<Index>(), 1..200_usize, any::<Index>())
            .prop_map(|(from, size, to)| Damage::Copy(from, size, to)),
    ]
}

fn damaged(mut body: Vec<u8>, damages: &[Damage]) -> Vec<u8> {
    for damage in damages {
        if body.is_empty() {
            break;
        }
        let part = |at: &Index, size: usize| {
            let from = at.index(body.len());
            from..body.len().min(from + size)
        };
        match damage {
            Damage::Flip(at, bit) => {
                let at = at.index(body.len());
                body[at] ^= 1 << bit;
            }
            Damage::Delete(at, size) => drop(body.drain(part(at, *size))),
            Damage::Insert(at, bytes) => {
                let at = at.index(body.len());
                drop(body.splice(at..at, bytes.iter().copied()));
            }
            Damage::Copy(from, size, to) => {
                let copy = body[part(from, *size)].to_vec();
                let to = to.index(body.len());
                drop(body.splice(to..to, copy));
            }
        }
    }
    body
}

/// The golden requests, with canaries for all values that may be anything.
fn marked() -> Vec<String> {
    requests()
        .iter()
        .map(|request| {
            let mut text = request.to_string();
            for value in [
                "approve-discount",
                "Order 7",
                "order:7",
                "deal-coach",
                "Look at the deal.",
                "L-7",
                "deal:7",
                "deal_coached",
                "discount_decided",
                "ada",
                "Your deal",
                "payment_received",
                "order-7",
                "payment:7",
                "shop_closed",
                "Why?",
                "call_1_1",
                "Europe/Berlin",
                "1.4.0",
                "host-1",
            ] {
                text = text.replace(&format!("\"{value}\""), &format!("\"{CANARY}\""));
            }
            text
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_json_is_read_or_refused(text in json(), at in any::<Index>()) {
        let _ = read(text.as_bytes());
        let places = places();
        let _ = read(&at.get(&places).filled(&text));
    }

    #[test]
    fn random_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        prop_assert!(read(&bytes).is_err());
    }

    #[test]
    fn a_damaged_request_is_read_or_refused_and_never_repeated(
        which in any::<Index>(),
        damages in prop::collection::vec(damage(), 1..6),
    ) {
        let body = damaged(which.get(&marked()).clone().into_bytes(), &damages);
        if let Err(error) = read(&body) {
            // Damage can make a name of a value; names that nobody knows are told.
            let names_an_option = told(&error).1 == "is not known";
            let error = serde_json::to_string(&error).unwrap();
            prop_assert!(names_an_option || !error.contains(CANARY), "{error}");
        }
    }
}

#[test]
fn the_marked_requests_are_good_ones() {
    for text in marked() {
        let ids = ["instanceId", "runId", "conversationId", "readOnly"];
        let ids_only = ids.iter().any(|name| text.contains(name));
        assert!(text.contains(CANARY) || ids_only || text.contains("chat.list"));
        assert!(read(text.as_bytes()).is_ok(), "{text}");
    }
}
