//! From the provider of an agent to the model that is asked. Keys are read when a call is made, and kept nowhere.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use runfleet_catalog::{ModelProvider, ProviderKind, Secretly};
use runfleet_http::{Client, Config, Service, Url};
use runfleet_model::{ChatModel, HttpModel, Protocol, ProviderSettings, ScriptedModel, Timeouts};
use runfleet_worker::Fleet;
use secrecy::SecretString;

use crate::config::CallConfig;

/// Longest model call, whatever an agent says.
pub(crate) const CALL_MAX: Duration = Duration::from_mins(5);

/// Largest file with a key, in bytes.
const KEY_BYTES_MAX: u64 = 8_192;

/// Scripts kept; when full, all are dropped and read again when needed.
const SCRIPTS_MAX: usize = 100;

/// The model cannot be asked: provider, key or script is not there. Where to look is in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Missing;

type Scripts = HashMap<PathBuf, (Option<SystemTime>, Arc<ScriptedModel>)>;

/// All models.
pub(crate) struct Models {
    service: Service,
    scripts_dir: Option<PathBuf>,
    scripts: Mutex<Scripts>,
}

impl Models {
    pub(crate) fn new(fleet: &Fleet, config: &CallConfig) -> anyhow::Result<Self> {
        let http = Config { allow: config.model_allow.clone(), ..Config::default() };
        let client = Client::new(http, &fleet.process.registry).context("preparing model calls")?;
        // Without a breaker: runs wait by themselves, and one provider says nothing about the others.
        let service = client.service("model", None);
        Ok(Self { service, scripts_dir: config.scripts.clone(), scripts: Mutex::default() })
    }

    /// The model behind a provider.
    pub(crate) async fn of(
        &self,
        provider: &ModelProvider,
    ) -> Result<Arc<dyn ChatModel>, Missing> {
        let protocol = match provider.kind {
            ProviderKind::Scripted => return Ok(self.script(provider).await?),
            ProviderKind::Openai => Protocol::OpenaiCompatible,
            ProviderKind::Anthropic => Protocol::Anthropic,
            ProviderKind::Gemini => Protocol::Gemini,
            ProviderKind::Ollama => Protocol::Ollama,
        };
        let base = provider.base_url.as_deref().unwrap_or_else(|| usual(provider.kind));
        let base = Url::parse(base).map_err(|_| missing("the address of a provider is wrong"))?;
        let mut settings = ProviderSettings::new(protocol, base);
        settings.timeouts = Timeouts { total: CALL_MAX, ..Timeouts::default() };
        settings.key = match &provider.key {
            None => None,
            Some(place) => Some(key(place).await?),
        };
        Ok(Arc::new(HttpModel::new(self.service.clone(), settings)))
    }

    /// A script, read again when its file has changed.
    async fn script(&self, provider: &ModelProvider) -> Result<Arc<ScriptedModel>, Missing> {
        let Some(dir) = &self.scripts_dir else {
            return Err(missing("scripted providers are switched off: RUNFLEET_MODEL_SCRIPTS_DIR is not set"));
        };
        let file = Path::new(provider.script.as_deref().unwrap_or_default());
        if !file.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
            return Err(missing("the file of a script has to be inside its folder"));
        }
        let file = dir.join(file);
        let changed = tokio::fs::metadata(&file).await.and_then(|data| data.modified()).ok();
        let known = self.scripts.lock().unwrap_or_else(PoisonError::into_inner).get(&file).cloned();
        if let Some((when, script)) = known
            && changed.is_some()
            && when == changed
        {
            return Ok(script);
        }
        let path = file.clone();
        let read = tokio::task::spawn_blocking(move || ScriptedModel::from_file(&path)).await;
        let script = match read {
            Ok(Ok(script)) => Arc::new(script),
            Ok(Err(error)) => {
                tracing::error!(%error, "a script cannot be played");
                return Err(Missing);
            }
            Err(_) => return Err(Missing),
        };
        let mut scripts = self.scripts.lock().unwrap_or_else(PoisonError::into_inner);
        if scripts.len() >= SCRIPTS_MAX {
            scripts.clear();
        }
        scripts.insert(file, (changed, Arc::clone(&script)));
        Ok(script)
    }
}

/// Where a provider is that does not say.
fn usual(kind: ProviderKind) -> &'static str {
    match kind {
        ProviderKind::Openai => "https://api.openai.com/v1",
        ProviderKind::Anthropic => "https://api.anthropic.com",
        ProviderKind::Gemini => "https://generativelanguage.googleapis.com/v1beta",
        ProviderKind::Ollama | ProviderKind::Scripted => "http://127.0.0.1:11434",
    }
}

fn missing(why: &'static str) -> Missing {
    tracing::error!(why, "a model cannot be asked");
    Missing
}

/// The key of a provider, without the line end behind it.
async fn key(place: &Secretly) -> Result<SecretString, Missing> {
    let text = match place {
        Secretly::Text(text) => text.clone(),
        Secretly::Env(name) if is_own(name) => {
            return Err(missing("the key of a provider may not be a setting of the fleet"));
        }
        Secretly::Env(name) => {
            #[expect(
                clippy::disallowed_methods,
                reason = "not a setting: a document of the catalog names it"
            )]
            let value = std::env::var(name);
            value.map_err(|_| missing("the environment variable with the key of a provider is not set"))?
        }
        Secretly::File(file) => {
            let size = tokio::fs::metadata(file).await.map_or(u64::MAX, |data| data.len());
            if size > KEY_BYTES_MAX {
                return Err(missing("the file with the key of a provider is not there, or too large"));
            }
            let text = tokio::fs::read_to_string(file).await;
            text.map_err(|_| missing("the file with the key of a provider cannot be read"))?
        }
    };
    let text = text.trim_end_matches(['\r', '\n']);
    if text.is_empty() {
        return Err(missing("the key of a provider is empty"));
    }
    Ok(SecretString::from(text))
}

/// Whether a variable is a setting of the fleet, perhaps with a password: no document may send it anywhere.
fn is_own(name: &str) -> bool {
    name.to_ascii_uppercase().starts_with("RUNFLEET_")
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    #[tokio::test]
    async fn a_key_comes_from_a_file_and_never_from_a_setting_of_the_fleet() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        std::fs::write(&file, "s3cret\n").unwrap();
        let place = Secretly::File(file.display().to_string());
        assert_eq!(key(&place).await.unwrap().expose_secret(), "s3cret");
        for place in [
            Secretly::File(dir.path().join("none").display().to_string()),
            Secretly::Env("RUNFLEET_REDIS_URL".to_owned()),
            Secretly::Env("NOBODY_HAS_SET_THIS".to_owned()),
            Secretly::Text(String::new()),
        ] {
            assert!(key(&place).await.is_err(), "{place:?}");
        }
    }
}
