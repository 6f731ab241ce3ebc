//! What the five workers share above broker and ledger: settings, connecting, the catalog in memory, effects, the sweeper,
//! execution tokens for project code, sources of records, services of the platform.
//!
//! Nothing here decides about one kind of run; that is the business of the workers.

mod catalog;
pub mod effects;
pub mod ending;
pub mod facts;
mod fleet;
pub mod inbox;
pub mod keys;
pub mod platform;
pub mod records;
pub mod settings;
mod sweeper;
pub mod tokens;
pub mod waking;

pub use catalog::{CatalogCache, CatalogError};
pub use fleet::Fleet;
pub use settings::Settings;
pub use tokens::{TokenSettings, Tokens};
