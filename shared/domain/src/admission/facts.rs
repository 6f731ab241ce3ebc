//! What is known about people and money when a start is decided.

/// What is known about people and money. Comes from the catalog or from a service of the platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// The person behind the execution; of no meaning without one.
    pub person: PersonFacts,
    /// What the workspace has paid for; of no meaning for Processes.
    pub billing: BillingFacts,
    /// The person who may get a message; of no meaning without one.
    pub recipient: RecipientFacts,
}

/// A person who starts something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each asked by name")]
pub struct PersonFacts {
    /// Whether the workspace knows the person and the person is active.
    pub active: bool,
    /// Whether the person has an account in the workspace.
    pub account: bool,
    /// The person's own right to start the Process or agent.
    pub may_start: bool,
    /// Whether the person holds an AI Agent seat.
    pub ai_seat: bool,
}

/// What a workspace has paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each asked by name")]
pub struct BillingFacts {
    /// Whether it has an AI plan.
    pub subscription: bool,
    /// Whether credit is left.
    pub credits: bool,
    /// Whether the agent's own credit limit is not reached.
    pub agent_credits: bool,
    /// Whether the agent's model has a price.
    pub model_priced: bool,
}

/// A person who may get a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each asked by name")]
pub struct RecipientFacts {
    /// Whether messages can be delivered at the moment.
    pub delivery: bool,
    /// Whether the workspace knows the person and the person is active.
    pub exists: bool,
    /// Whether the person may use the agent.
    pub may_use: bool,
    /// Whether the person holds an AI Agent seat.
    pub ai_seat: bool,
}

/// What has been charged so far, in millionths of a credit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CreditsUsed {
    /// To the workspace, by all its agents.
    pub workspace: u64,
    /// To the agent.
    pub agent: u64,
}

impl CreditsUsed {
    /// Millionths in one credit.
    pub const PER_CREDIT: u64 = 1_000_000;
}

impl Facts {
    /// Facts under which nothing is refused: to find out, before anybody is asked, whether a start is refused anyway.
    pub const GOOD: Self = Self {
        person: PersonFacts { active: true, account: true, may_start: true, ai_seat: true },
        billing: BillingFacts {
            subscription: true,
            credits: true,
            agent_credits: true,
            model_priced: true,
        },
        recipient: RecipientFacts { delivery: true, exists: true, may_use: true, ai_seat: true },
    };
}
