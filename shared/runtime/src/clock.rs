//! The one place that reads the clock of the machine. Rules never call it: they get the time as data.

use std::time::{SystemTime, UNIX_EPOCH};

/// Unix milliseconds now; 0 on a machine whose clock stands before 1970.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_tells_milliseconds_and_not_seconds() {
        // 2020-01-01 and 2100-01-01 in Unix milliseconds.
        assert!((1_577_836_800_000..4_102_444_800_000).contains(&now_ms()));
    }
}
