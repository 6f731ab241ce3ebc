//! From the provider of an agent to the model that is asked. Keys are read when a call is made, and kept nowhere.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use prometheus::Registry;
use runfleet_catalog::{ModelProvider, ProviderKind};
use runfleet_domain::Name;
use runfleet_http::{Client, Config, Service, Url};
use runfleet_model::{ChatModel, HttpModel, Protocol, ProviderSettings, ScriptedModel, Timeouts};
use runfleet_worker::keys::{self, NoSecret, Places};

use crate::config::CallConfig;

/// Longest model call, whatever an agent says.
pub(crate) const CALL_MAX: Duration = Duration::from_mins(5);

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
    /// Where the keys of providers may be.
    places: Places,
    scripts: Mutex<Scripts>,
}

impl Models {
    /// A client of its own: what may be called as a model may not be called by a tool. It is measured by its callers.
    pub(crate) fn new(config: &CallConfig) -> anyhow::Result<Self> {
        let http = Config { allow: config.model_allow.clone(), ..Config::default() };
        let client = Client::new(http, &Registry::new()).context("preparing model calls")?;
        // Without a breaker: runs wait by themselves, and one provider says nothing about the others.
        let service = client.service("model", None);
        let (scripts_dir, places) = (config.scripts.clone(), config.places());
        Ok(Self { service, scripts_dir, places, scripts: Mutex::default() })
    }

    /// The model behind a provider.
    pub(crate) async fn of(
        &self,
        workspace: &Name,
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
            Some(place) => Some(
                keys::read(place, workspace, &self.places)
                    .await
                    .map_err(|NoSecret(why)| missing(why))?,
            ),
        };
        Ok(Arc::new(HttpModel::new(self.service.clone(), settings)))
    }

    /// A script, read again when its file has changed.
    async fn script(&self, provider: &ModelProvider) -> Result<Arc<ScriptedModel>, Missing> {
        let Some(dir) = &self.scripts_dir else {
            return Err(missing(
                "scripted providers are switched off: RUNFLEET_MODEL_SCRIPTS_DIR is not set",
            ));
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
