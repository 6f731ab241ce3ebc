#![doc = include_str!("../README.md")]

mod address;
mod allow;
mod basic;
mod body;
mod breaker;
mod call;
mod client;
mod error;
mod follow;
mod guard;
mod judge;
mod metrics;
mod resolve;
mod service;

pub use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
pub use reqwest::{Method, Url};

pub use self::allow::{AllowList, AllowListError};
pub use self::basic::basic;
pub use self::breaker::{Breaker, BreakerConfig, BreakerState, Permit, Verdict};
pub use self::call::{Answer, Call, Endpoint};
pub use self::client::{Client, ClientError, Config};
pub use self::error::{HttpError, Phase, Reason};
pub use self::follow::{Pace, Sink};
pub use self::guard::{Ground, Guard, NotAllowed};
pub use self::judge::{Judge, NoAddress};
pub use self::resolve::{Lookup, Lookups};
pub use self::service::Service;
