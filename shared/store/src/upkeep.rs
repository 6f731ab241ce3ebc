//! Seeing whether Redis is there, and what only tests need.

use redis::Value;
use runfleet_domain::Shard;

use crate::error::StoreError;
use crate::metrics::Operation;
use crate::reply::{items, text};
use crate::store::Store;

impl Store {
    /// Asks Redis for a sign of life.
    ///
    /// # Errors
    /// [`StoreError::Config`] when Redis refuses the login or has not granted what the store needs.
    pub async fn ping(&self) -> Result<(), StoreError> {
        match self.run_command(Operation::Ping, redis::cmd("PING")).await {
            Ok(_) => Ok(()),
            Err(StoreError::Unavailable { reason: "auth", .. }) => {
                Err(StoreError::Config("redis refuses the login of the URL"))
            }
            Err(StoreError::Refused { .. }) => {
                Err(StoreError::Config("redis does not let this user do what the store needs"))
            }
            Err(error) => Err(error),
        }
    }

    /// Moves the clock of a shard by so many milliseconds. Only for tests, and only with `StoreConfig::skew`.
    #[doc(hidden)]
    pub async fn set_skew(&self, shard: Shard, skew_ms: i64) -> Result<(), StoreError> {
        if !self.inner.skew {
            return Err(StoreError::Config("the clock of this store cannot be moved"));
        }
        let mut command = redis::cmd("SET");
        command.arg(self.keys().skew(shard)).arg(skew_ms);
        self.run_command(Operation::Maintenance, command).await.map(drop)
    }

    /// Removes every key of the namespace from a single server, and tells how many there were. Only for tests.
    #[doc(hidden)]
    pub async fn delete_namespace(&self) -> Result<u64, StoreError> {
        let corrupt = || StoreError::Corrupt { kind: "scan", field: "answer" };
        let mut cursor = "0".to_owned();
        let mut removed = 0;
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(&cursor).arg("MATCH").arg(self.keys().everything()).arg("COUNT").arg(1_000);
            let answer = items(self.run_command(Operation::Maintenance, scan).await?);
            let [next, names] =
                <[Value; 2]>::try_from(answer.ok_or_else(corrupt)?).map_err(|_| corrupt())?;
            let names: Option<Vec<_>> =
                items(names).map(|names| names.into_iter().filter_map(text).collect());
            let names = names.ok_or_else(corrupt)?;
            if !names.is_empty() {
                removed += names.len() as u64;
                let mut unlink = redis::cmd("UNLINK");
                unlink.arg(&names);
                self.run_command(Operation::Maintenance, unlink).await?;
            }
            cursor = text(next).ok_or_else(corrupt)?;
            if cursor == "0" {
                return Ok(removed);
            }
        }
    }
}
