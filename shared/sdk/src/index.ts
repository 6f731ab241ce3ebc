/** What project code imports. */
export * from "./errors.js";
export * from "./records.js";
export * from "./runs.js";
export { s } from "./schema/builder.js";
export type {
  ArrayOptions, InferSchema, InferShape, JsonSchema, NumberOptions, ObjectSchema, ObjectShape, Schema, SchemaProblem, SchemaResult,
  StringOptions,
} from "./schema/types.js";
