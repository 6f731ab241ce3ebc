/** `s` builds schemas: of results of agents, and of inputs and outputs of actions. Mistakes are errors when it is called. */
import { ValidationError } from "../errors.js";
import { badField, frozenCopy, isPlainObject } from "../json.js";
import type { CogoverRecordId } from "../records.js";
import { checkValue } from "./check.js";
import { DESCRIPTION_CHARS_MAX, EPOCH_MS, OBJECT_SLUG, PROPERTY_NAME, RECORD_KIND } from "./names.js";
import type {
  ArrayOptions, InferSchema, JsonSchema, NumberOptions, ObjectSchema, ObjectShape, Schema, SchemaResult, StringOptions,
} from "./types.js";

class Node<T, Optional extends boolean> implements Schema<T, Optional> {
  declare readonly "~type"?: T;
  readonly isOptional: Optional;
  readonly #json: JsonSchema;

  constructor(json: JsonSchema, isOptional: Optional) {
    this.#json = frozenCopy(json);
    this.isOptional = isOptional;
    if (new.target === Node) Object.freeze(this);
  }

  optional(): Schema<T, true> {
    return new Node<T, true>(this.#json, true);
  }

  describe(description: string): Schema<T, Optional> {
    return new Node<T, Optional>(described(this.#json, description), this.isOptional);
  }

  toJSON(): JsonSchema {
    return this.#json;
  }

  toJsonSchema(): JsonSchema {
    return this.#json;
  }

  safeParse(value: unknown): SchemaResult<T> {
    return checkValue<T>(this.#json, value);
  }

  parse(value: unknown): T {
    const result = this.safeParse(value);
    if (result.ok) return result.value;
    throw new ValidationError("The value does not fit its schema.", { errors: result.problems, errorCount: result.errorCount });
  }
}

class ObjectNode<Shape extends ObjectShape, Optional extends boolean> extends Node<never, Optional> {
  readonly shape: Shape;

  constructor(shape: Shape, json: JsonSchema, isOptional: Optional) {
    super(json, isOptional);
    this.shape = Object.freeze({ ...shape });
    Object.freeze(this);
  }

  override optional(): never {
    return new ObjectNode(this.shape, this.toJSON(), true) as never;
  }

  override describe(description: string): never {
    return new ObjectNode(this.shape, described(this.toJSON(), description), this.isOptional) as never;
  }
}

/** Whether something was made by this builder. */
export function isSchema(value: unknown): value is Schema<unknown> {
  return value instanceof Node;
}

/** Whether something is an object schema of this builder. */
export function isObjectSchema(value: unknown): value is ObjectSchema<ObjectShape, boolean> {
  return value instanceof ObjectNode;
}

function described(json: JsonSchema, description: unknown): JsonSchema {
  const fits = typeof description === "string" && description.trim() !== "" && description.length <= DESCRIPTION_CHARS_MAX;
  if (!fits) throw badField("description", `must be a text of 1 to ${DESCRIPTION_CHARS_MAX} characters, not blank`);
  return { ...json, description };
}

/** Options that were given, each known and a number that `accepts` takes. */
function bounds(options: unknown, low: string, high: string, accepts: (value: number) => boolean): JsonSchema {
  if (options === undefined) return {};
  if (!isPlainObject(options)) throw badField("options", "must be an object");
  const given: Record<string, number> = {};
  for (const [name, value] of Object.entries(options)) {
    if (name !== low && name !== high) throw badField("options", `must hold nothing but ${low} and ${high}`);
    if (value === undefined) continue;
    if (typeof value !== "number" || !accepts(value)) throw badField(`options.${name}`, "is not a bound that can be kept");
    given[name] = value;
  }
  if ((given[low] ?? -Infinity) > (given[high] ?? Infinity)) throw badField("options", `must not have ${low} above ${high}`);
  return given;
}

const isLength = (value: number): boolean => Number.isSafeInteger(value) && value >= 0;

function string(options?: StringOptions): Schema<string, false> {
  return new Node<string, false>({ type: "string", ...bounds(options, "minLength", "maxLength", isLength) }, false);
}

function words<const Words extends readonly string[]>(values: Words): Schema<Words[number], false> {
  const good = Array.isArray(values) && values.length > 0 && values.every((value) => typeof value === "string");
  if (!good || new Set(values).size !== values.length) throw badField("values", "must be a list of different texts with at least one");
  return new Node<Words[number], false>({ type: "string", enum: [...values] }, false);
}

function number(options?: NumberOptions): Schema<number, false> {
  return new Node<number, false>({ type: "number", ...bounds(options, "minimum", "maximum", Number.isFinite) }, false);
}

function integer(options?: NumberOptions): Schema<number, false> {
  return new Node<number, false>({ type: "integer", ...bounds(options, "minimum", "maximum", Number.isSafeInteger) }, false);
}

function boolean(): Schema<boolean, false> {
  return new Node<boolean, false>({ type: "boolean" }, false);
}

function date(): Schema<string, false> {
  return new Node<string, false>({ type: "string", format: "date" }, false);
}

function dateTime(): Schema<number, false> {
  return new Node<number, false>({ type: "integer", format: EPOCH_MS }, false);
}

function recordId(objectSlug: string): Schema<CogoverRecordId, false> {
  if (typeof objectSlug !== "string" || !OBJECT_SLUG.test(objectSlug)) throw badField("objectSlug", "must name a kind of record");
  return new Node<CogoverRecordId, false>({ type: "string", [RECORD_KIND]: objectSlug }, false);
}

function array<Item extends Schema<unknown, false>>(items: Item, options?: ArrayOptions): Schema<readonly InferSchema<Item>[], false> {
  if (!isSchema(items) || items.isOptional) throw badField("items", "must be a schema that is not optional");
  const bound = bounds(options, "minItems", "maxItems", isLength);
  if ("minItems" in bound) throw badField("options", "must hold nothing but maxItems");
  return new Node<readonly InferSchema<Item>[], false>({ type: "array", items: items.toJSON(), ...bound }, false);
}

function object<const Shape extends ObjectShape>(shape: Shape): ObjectSchema<Shape, false> {
  if (!isPlainObject(shape)) throw badField("shape", "must be an object of schemas");
  const entries = Object.entries(shape);
  for (const [name, schema] of entries) {
    if (!PROPERTY_NAME.test(name)) throw badField("shape", "has a name that is not a letter followed by at most 63 letters, digits and `_`");
    if (!isSchema(schema)) throw badField(`shape.${name}`, "must be a schema");
  }
  const json = {
    type: "object",
    properties: Object.fromEntries(entries.map(([name, schema]) => [name, schema.toJSON()])),
    required: entries.filter(([, schema]) => !schema.isOptional).map(([name]) => name),
    additionalProperties: false,
  };
  return new ObjectNode(shape, json, false) as unknown as ObjectSchema<Shape, false>;
}

/** Builds schemas. */
export const s = Object.freeze({
  /** A text of at most 10,000 characters unless bounds are given. */
  string,
  /** One of some words. */
  enum: words,
  /** A finite number. */
  number,
  /** A whole number that every program can hold. */
  integer,
  /** True or false. */
  boolean,
  /** A day of the calendar, `YYYY-MM-DD`. */
  date,
  /** A time in Unix milliseconds. */
  dateTime,
  /** The id of a record of a kind. */
  recordId,
  /** A list of at most 1,000 items unless a bound is given. */
  array,
  /** An object with these properties and no others. */
  object,
});
