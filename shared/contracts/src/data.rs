//! Records of a workspace, as code of a project reads and writes them.
//!
//! Checks what needs nothing but the request. Where records come from, and who may see them, is decided elsewhere.

use runfleet_domain::limits::{
    EVENT_VARIABLES_BYTES_MAX, OBJECT_SLUG_CHARS_MAX, RECORD_ID_CHARS_MAX,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::error::ErrorBody;
use crate::json::read;
use crate::request::{object, sized};
use crate::strict::given;

/// Fields of a record that a caller writes, in bytes of the JSON text.
const FIELDS_BYTES_MAX: usize = EVENT_VARIABLES_BYTES_MAX;

/// Conditions of one question, in bytes of the JSON text.
const FILTER_BYTES_MAX: usize = 8_192;

/// Conditions of one question.
const FILTER_MAX: usize = 20;

/// Ids of one question.
const IDS_MAX: usize = 20;

/// A text that is looked for, in characters.
const SEARCH_CHARS_MAX: usize = 1_000;

/// Most records of one answer.
pub const RECORDS_MAX: u32 = 50;

/// Options of `data.get`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetRecord {
    /// The kind of record.
    #[schemars(length(min = 1, max = 355))]
    pub object_slug: String,
    /// Which one.
    #[schemars(length(min = 1, max = 128))]
    pub record_id: String,
}

/// Options of `data.query`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct QueryRecords {
    /// The kind of record.
    #[schemars(length(min = 1, max = 355))]
    pub object_slug: String,
    /// Those of these ids, at most 20; any unless it is given.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>", length(max = 20))]
    pub record_ids: Option<Vec<String>>,
    /// Those in which this text is found: at most 1,000 characters.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 1_000))]
    pub search: Option<String>,
    /// Those whose fields have these values: at most 20.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub filter: Option<Box<RawValue>>,
    /// How many at most: 1 to 50; 10 unless it is given.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32", range(min = 1, max = 50))]
    pub limit: Option<u32>,
}

/// Options of `data.update`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UpdateRecord {
    /// The kind of record.
    #[schemars(length(min = 1, max = 355))]
    pub object_slug: String,
    /// Which one.
    #[schemars(length(min = 1, max = 128))]
    pub record_id: String,
    /// The new values of its fields: an object of at most 65,536 bytes. Fields that are not named stay as they are.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub fields: Box<RawValue>,
}

/// Options of `data.create`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateRecord {
    /// The kind of record.
    #[schemars(length(min = 1, max = 355))]
    pub object_slug: String,
    /// Its fields: an object of at most 65,536 bytes.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub fields: Box<RawValue>,
}

/// A record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordShown {
    /// The kind of record.
    pub object_slug: String,
    /// Which one.
    pub record_id: String,
    /// Its fields.
    pub fields: Map<String, Value>,
}

/// Answer to `data.get`, `data.update` and `data.create`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordFound {
    /// The record; null when there is none that the caller may see.
    pub record: Option<RecordShown>,
}

/// Answer to `data.query`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordsFound {
    /// The records.
    pub records: Vec<RecordShown>,
}

fn slug(text: &str) -> Result<(), ErrorBody> {
    sized("objectSlug", text, OBJECT_SLUG_CHARS_MAX)
}

fn id(text: &str) -> Result<(), ErrorBody> {
    sized("recordId", text, RECORD_ID_CHARS_MAX)
}

fn fields(json: &RawValue) -> Result<Map<String, Value>, ErrorBody> {
    object("fields", json, FIELDS_BYTES_MAX)?;
    serde_json::from_str(json.get()).map_err(|_| ErrorBody::field("fields", "is not valid JSON"))
}

impl GetRecord {
    /// Reads and checks the options.
    pub fn parse(payload: &RawValue) -> Result<Self, ErrorBody> {
        let options: Self = read(payload.get().as_bytes())?;
        slug(&options.object_slug)?;
        id(&options.record_id)?;
        Ok(options)
    }
}

impl QueryRecords {
    /// Reads and checks the options; gives the conditions as well.
    pub fn parse(payload: &RawValue) -> Result<(Self, Map<String, Value>), ErrorBody> {
        let options: Self = read(payload.get().as_bytes())?;
        slug(&options.object_slug)?;
        if let Some(ids) = &options.record_ids {
            if ids.len() > IDS_MAX {
                return Err(ErrorBody::too_large("recordIds", "entries", IDS_MAX, ids.len()));
            }
            for (index, id) in ids.iter().enumerate() {
                sized(&format!("recordIds[{index}]"), id, RECORD_ID_CHARS_MAX)?;
            }
        }
        if let Some(search) = &options.search {
            sized("search", search, SEARCH_CHARS_MAX)?;
        }
        if options.limit.is_some_and(|limit| !(1..=RECORDS_MAX).contains(&limit)) {
            return Err(ErrorBody::field("limit", "must be from 1 to 50"));
        }
        let filter = match &options.filter {
            None => Map::new(),
            Some(json) => {
                object("filter", json, FILTER_BYTES_MAX)?;
                serde_json::from_str(json.get())
                    .map_err(|_| ErrorBody::field("filter", "is not valid JSON"))?
            }
        };
        if filter.len() > FILTER_MAX {
            return Err(ErrorBody::too_large("filter", "entries", FILTER_MAX, filter.len()));
        }
        Ok((options, filter))
    }
}

impl UpdateRecord {
    /// Reads and checks the options; gives the fields as well.
    pub fn parse(payload: &RawValue) -> Result<(Self, Map<String, Value>), ErrorBody> {
        let options: Self = read(payload.get().as_bytes())?;
        slug(&options.object_slug)?;
        id(&options.record_id)?;
        let fields = fields(&options.fields)?;
        Ok((options, fields))
    }
}

impl CreateRecord {
    /// Reads and checks the options; gives the fields as well.
    pub fn parse(payload: &RawValue) -> Result<(Self, Map<String, Value>), ErrorBody> {
        let options: Self = read(payload.get().as_bytes())?;
        slug(&options.object_slug)?;
        let fields = fields(&options.fields)?;
        Ok((options, fields))
    }
}
