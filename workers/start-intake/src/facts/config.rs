//! Which services of the platform know facts about starts.

use runfleet_runtime::Env;
use runfleet_worker::platform::{Kind, Platform, RECIPIENTS};

/// The rights of people.
const DIRECTORY: Kind = Kind {
    purpose: "directory",
    setting: "RUNFLEET_DIRECTORY_URL",
    meaning: "Service that knows the rights of people; absent: the catalog does.",
};

/// Plans, credits and prices.
const BILLING: Kind = Kind {
    purpose: "billing",
    setting: "RUNFLEET_BILLING_URL",
    meaning: "Service that knows plans, credits and prices; absent: the catalog does.",
};

/// Where facts come from instead of the catalog: rights, money, recipients.
pub(crate) type FactsConfig = Platform<3>;

/// Reads all settings.
pub(crate) fn from_env(env: &mut Env) -> Option<FactsConfig> {
    Platform::from_env(env, [DIRECTORY, BILLING, RECIPIENTS])
}
