//! Where callers send requests: names on the broker that clients in every language rely on.

use runfleet_domain::Lane;

/// Exchange that requests are published to.
pub const START_EXCHANGE: &str = "x.start";

/// What a request says in `reply_to` to be answered on the channel that sent it.
pub const DIRECT_REPLY: &str = "amq.rabbitmq.reply-to";

/// Routing key of a request in a lane; also the name of the queue behind it.
pub fn start_key(lane: Lane) -> &'static str {
    match lane {
        Lane::Interactive => "start-intake.interactive",
        Lane::Backfill => "start-intake.backfill",
    }
}
