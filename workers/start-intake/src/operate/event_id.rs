//! Ids of events that requests bring, derived from what callers chose as message ids. A caller can never choose the id of an
//! event that the fleet itself makes, such as an answer to a task.

use runfleet_domain::{MessageId, NameError};
use sha2::{Digest, Sha256};

/// The id of the event that a request brings to a run.
pub(crate) fn of_request(id: &MessageId) -> Result<MessageId, NameError> {
    derived("request", id)
}

/// `kind:id`, or `kind:` and the digest of an id that leaves no room for that.
fn derived(kind: &str, id: &MessageId) -> Result<MessageId, NameError> {
    let plain = format!("{kind}:{id}");
    plain.parse().or_else(|_| {
        let digest = Sha256::digest(id.as_str().as_bytes());
        format!("{kind}:{digest:x}").parse()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_id_makes_one_event_id_that_is_none_of_the_fleets_own() {
        let id = |text: &str| text.parse::<MessageId>().unwrap();
        for text in ["answer:7:1", "child:PI1501JDX3Z8GF0000000000000000", "m", &"m".repeat(128)] {
            let event = of_request(&id(text)).unwrap();
            assert!(event.as_str().starts_with("request:"), "{event}");
            assert_eq!(event, of_request(&id(text)).unwrap());
        }
        let long = |end: char| id(&format!("{}{end}", "m".repeat(127)));
        assert_ne!(of_request(&long('a')).unwrap(), of_request(&long('b')).unwrap());
        assert_eq!(of_request(&id("m")).unwrap().as_str(), "request:m");
    }
}
