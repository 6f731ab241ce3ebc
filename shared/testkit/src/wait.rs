//! Waiting for conditions instead of sleeping for luck.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Asks `condition` again and again until it returns something; fails with `what` was missing after `bound`.
pub async fn wait_until<T, F, Fut>(what: &str, bound: Duration, mut condition: F) -> Result<T>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<Option<T>>>,
{
    let began = Instant::now();
    let mut wait = Duration::from_millis(5);
    loop {
        if let Some(found) = condition().await? {
            return Ok(found);
        }
        if began.elapsed() > bound {
            bail!("after {bound:?} there is still not: {what}");
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(Duration::from_millis(100));
    }
}
