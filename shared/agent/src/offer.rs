//! Which tools a run has: those that it may use, and of these the ones that the model gets to see.

use std::collections::BTreeSet;

use runfleet_catalog::{Permission, Scope, ToolKind};
use runfleet_domain::limits::{CHAT_MESSAGE_CHARS_MAX, CHAT_NOTE_CHARS_MAX};
use serde_json::{Map, Value, json};

use crate::definition::{Definition, FoundTool};
use crate::limits::{SEND_MS, TOOL_NAME_BYTES_MAX};
use crate::request::ToolOffer;
use crate::state::State;

/// Loads a skill. The run answers it itself.
pub(crate) const GET_SKILL: &str = "getSkill";

/// Sends a message to the person that the start named. Offered to runs that have one, and never declared by anybody.
pub(crate) const SEND_MESSAGE: &str = "sendMessage";

/// A tool as a run has it.
pub(crate) struct Tool {
    pub(crate) description: String,
    pub(crate) schema: Map<String, Value>,
    pub(crate) work: Work,
    pub(crate) permission: Permission,
    pub(crate) idempotent: bool,
    pub(crate) timeout_ms: u64,
}

/// Who does the work.
pub(crate) enum Work {
    /// The run itself.
    Skill,
    /// Whoever brings messages to people.
    Message,
    /// Somebody outside.
    Outside(ToolKind),
}

/// Whether a text may name a tool.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=TOOL_NAME_BYTES_MAX).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// The names of all tools of an agent.
pub(crate) fn all(definition: &Definition, found: &[FoundTool]) -> BTreeSet<String> {
    let blueprint = &definition.blueprint;
    let offered = |tool: &FoundTool| {
        blueprint.mcp_servers.iter().any(|(name, server)| {
            name.as_str() == tool.server
                && blueprint.spec.mcp_servers.contains(name)
                && server.only.as_ref().is_none_or(|only| only.contains(&tool.tool))
        })
    };
    let skill = (!blueprint.skills.is_empty()).then(|| GET_SKILL.to_owned());
    blueprint
        .tools
        .keys()
        .map(ToString::to_string)
        .chain(found.iter().filter(|tool| offered(tool)).map(FoundTool::name))
        .chain(skill)
        .collect()
}

/// Whether the model may call a tool now: it is allowed, and no skill hides it.
pub(crate) fn is_visible(definition: &Definition, state: &State, name: &str) -> bool {
    if !state.allowed.contains(name) {
        return false;
    }
    let owned = |loaded: bool| {
        definition.blueprint.skills.iter().any(|(skill, declared)| {
            (!loaded || state.skills.contains(skill.as_str()))
                && declared.tools.iter().any(|tool| tool.as_str() == name)
        })
    };
    name == GET_SKILL || is_send(state, name) || !owned(false) || owned(true)
}

/// Whether a name is that of the tool that writes to the person of the run. It comes before a declared tool of that name.
fn is_send(state: &State, name: &str) -> bool {
    state.deliver && name == SEND_MESSAGE
}

/// A tool by its name.
pub(crate) fn tool(definition: &Definition, state: &State, name: &str) -> Option<Tool> {
    let blueprint = &definition.blueprint;
    if is_send(state, name) {
        return Some(send_message());
    }
    if name == GET_SKILL && !blueprint.skills.is_empty() {
        return Some(get_skill(definition));
    }
    if let Some((key, tool)) = blueprint.tools.iter().find(|(key, _)| key.as_str() == name) {
        let own = blueprint.spec.tools.get(key).and_then(|grant| grant.permission);
        let permission = match tool.scope {
            Scope::Custom => own.unwrap_or(tool.permission),
            Scope::General | Scope::Specified => tool.permission,
        };
        return Some(Tool {
            description: tool.description.clone(),
            schema: tool.input_schema.clone(),
            work: Work::Outside(tool.kind.clone()),
            permission,
            idempotent: tool.idempotent,
            timeout_ms: u64::from(tool.timeout_seconds) * 1_000,
        });
    }
    let found = state.found.iter().find(|found| found.name() == name)?;
    let (key, server) =
        blueprint.mcp_servers.iter().find(|(key, _)| key.as_str() == found.server)?;
    Some(Tool {
        description: found.description.clone(),
        schema: found.input_schema.clone(),
        work: Work::Outside(ToolKind::Mcp { server: key.clone(), tool: found.tool.clone() }),
        permission: server.permission_of(&found.tool),
        idempotent: server.idempotent.contains(&found.tool),
        timeout_ms: u64::from(server.timeout_seconds) * 1_000,
    })
}

/// The tools that the model gets to see.
pub(crate) fn offers(definition: &Definition, state: &State) -> Vec<ToolOffer> {
    let visible = state.allowed.iter().filter(|name| is_visible(definition, state, name));
    visible
        .filter_map(|name| {
            let tool = tool(definition, state, name)?;
            Some(ToolOffer {
                name: name.clone(),
                description: tool.description,
                input_schema: tool.schema,
            })
        })
        .collect()
}

fn send_message() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "message": {
                "type": "string", "minLength": 1, "maxLength": CHAT_MESSAGE_CHARS_MAX, "pattern": "\\S",
                "description": "What the person reads."
            },
            "note": {
                "type": "string", "maxLength": CHAT_NOTE_CHARS_MAX,
                "description": "A private note to yourself, for when the person answers: why you wrote. The person never sees it."
            }
        },
        "required": ["message"],
        "additionalProperties": false
    });
    Tool {
        description: "Sends a message to the one person this task may write to. Call it only if there is something the person \
            should know; your last answer does not go to the person. The person can reply to it later, in a conversation of its own. \
            The result says whether it was sent."
            .to_owned(),
        schema: schema.as_object().cloned().unwrap_or_default(),
        work: Work::Message,
        permission: Permission::Allow,
        idempotent: true,
        timeout_ms: SEND_MS,
    }
}

fn get_skill(definition: &Definition) -> Tool {
    let skills = &definition.blueprint.skills;
    let list: Vec<String> =
        skills.iter().map(|(name, skill)| format!("- {name}: {}", skill.description)).collect();
    let list = list.join("\n");
    let names: Vec<&str> = skills.keys().map(runfleet_domain::Name::as_str).collect();
    let schema = json!({
        "type": "object",
        "properties": {"skillName": {"type": "string", "enum": names}},
        "required": ["skillName"],
        "additionalProperties": false
    });
    Tool {
        description: format!("Loads a guide and the tools that belong to it. There are:\n{list}"),
        schema: schema.as_object().cloned().unwrap_or_default(),
        work: Work::Skill,
        permission: Permission::Allow,
        idempotent: true,
        timeout_ms: 0,
    }
}

/// Loads a skill: what the model is told.
pub(crate) fn load_skill(definition: &Definition, state: &mut State, name: &str) -> Value {
    let skill = definition.blueprint.skills.iter().find(|(key, _)| key.as_str() == name);
    let Some((key, skill)) = skill else {
        return json!({"status": "error", "content": "There is no such skill."});
    };
    state.skills.insert(key.to_string());
    let activated: Vec<&str> = skill
        .tools
        .iter()
        .map(runfleet_domain::Name::as_str)
        .filter(|tool| state.allowed.contains(*tool))
        .collect();
    json!({"status": "success", "content": {
        "skillName": name, "skillContent": skill.instructions, "activatedTools": activated
    }})
}
