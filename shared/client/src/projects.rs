//! Calls that are about a project itself: its versions, and code of it that is called.

use runfleet_contracts::Operation;
use runfleet_contracts::host_call::CallProject;
use runfleet_contracts::projects::{
    ActivateVersion, HostSeen, OpenSession, ProjectShown, RegisterVersion, SessionOpened,
    ShowProject, VersionActivated, VersionRegistered,
};
use serde_json::Value;

use crate::{Client, Error, written};

pub use runfleet_contracts::host_call::CallKind;

/// Registers and activates versions, and calls code of the project; see [`Client::projects`].
#[derive(Clone, Copy)]
pub struct Projects<'a>(pub(crate) &'a Client);

impl Projects<'_> {
    /// Registers what a version declares. Needs a project key. The same again changes nothing.
    pub async fn register(self, declared: &RegisterVersion) -> Result<VersionRegistered, Error> {
        let payload = written(declared)?;
        RegisterVersion::parse(&payload)?;
        self.0.call(Operation::ProjectsRegister, payload).await
    }

    /// Makes a registered version the active one. Needs a project key.
    pub async fn activate(self, version: impl Into<String>) -> Result<VersionActivated, Error> {
        let payload = written(&ActivateVersion { version: version.into() })?;
        ActivateVersion::parse(&payload)?;
        self.0.call(Operation::ProjectsActivate, payload).await
    }

    /// Which versions there are, which one is active, and which hosts were seen. With `host` as the sign of life of one, which
    /// needs a project key.
    pub async fn show(self, host: Option<HostSeen>) -> Result<ProjectShown, Error> {
        let payload = written(&ShowProject { host })?;
        ShowProject::parse(&payload)?;
        self.0.call(Operation::ProjectsShow, payload).await
    }

    /// Opens a session of local development for the user of a project key.
    pub async fn session(self, read_only: bool) -> Result<SessionOpened, Error> {
        self.0.call(Operation::ProjectsSession, written(&OpenSession { read_only })?).await
    }

    /// Calls a script, route, trigger or action of the active version, and gives what it returns. `run_id` is for actions: two
    /// calls with one are one. The deadline of the client should be longer than what is called may take.
    pub async fn invoke(
        self,
        kind: CallKind,
        name: impl Into<String>,
        input: &Value,
        run_id: Option<String>,
    ) -> Result<Value, Error> {
        let input = Some(written(input)?);
        let payload = written(&CallProject { kind, name: name.into(), input, run_id })?;
        CallProject::parse(&payload)?;
        self.0.call(Operation::ProjectsCall, payload).await
    }
}
