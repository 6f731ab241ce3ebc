//! Requests that somebody has thought about: deep, cut off, doubled, badly encoded, large.

use serde_json::Value;

use crate::places::{place_of, places, requests, twice};
use crate::reading::{read, told};

/// A value of a request that must never come back in an error.
const CANARY: &str = "c4nary";

fn nested(depth: usize, open: &str, close: &str) -> String {
    open.repeat(depth) + "1" + &close.repeat(depth)
}

/// The forms of nesting: closed and cut off.
fn deep(depth: usize) -> [String; 5] {
    [
        nested(depth, "[", "]"),
        nested(depth, "{\"a\":", "}"),
        nested(depth, "[{\"a\":", "}]"),
        "[".repeat(depth),
        "{\"a\":".repeat(depth),
    ]
}

#[test]
fn nesting_of_any_depth_is_refused_at_every_place() {
    let (forms, deeper) = (deep(1_000), deep(100_000));
    for (index, place) in places().iter().enumerate() {
        // Each place with one form of the greater depth: there are many places, and all are read by one reader.
        for text in forms.iter().chain([&deeper[index % deeper.len()]]) {
            assert!(read(&place.filled(text)).is_err(), "{} {}", place.pointer, text.len());
        }
    }
}

#[test]
fn json_of_a_caller_that_is_nested_too_deeply_is_named_by_its_option() {
    for (operation, pointer, field) in [
        ("processes.start", "/payload/input/amount", "input"),
        ("processes.start", "/payload/onComplete/payload", "onComplete.payload"),
        ("agents.start", "/payload/variables/amount", "variables"),
        ("agents.start", "/payload/onResult/payload", "onResult.payload"),
        ("agents.start", "/payload/resultSchema/properties", "resultSchema"),
    ] {
        let place = place_of(operation, pointer);
        for text in deep(1_000).iter().take(3) {
            let error = read(&place.filled(text)).unwrap_err();
            assert_eq!(told(&error), (field, "is nested too deeply"), "{pointer}");
        }
    }
    let input = place_of("processes.start", "/payload/input");
    let error = read(&input.filled(nested(1_000, "{\"a\":", "}"))).unwrap_err();
    assert_eq!(told(&error), ("input", "is nested too deeply"));
}

#[test]
fn a_request_that_is_cut_off_anywhere_is_refused() {
    for request in requests() {
        for text in [request.to_string(), serde_json::to_string_pretty(&request).unwrap()] {
            assert!(read(text.as_bytes()).is_ok());
            for end in 0..text.len() {
                assert!(read(&text.as_bytes()[..end]).is_err(), "{end} bytes of {text}");
            }
        }
    }
}

#[test]
fn bytes_that_are_no_text_are_refused_wherever_they_are() {
    let bad: [&[u8]; 7] = [
        b"\xff",
        b"\xc0\x80",
        b"\xed\xa0\x80",
        b"\xf5\x80\x80\x80",
        b"\xc3",
        b"\0",
        // The byte order mark is good text and no JSON.
        "\u{feff}".as_bytes(),
    ];
    for request in requests() {
        let text = request.to_string();
        for (at, bad) in (0..=text.len()).flat_map(|at| bad.map(|bad| (at, bad))) {
            let body = [&text.as_bytes()[..at], bad, &text.as_bytes()[at..]].concat();
            let inside_a_string = bad == "\u{feff}".as_bytes();
            let read = read(&body);
            assert!(read.is_err() || inside_a_string, "{bad:x?} at {at} of {text}");
            assert!(read.is_err() || at > 0, "a request may not begin with a byte order mark");
        }
    }
}

#[test]
fn half_a_surrogate_pair_is_refused_in_every_text_and_every_name() {
    for place in places() {
        for half in ["\\ud800", "\\udc00", "\\ud800\\ud800", "\\ud800x", "\\udc00\\ud800", "\\ud8"]
        {
            for text in [format!("\"{half}\""), format!("{{\"{half}\":1}}")] {
                assert!(read(&place.filled(&text)).is_err(), "{text} at {}", place.pointer);
            }
        }
    }
}

#[test]
fn a_name_that_is_given_twice_is_refused_at_every_level() {
    for place in places() {
        let Value::Object(object) = &place.value else { continue };
        for name in object.keys() {
            let first = name.chars().next().unwrap();
            let escaped = format!("\\u{:04x}{}", u32::from(first), &name[1..]);
            for spelt in [name.as_str(), &escaped] {
                let error = read(&place.filled(twice(object, name, spelt))).unwrap_err();
                let problem = told(&error).1;
                assert!(
                    ["is given twice", "gives a name twice"].contains(&problem),
                    "{name} in {}: {problem}",
                    place.pointer
                );
            }
        }
    }
}

#[test]
fn numbers_stay_as_they_were_written() {
    let input = place_of("processes.start", "/payload/input/amount");
    let variables = place_of("agents.start", "/payload/variables/amount");
    for number in [
        "-0",
        "-0.0",
        "9007199254740993",
        "18446744073709551616",
        "1234567890123456789012345678901234567890",
        "0.1234567890123456789012345678901234567890",
        "1e-400",
        "1E+2",
        "1.10",
    ] {
        let start = read(&input.filled(number)).unwrap().process();
        assert_eq!(start.input.unwrap().get(), format!("{{\"amount\":{number}}}"));
        let start = read(&variables.filled(number)).unwrap().agent();
        assert_eq!(start.input.variables.unwrap().get(), format!("{{\"amount\":{number}}}"));
    }
    for place in [input, variables] {
        let error = read(&place.filled("1e400")).unwrap_err();
        assert_eq!(told(&error).1, "has a number out of range");
        for number in ["01", "+1", "1.", ".1", "1e", "0x1", "NaN", "Infinity", "-"] {
            assert!(read(&place.filled(number)).is_err(), "{number}");
        }
    }
}

#[test]
fn a_request_as_large_as_a_message_may_be_and_one_byte_more_is_read_in_time() {
    let fill = |size: usize, unit: &str| unit.repeat(size / unit.len() + 1)[..size].to_owned();
    // Each place with one of the two sizes and two of the six texts: there are many places.
    for (index, place) in places().iter().enumerate() {
        let size = 262_144 + index % 2;
        let room = size - place.filled("").len();
        let texts: [&dyn Fn() -> String; 6] = [
            &|| fill(room, " "),
            &|| fill(room, "1"),
            &|| format!("\"{}\"", fill(room - 2, "x")),
            &|| format!("[{}1]", fill(room - 3, "1,")),
            &|| format!("[{}{{}}]", " ".repeat(room % 3) + &"{},".repeat((room - 4) / 3)),
            &|| many_names(room),
        ];
        for text in [index / 2 % 6, (index / 2 + 3) % 6].map(|which| texts[which]()) {
            // What a get asks for may be any text: it is the id of no run, which is found out later.
            let any_text = place.pointer.ends_with("Id") && text.starts_with('"');
            // A list may be empty, and as blank as it likes.
            let no_item = place.pointer.ends_with("/0") && text.trim().is_empty();
            let read = read(&place.filled(&text));
            assert!(read.is_err() || any_text || no_item, "{} {}", place.pointer, text.len());
        }
    }
}

/// An object of about that size with as many different names as fit.
fn many_names(size: usize) -> String {
    let entries: Vec<String> = (0..(size - 2) / 12).map(|at| format!("\"n{at:06}\":1")).collect();
    format!("{{{}}}", entries.join(","))
}

#[test]
fn white_space_around_a_request_does_not_matter() {
    for request in requests() {
        let text = request.to_string();
        let padded = format!("{text}{}", "\r\n\t ".repeat(65_536 - text.len() / 4));
        assert!(read(padded.as_bytes()).is_ok());
        assert!(read(format!("{text} {text}").as_bytes()).is_err());
    }
}

#[test]
fn no_value_of_a_request_comes_back_in_an_error() {
    for place in places() {
        for text in [
            format!("\"{CANARY} with a space\""),
            format!("\"{CANARY}\u{7}\""),
            format!("\"{CANARY}`, `{CANARY}`\""),
            format!("\"unknown field `{CANARY}`\""),
            format!("\"{}\"", CANARY.repeat(6_000)),
            format!("[\"{CANARY}\"]"),
            format!("{{\"a\":\"{CANARY}\"}}"),
            format!("{{\"a\":\"{CANARY}\"}} {CANARY}"),
            CANARY.to_owned(),
        ] {
            let Err(error) = read(&place.filled(&text)) else { continue };
            let error = serde_json::to_string(&error).unwrap();
            assert!(!error.contains(CANARY), "{error} for {text} at {}", place.pointer);
        }
        for number in ["-918273645", "918273645.5", "918273645918273645918273645"] {
            let Err(error) = read(&place.filled(number)) else { continue };
            let error = serde_json::to_string(&error).unwrap();
            assert!(!error.contains("918273645"), "{error} for {number} at {}", place.pointer);
        }
    }
}

#[test]
fn a_name_that_nobody_knows_is_told_in_short_and_in_one_line() {
    let names = [
        "n".repeat(65),
        "n".repeat(60_000),
        "é".repeat(5_000),
        "n`n".into(),
        "n\u{1b}[31m\n".into(),
    ];
    for place in places().iter().filter(|place| place.value.is_object()) {
        for name in &names {
            let object = place.value.to_string();
            let name = serde_json::to_string(name).unwrap();
            let text = format!("{},{name}:1}}", &object[..object.len() - 1]);
            // An input may have names of any kind.
            let Err(error) = read(&place.filled(text)) else { continue };
            let field = told(&error).0;
            assert!(!field.contains(char::is_control), "{field:?}");
            assert!(field.split('.').all(|name| name.chars().count() <= 64), "{field}");
        }
    }
    let place = place_of("processes.start", "/payload/onComplete");
    let error = read(&place.filled("{\"job\":\"j\",\"a`b\":1}")).unwrap_err();
    assert_eq!(told(&error), ("onComplete.a`b", "is not known"));
}

#[test]
fn lists_and_objects_stand_for_nothing_but_themselves() {
    // Readers of typed data often take a list for an object, and an object with one name for a word.
    let list = |value: &Value| {
        let values: Vec<&Value> = value.as_object().unwrap().values().collect();
        serde_json::to_string(&values).unwrap()
    };
    for place in places() {
        if place.value.is_object() {
            let read = read(&place.filled(list(&place.value)));
            assert!(read.is_err(), "a list at {}", place.pointer);
        } else if let Value::String(word) = &place.value {
            let read = read(&place.filled(format!("{{\"{word}\":null}}")));
            assert!(read.is_err(), "an object at {}", place.pointer);
        }
    }
}

#[test]
fn no_name_makes_a_text_count_as_json() {
    // The reader of JSON in this program gives this name a meaning of its own.
    let hidden = |json: &str| {
        format!("{{\"$serde_json::private::RawValue\":{}}}", serde_json::to_string(json).unwrap())
    };
    for place in places() {
        for json in ["1", "{\"a\":1,\"a\":2}", &nested(100, "[", "]"), "\"x\"", "{}", "true"] {
            let read = read(&place.filled(hidden(json)));
            assert!(read.is_err(), "{json} at {}", place.pointer);
        }
    }
}
