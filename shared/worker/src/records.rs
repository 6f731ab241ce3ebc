//! Sources of records as a catalog declares them, made into what can be asked.
//!
//! It makes them for one call and keeps none: a secret is read when it is needed.

use std::sync::Arc;

use runfleet_catalog::RecordSource as Declared;
use runfleet_domain::Name;
use runfleet_http::{Endpoint, Service, Url};
use runfleet_tools::{Documents, HttpRecords, Record, RecordSource};
use secrecy::ExposeSecret as _;

use crate::keys::{self, Places};

/// The source that a workspace declares; `None` when it cannot be used: its address is none, its secret is not there, or it wants
/// to be called with anything but a bearer token. `service` makes its calls.
pub async fn source(
    declared: &Declared,
    workspace: &Name,
    service: &Service,
    places: &Places,
) -> Option<Arc<dyn RecordSource>> {
    match declared {
        Declared::Documents { records } => {
            let records = records.iter().map(|record| Record {
                object_slug: record.object_slug.clone(),
                record_id: record.record_id.clone(),
                fields: record.fields.clone(),
                activities: record.activities.clone(),
            });
            Some(Arc::new(Documents::new(records.collect())))
        }
        Declared::Http { url, headers, .. } => {
            let mut endpoint = Endpoint::new(Url::parse(url).ok()?);
            for (name, value) in headers {
                // A source is called with a bearer token or with nothing.
                let bearer = name.eq_ignore_ascii_case("authorization");
                let text = keys::read(value, workspace, places).await.ok().filter(|_| bearer)?;
                let token = text.expose_secret().strip_prefix("Bearer ")?.to_owned();
                endpoint.bearer = Some(token.into());
            }
            Some(Arc::new(HttpRecords::new(service.clone(), endpoint)))
        }
    }
}
