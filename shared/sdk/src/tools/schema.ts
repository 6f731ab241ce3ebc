/** Schemas of tools: what a model is told of them, and arguments held to them. Messages never hold a value. */
import { isPlainObject } from "../json.js";
import { isSchema } from "../schema/builder.js";
import { checkJsonSchema } from "../schema/json-schema.js";
import { Problems, pointer } from "../schema/problems.js";
import type { JsonSchema, SchemaResult } from "../schema/types.js";

/** What a tool takes. */
export interface Parameters {
  /** The schema that the fleet and the model see. */
  readonly json: JsonSchema;
  /** Arguments with their defaults, or what does not fit. */
  parse(args: unknown): Promise<SchemaResult<unknown>>;
}

const NOTHING: JsonSchema = Object.freeze({ type: "object", properties: {} });

/** What zod 3 and 4 have in common. */
interface Zod {
  safeParseAsync(value: unknown): Promise<{ success: true; data: unknown } | { success: false; error: { issues: readonly Issue[] } }>;
}

interface Issue {
  readonly code?: string;
  readonly path: readonly (string | number | symbol)[];
  readonly expected?: unknown;
  readonly minimum?: unknown;
  readonly maximum?: unknown;
}

/**
 * Reads the schema of a tool.
 *
 * @throws Error when it is no schema, or none of an object.
 */
export async function parametersOf(schema: unknown): Promise<Parameters> {
  if (schema === null || schema === undefined) return fromJson(NOTHING);
  if (isSchema(schema)) return { json: ofObject(schema.toJSON()), parse: async (args) => schema.safeParse(args) };
  if (isZod(schema)) return { json: ofObject(await jsonOf(schema)), parse: (args) => parseZod(schema, args) };
  if (isPlainObject(schema)) return fromJson(ofObject(schema));
  throw new Error("the schema is neither one of zod nor a JSON Schema");
}

function fromJson(json: JsonSchema): Parameters {
  return {
    json,
    async parse(args) {
      const filled = withDefaults(json, args);
      return checkJsonSchema(json, filled);
    },
  };
}

/** Arguments have names: a schema without a type that has properties is meant as an object. */
function ofObject(json: JsonSchema): JsonSchema {
  const { $schema: _, ...rest } = json;
  if (rest["type"] === undefined) return { type: "object", ...rest };
  if (rest["type"] !== "object") throw new Error("the schema must describe an object");
  return rest;
}

function isZod(schema: unknown): schema is Zod & { readonly _zod?: unknown } {
  return schema !== null && typeof schema === "object" && typeof (schema as Partial<Zod>).safeParseAsync === "function";
}

/** As a model writes the arguments: what has a default may be left out. */
async function jsonOf(schema: Zod & { readonly _zod?: unknown }): Promise<JsonSchema> {
  if (schema._zod !== undefined) {
    const { toJSONSchema } = await import("zod/v4");
    return toJSONSchema(schema as never, { io: "input", unrepresentable: "any" }) as JsonSchema;
  }
  const { zodToJsonSchema } = await import("zod-to-json-schema");
  return zodToJsonSchema(schema as never, { $refStrategy: "root", pipeStrategy: "input" }) as JsonSchema;
}

async function parseZod(schema: Zod, args: unknown): Promise<SchemaResult<unknown>> {
  const result = await schema.safeParseAsync(args);
  if (result.success) return { ok: true, value: result.data };
  const problems = new Problems();
  for (const issue of result.error.issues) problems.add(issue.path.map(String).reduce(pointer, ""), messageOf(issue));
  return problems.result(undefined);
}

/** By the kind of the fault alone: texts of schemas may repeat what was sent. */
function messageOf({ code, expected, minimum, maximum }: Issue): string {
  const bound = (value: unknown): string => (typeof value === "number" || typeof value === "bigint" ? ` ${value}` : "");
  switch (code) {
    case "invalid_type":
      return typeof expected === "string" ? `must be of type ${expected}` : "has the wrong type";
    case "too_small":
      return `must be at least${bound(minimum)} in value or size`;
    case "too_big":
      return `must be at most${bound(maximum)} in value or size`;
    case "unrecognized_keys":
      return "has a property that is not known";
    case "invalid_value":
    case "invalid_enum_value":
    case "invalid_literal":
      return "is not one of the allowed values";
    case "invalid_format":
    case "invalid_string":
      return "does not have the form that is required";
    case "invalid_union":
    case "invalid_union_discriminator":
      return "is none of what is allowed";
    case "not_multiple_of":
      return "is not a multiple of what is required";
    default:
      return "does not fit the schema";
  }
}

const DEPTH_MAX = 32;

/** The value with the defaults of its schema where it has nothing. */
function withDefaults(schema: unknown, value: unknown, depth = 0): unknown {
  if (!isPlainObject(schema) || depth > DEPTH_MAX) return value;
  if (value === undefined) return "default" in schema ? structuredClone(schema["default"]) : undefined;
  if (Array.isArray(value)) return value.map((item) => withDefaults(schema["items"], item, depth + 1));
  const properties = schema["properties"];
  if (!isPlainObject(value) || !isPlainObject(properties)) return value;
  const filled: Record<string, unknown> = { ...value };
  for (const [name, property] of Object.entries(properties)) {
    const own = Object.hasOwn(value, name) ? value[name] : undefined;
    const next = withDefaults(property, own, depth + 1);
    if (next !== undefined) filled[name] = next;
  }
  return filled;
}
