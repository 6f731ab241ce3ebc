//! Agent runs as their project sees them.

use anyhow::Result;
use runfleet_client::Client;
use runfleet_contracts::agents::AgentRunState;
use runfleet_testkit::wait_until;

use crate::fleet::BOUND;

/// Waits for the end of a run.
pub async fn ended(client: &Client, run: &str) -> Result<AgentRunState> {
    wait_until("an agent run has ended", BOUND, || async {
        let state = client.agents().get(run).await?;
        Ok(!matches!(state.status.as_str(), "QUEUED" | "RUNNING")).map(|over| over.then_some(state))
    })
    .await
}

/// Why a run has failed, if it has.
pub fn code(state: &AgentRunState) -> Option<&str> {
    state.error.as_ref().map(|error| error.code.as_str())
}
