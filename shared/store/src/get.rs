//! The call by which an execution asks for a run of its project: counted, and answered from the record.

use runfleet_domain::limits::{EXECUTION_MEMORY, RETENTION};
use runfleet_domain::{Name, RunId, Shard};

use crate::error::StoreError;
use crate::metrics::Operation;
use crate::record::{RUN, RunRecord};
use crate::reply::Reply;
use crate::store::{Args, Store};

/// One call of `get`.
#[derive(Debug, Clone, Copy)]
pub struct GetRun<'a> {
    /// The workspace.
    pub workspace: &'a Name,
    /// The project that asks.
    pub project: &'a Name,
    /// The execution that asks.
    pub execution: &'a Name,
    /// Calls of every kind that one execution may make; none when the call is not counted.
    pub calls_budget: Option<u32>,
    /// The run; none when what was asked for cannot be the id of one. The call counts all the same.
    pub run: Option<RunId>,
}

/// What a call of `get` is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Got {
    /// The run, which belongs to the project.
    Found(Box<RunRecord>),
    /// The project has no such run, or it ended longer ago than runs can be asked for.
    Missing,
    /// The execution has made as many calls of every kind as it may. This one was not counted.
    BudgetExceeded {
        /// The budget that is spent.
        limit: u32,
        /// The calls that are counted: the budget, or more when it was larger before.
        used: u32,
    },
}

impl Store {
    /// Counts the call and gives the record of a run to the project that it belongs to. One round trip; none when nothing is to
    /// be counted and the id is of another workspace. Without a budget nothing is written.
    ///
    /// A call whose answer was lost and that is sent again counts twice: a `get` has no message id of its own.
    pub async fn get_run(&self, get: &GetRun<'_>) -> Result<Got, StoreError> {
        let (keys, shard) = (self.keys(), Shard::of_workspace(get.workspace.as_str()));
        let run = get.run.filter(|run| run.shard() == shard);
        if run.is_none() && get.calls_budget.is_none() {
            return Ok(Got::Missing);
        }
        let mut names = vec![keys.calls(shard, get.workspace, get.project, get.execution)];
        names.extend(run.map(|run| keys.run(run)));
        let args = Args::default()
            .with(get.calls_budget.map_or(String::new(), |budget| budget.to_string()))
            .millis(EXECUTION_MEMORY)
            .with(get.workspace)
            .with(get.project)
            .millis(RETENTION);
        let lua = &self.scripts().run_get;
        let value = self.run_script(Operation::GetRun, lua, &names, args).await?;
        let (tag, mut reply) = Reply::open("run_get", value)?;
        match (tag.as_str(), run) {
            ("found", Some(run)) => {
                Ok(Got::Found(Box::new(RunRecord::read(run, reply.fields(RUN)?)?)))
            }
            ("missing", _) => Ok(Got::Missing),
            ("budget_exceeded", _) => Ok(Got::BudgetExceeded {
                limit: get.calls_budget.unwrap_or_default(),
                used: reply.parsed()?,
            }),
            _ => reply.unknown(),
        }
    }
}
