/** Bounds of the schema subset, in one place. The fleet holds results of agents to the same numbers. */

/** Name of a property. */
export const PROPERTY_NAME = /^[A-Za-z][A-Za-z0-9_]{0,63}$/;
/** Name of an object of the workspace. */
export const OBJECT_SLUG = /^[A-Za-z_][A-Za-z0-9_]{0,354}$/;
/** Characters of a string without a bound of its own. */
export const STRING_CHARS_MAX = 10_000;
/** Items of a list without a bound of its own. */
export const ARRAY_ITEMS_MAX = 1_000;
/** Characters of the id of a record. */
export const RECORD_ID_CHARS_MAX = 128;
/** Characters of a description. */
export const DESCRIPTION_CHARS_MAX = 2_000;
/** Problems that are listed; the rest is counted. */
export const PROBLEMS_MAX = 20;
/** Nested lists and objects that a schema of a result or an action may describe. */
export const SCHEMA_DEPTH_MAX = 8;
/** Bytes of the JSON text of such a schema. */
export const SCHEMA_BYTES_MAX = 16_384;
/** Marks a string that is the id of a record; the value is the kind of record. */
export const RECORD_KIND = "x-cogover-object";
/** Marks a whole number that is a time in Unix milliseconds. */
export const EPOCH_MS = "x-epoch-ms";
