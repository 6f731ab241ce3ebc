//! Shows which projects have jobs that nobody takes. Nothing is done about it: jobs wait until a host comes.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use runfleet_broker::Route;
use runfleet_domain::Name;
use tokio_util::sync::CancellationToken;

use crate::handler::Deps;
use crate::places::Workspaces;

/// How often it is looked.
const EVERY: Duration = Duration::from_secs(15);

/// Counts what waits, and names projects without a host in the log, once each.
pub(crate) async fn watch(deps: Arc<Deps>, shutdown: CancellationToken) {
    let mut workspaces = Workspaces::default();
    let mut without = HashSet::new();
    // Dispatchers that started together must not look together.
    let mut wait = EVERY.mul_f64(rand::random_range(0.1..1.0));
    while shutdown.run_until_cancelled(tokio::time::sleep(wait)).await.is_some() {
        wait = EVERY.mul_f64(rand::random_range(0.9..1.1));
        if let Err(error) = look(&deps, &mut workspaces, &mut without).await {
            tracing::debug!(%error, "what waits for hosts could not be counted");
        }
    }
}

async fn look(
    deps: &Deps,
    workspaces: &mut Workspaces,
    without: &mut HashSet<(Name, Name)>,
) -> anyhow::Result<()> {
    let (mut all, mut now_without) = (0, HashSet::new());
    for workspace in workspaces.all(&deps.store).await? {
        let Some(snapshot) = deps.catalog.get(&workspace).await? else { continue };
        for project in snapshot.projects.keys() {
            let waiting = deps.store.jobs_waiting(&workspace, project).await?;
            all += waiting;
            if waiting > 0 && !has_host(deps, &workspace, project).await? {
                let place = (workspace.clone(), project.clone());
                if !without.contains(&place) {
                    tracing::warn!(%workspace, %project, waiting, "jobs wait and no host takes them");
                }
                now_without.insert(place);
            }
        }
    }
    deps.metrics.waiting.set(i64::try_from(all).unwrap_or(i64::MAX));
    deps.metrics.without_host.set(i64::try_from(now_without.len()).unwrap_or(i64::MAX));
    *without = now_without;
    Ok(())
}

async fn has_host(deps: &Deps, workspace: &Name, project: &Name) -> anyhow::Result<bool> {
    let route = Route::Job { workspace: workspace.clone(), project: project.clone() };
    let queue = deps.broker.queue(&route.queue()).await?;
    Ok(queue.is_some_and(|queue| queue.consumers > 0))
}
