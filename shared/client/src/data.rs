//! Calls that read and write records of the workspace.

use runfleet_contracts::Operation;
use runfleet_contracts::data::{
    CreateRecord, GetRecord, QueryRecords, RecordFound, RecordShown, RecordsFound, UpdateRecord,
};
use serde::Serialize;

use crate::{Client, Error, written};

/// Reads and writes records; see [`Client::data`].
#[derive(Clone, Copy)]
pub struct Data<'a>(pub(crate) &'a Client);

impl Data<'_> {
    /// A record; none when there is none that the caller may see.
    pub async fn get(self, object: &str, record: &str) -> Result<Option<RecordShown>, Error> {
        let options = GetRecord { object_slug: object.into(), record_id: record.into() };
        let payload = written(&options)?;
        GetRecord::parse(&payload)?;
        let found: RecordFound = self.0.call(Operation::DataGet, payload).await?;
        Ok(found.record)
    }

    /// Records of one kind.
    pub async fn query(self, query: &QueryRecords) -> Result<Vec<RecordShown>, Error> {
        let payload = written(query)?;
        QueryRecords::parse(&payload)?;
        let found: RecordsFound = self.0.call(Operation::DataQuery, payload).await?;
        Ok(found.records)
    }

    /// Changes fields of a record; those that are not named stay as they are.
    pub async fn update(
        self,
        object: &str,
        record: &str,
        fields: &impl Serialize,
    ) -> Result<Option<RecordShown>, Error> {
        let (object_slug, record_id) = (object.to_owned(), record.to_owned());
        let payload = written(&UpdateRecord { object_slug, record_id, fields: written(fields)? })?;
        UpdateRecord::parse(&payload)?;
        let found: RecordFound = self.0.call(Operation::DataUpdate, payload).await?;
        Ok(found.record)
    }

    /// Makes a record.
    pub async fn create(
        self,
        object: &str,
        fields: &impl Serialize,
    ) -> Result<Option<RecordShown>, Error> {
        let payload =
            written(&CreateRecord { object_slug: object.to_owned(), fields: written(fields)? })?;
        CreateRecord::parse(&payload)?;
        let found: RecordFound = self.0.call(Operation::DataCreate, payload).await?;
        Ok(found.record)
    }
}
