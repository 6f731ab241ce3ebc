//! Which model answers the example agent: the script, or a real provider whose key is in the environment.

use runfleet_catalog::{Bundle, ModelProvider, ProviderKind, Secretly};

/// The provider of the example.
const PROVIDER: &str = "example";

/// Real providers in the order in which they are looked for: the variable with the key, the kind, the usual model, and the
/// variable that names another one.
const REAL: [(&str, ProviderKind, &str); 3] = [
    ("ANTHROPIC_API_KEY", ProviderKind::Anthropic, "claude-3-5-haiku-latest"),
    ("OPENAI_API_KEY", ProviderKind::Openai, "gpt-4o-mini"),
    ("GEMINI_API_KEY", ProviderKind::Gemini, "gemini-2.0-flash"),
];

/// The variable that names another model of the real provider.
const MODEL: &str = "RUNFLEET_DEV_MODEL";

/// Puts a real provider in the place of the script when there is a key; says which one it is.
pub(super) fn choose(bundle: &mut Bundle) -> String {
    let found = REAL.into_iter().find(|(key, ..)| given(key).is_some());
    let provider = bundle.providers.iter_mut().find(|(name, _)| name.as_str() == PROVIDER);
    let (Some((key, kind, usual)), Some((_, provider))) = (found, provider) else {
        return "agents are answered by a script, deploy/example/scripts; with ANTHROPIC_API_KEY, OPENAI_API_KEY or \
                GEMINI_API_KEY set, by a real model"
            .to_owned();
    };
    let model = given(MODEL).unwrap_or_else(|| usual.to_owned());
    let models = provider.models.keys().map(|name| (name.clone(), model.clone())).collect();
    let key_of = Some(Secretly::Env(key.to_owned()));
    *provider = ModelProvider { kind, base_url: None, key: key_of, script: None, models };
    format!("agents are answered by {model}, with the key in {key}; what they say goes there")
}

/// The variables that hold keys of real providers.
pub(super) fn variables() -> String {
    REAL.map(|(key, ..)| key).join(",")
}

#[expect(clippy::disallowed_methods, reason = "names that providers have given, no settings")]
fn given(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}
