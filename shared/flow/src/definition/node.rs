//! The parts of a definition: flow nodes by kind, sequence flows, scopes. Plain data with compiled expressions.
//!
//! Everything refers to everything else by its index in the lists of the definition.

use crate::feel::Expression;

/// The process or a sub-process: a place with elements, variables and event sub-processes of its own.
#[derive(Debug)]
pub(crate) struct Scope {
    /// The node that is this scope; none for the process.
    pub(crate) owner: Option<usize>,
    /// The start event: none start of the process or an embedded sub-process, triggered start of an event sub-process.
    pub(crate) start: usize,
    /// Event sub-processes that lie in it, in the order of the document.
    pub(crate) events: Vec<usize>,
}

/// A flow node.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    /// The scope that it lies in.
    pub(crate) scope: usize,
    pub(crate) kind: NodeKind,
    /// Flows that lead to it, in the order of the document.
    pub(crate) incoming: Vec<usize>,
    /// Flows that leave it, in the order of the document. Several from anything but a gateway split like a parallel
    /// gateway; the ones with a condition are taken only if it is true.
    pub(crate) outgoing: Vec<usize>,
    /// The flow taken when no condition is true.
    pub(crate) default: Option<usize>,
    /// Boundary events attached to it.
    pub(crate) boundary: Vec<usize>,
    /// Assignments to local variables on entering, in order; each sees the ones before it.
    pub(crate) inputs: Vec<Mapping>,
    /// Assignments to the variables around it on leaving. When there are none, all results are merged there.
    pub(crate) outputs: Vec<Mapping>,
    /// Multi-instance.
    pub(crate) repeat: Option<Repeat>,
}

/// What a flow node does.
#[derive(Debug)]
pub(crate) enum NodeKind {
    /// A start event. With a trigger only in an event sub-process, where `interrupting` ends everything else in the scope
    /// around it.
    Start { trigger: Option<Trigger>, interrupting: bool },
    /// An end event.
    End(End),
    /// A script task.
    Script {
        expression: Expression,
        /// Variable for the result.
        result: String,
    },
    /// A service task, or a send task, throw or end event with a task definition: somebody else carries it out.
    Task(Box<Task>),
    /// A task that waits for a person.
    User(Box<UserTask>),
    /// Nothing to do: manual task, task without a type, intermediate throw event without a definition.
    Pass,
    /// A task that starts a run of another process and waits for its end.
    Call(Call),
    /// Embedded sub-process.
    Sub { scope: usize },
    /// Event sub-process: never entered by a flow.
    EventSub { scope: usize },
    /// Exclusive gateway.
    Exclusive,
    /// Parallel gateway.
    Parallel,
    /// Inclusive gateway.
    Inclusive,
    /// Event-based gateway: its flows lead to catch events and receive tasks.
    EventBased,
    /// Intermediate catch event or receive task: timer, message or signal.
    Catch(Trigger),
    /// Intermediate throw event or send task.
    Throw(Throw),
    /// Boundary event.
    Boundary { host: usize, trigger: Trigger, interrupting: bool },
}

/// What an end event does when it is reached, beside ending its path.
#[derive(Debug)]
pub(crate) enum End {
    None,
    /// Ends everything in its scope.
    Terminate,
    Error {
        code: String,
    },
    Throw(Throw),
    /// Its task definition says who is asked; the path ends when that is done.
    Task(Box<Task>),
}

/// Something that is sent into the world or up the scopes.
#[derive(Debug)]
pub(crate) enum Throw {
    /// A message to whoever waits for its name and key in the same project.
    Message(Message),
    /// A signal to every run of the project that waits for its name.
    Signal { name: Text },
    /// An escalation to the nearest scope that catches it; nobody needs to.
    Escalation { code: String },
}

/// What somebody waits for.
#[derive(Debug)]
pub(crate) enum Trigger {
    Timer(Timer),
    Message(Message),
    Signal {
        name: Text,
    },
    /// None catches every error.
    Error {
        code: Option<String>,
    },
    /// None catches every escalation.
    Escalation {
        code: Option<String>,
    },
}

/// When a timer is due.
#[derive(Debug)]
pub(crate) enum Timer {
    /// An ISO 8601 date and time with offset.
    Date(Text),
    /// An ISO 8601 duration.
    Duration(Text),
    /// An ISO 8601 repeating interval: `R3/PT10S`, `R/PT1H`, `R2/2027-01-01T00:00:00Z/P1D`.
    Cycle(Text),
}

/// A message by name and correlation key.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) name: Text,
    /// Without one, the name alone correlates.
    pub(crate) key: Option<Text>,
}

/// A text that is given or computed.
#[derive(Debug)]
pub(crate) enum Text {
    Given(String),
    Feel(Expression),
}

/// Work for somebody else.
#[derive(Debug)]
pub(crate) struct Task {
    /// What it is called by whoever carries it out.
    pub(crate) work: Text,
    /// Fixed settings of the task, in the order of the document.
    pub(crate) headers: Vec<(String, String)>,
    /// Attempts in all, at least 1. A number.
    pub(crate) attempts: Text,
    /// Pauses between attempts, in milliseconds; the last one repeats. Never empty.
    pub(crate) back_off_ms: Vec<u64>,
    /// Longest time of one attempt, in milliseconds.
    pub(crate) timeout_ms: u64,
    pub(crate) result: TaskResult,
}

/// What becomes of the answer to a task. All may be absent: then the answer, if it is a context, is merged.
#[derive(Debug, Default)]
pub(crate) struct TaskResult {
    /// Variable for the whole answer.
    pub(crate) variable: Option<String>,
    /// Gives a context that is merged; it sees the answer as `response`.
    pub(crate) expression: Option<Expression>,
    /// Gives a context with `errorType: "bpmnError"`, `code` and `variables`, or null; it sees the answer as `response`, and a
    /// failure as `error` with its `code`.
    pub(crate) error: Option<Expression>,
}

/// Work for a person.
#[derive(Debug)]
pub(crate) struct UserTask {
    pub(crate) assignee: Option<Text>,
    /// A list of strings.
    pub(crate) candidate_groups: Option<Text>,
    /// A list of strings.
    pub(crate) candidate_users: Option<Text>,
    pub(crate) form: Option<String>,
    /// ISO 8601 date and time.
    pub(crate) due: Option<Text>,
}

/// A call of another process.
#[derive(Debug)]
pub(crate) struct Call {
    /// Id of the process.
    pub(crate) process: Text,
    /// Whether all variables that the other process declares as input are handed over, beside what the mappings say.
    pub(crate) all_in: bool,
    /// Whether all its output is merged when there are no output mappings.
    pub(crate) all_out: bool,
}

/// One assignment.
#[derive(Debug)]
pub(crate) struct Mapping {
    pub(crate) source: Expression,
    /// Variable and the path inside it: `order.total` is `["order", "total"]`. Never empty.
    pub(crate) target: Vec<String>,
}

/// Multi-instance: the activity runs once for each item.
#[derive(Debug)]
pub(crate) struct Repeat {
    pub(crate) sequential: bool,
    /// A list, or the number of instances.
    pub(crate) over: Expression,
    /// Variable for the item.
    pub(crate) item: Option<String>,
    /// Variable for the list of results, and the expression of one result.
    pub(crate) collect: Option<(String, Expression)>,
    /// When true after an instance has ended, the rest is ended.
    pub(crate) until: Option<Expression>,
}

/// What becomes of a run when a task has failed for good and nobody catches that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum OnFailure {
    /// It stays where it is, with an incident, until somebody retries or ends it.
    #[default]
    Hold,
    /// It ends as failed.
    Fail,
}

/// A sequence flow.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    /// The node that it leaves.
    pub(crate) source: usize,
    /// The node that it leads to.
    pub(crate) target: usize,
    pub(crate) condition: Option<Expression>,
}
