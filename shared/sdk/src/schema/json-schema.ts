/**
 * Holds values to JSON Schemas that others have written: arguments to those of the contract, arguments of tools to those of the
 * project. Knows the words that such schemas use; the fleet, which knows all of them, has the last word.
 */
import { isDeepStrictEqual } from "node:util";
import { characters, isPlainObject } from "../json.js";
import { Problems, pointer } from "./problems.js";
import type { JsonSchema, SchemaResult } from "./types.js";

/** References and groups inside each other; a schema that refers to itself without end stops here. */
const DEPTH_MAX = 64;

/** Whether a value fits. Problems never hold a value. */
export function checkJsonSchema<T = unknown>(schema: JsonSchema, value: unknown): SchemaResult<T> {
  const problems = new Problems();
  new Check(schema, problems).node(schema, value, "", 0);
  return problems.result(value as T);
}

class Check {
  readonly #root: JsonSchema;
  readonly #problems: Problems;

  constructor(root: JsonSchema, problems: Problems) {
    this.#root = root;
    this.#problems = problems;
  }

  node(schema: unknown, value: unknown, path: string, depth: number): void {
    if (schema === false) return this.#problems.add(path, "is not allowed");
    if (!isPlainObject(schema)) return;
    if (depth > DEPTH_MAX) return this.#problems.add(path, "is nested too deeply");
    this.#reference(schema, value, path, depth);
    if (!this.#type(schema, value, path)) return;
    this.#words(schema, value, path);
    this.#groups(schema, value, path, depth);
    if (typeof value === "string") this.#string(schema, value, path);
    if (typeof value === "number") this.#number(schema, value, path);
    if (Array.isArray(value)) this.#array(schema, value, path, depth);
    if (isPlainObject(value)) this.#object(schema, value, path, depth);
  }

  #reference(schema: JsonSchema, value: unknown, path: string, depth: number): void {
    const reference = schema["$ref"];
    if (typeof reference !== "string" || !reference.startsWith("#")) return;
    const steps = reference.slice(1).split("/").slice(1);
    const target = steps.reduce<unknown>((at, step) => {
      const name = decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~");
      return isPlainObject(at) && Object.hasOwn(at, name) ? at[name] : undefined;
    }, this.#root);
    this.node(target, value, path, depth + 1);
  }

  #type(schema: JsonSchema, value: unknown, path: string): boolean {
    const types = schema["type"];
    if (types === undefined) return true;
    const allowed: readonly unknown[] = Array.isArray(types) ? types : [types];
    if (allowed.some((type) => isOf(type, value))) return true;
    this.#problems.add(path, `must be of type ${allowed.join(" or ")}`);
    return false;
  }

  #words(schema: JsonSchema, value: unknown, path: string): void {
    const words = schema["enum"];
    const outside = Array.isArray(words) && !words.some((word) => isDeepStrictEqual(word, value));
    const other = "const" in schema && !isDeepStrictEqual(schema["const"], value);
    if (outside || other) this.#problems.add(path, "is not one of the allowed values");
  }

  #groups(schema: JsonSchema, value: unknown, path: string, depth: number): void {
    const fits = (inner: unknown): boolean => {
      const problems = new Problems();
      new Check(this.#root, problems).node(inner, value, path, depth + 1);
      return problems.count === 0;
    };
    for (const inner of listOf(schema["allOf"])) this.node(inner, value, path, depth + 1);
    const any = listOf(schema["anyOf"]);
    if (any.length > 0 && !any.some(fits)) this.#problems.add(path, "is none of what is allowed");
    const one = listOf(schema["oneOf"]);
    if (one.length > 0 && one.filter(fits).length !== 1) this.#problems.add(path, "is not one of the allowed values");
    if (isPlainObject(schema["not"]) && fits(schema["not"])) this.#problems.add(path, "is not allowed");
  }

  #string(schema: JsonSchema, value: string, path: string): void {
    const size = characters(value);
    const least = bound(schema, "minLength");
    const most = bound(schema, "maxLength");
    if (least !== undefined && size < least) this.#problems.add(path, least === 1 ? "must not be empty" : `must have at least ${least} characters`);
    if (most !== undefined && size > most) this.#problems.add(path, `is too large: ${size} characters, at most ${most} are allowed`);
    const pattern = patternOf(schema["pattern"]);
    if (pattern !== undefined && !pattern.test(value)) this.#problems.add(path, "does not have the form that is required");
  }

  #number(schema: JsonSchema, value: number, path: string): void {
    const tests: readonly [string, (limit: number) => boolean, string][] = [
      ["minimum", (limit) => value >= limit, "must be at least"],
      ["maximum", (limit) => value <= limit, "must be at most"],
      ["exclusiveMinimum", (limit) => value > limit, "must be more than"],
      ["exclusiveMaximum", (limit) => value < limit, "must be less than"],
    ];
    for (const [word, fits, text] of tests) {
      const limit = bound(schema, word);
      if (limit !== undefined && !fits(limit)) this.#problems.add(path, `${text} ${limit}`);
    }
  }

  #array(schema: JsonSchema, value: readonly unknown[], path: string, depth: number): void {
    const least = bound(schema, "minItems");
    const most = bound(schema, "maxItems");
    if (least !== undefined && value.length < least) this.#problems.add(path, `must have at least ${least} items`);
    if (most !== undefined && value.length > most) return this.#problems.add(path, `must have at most ${most} items`);
    if (schema["uniqueItems"] === true && value.some((item, place) => value.slice(0, place).some((other) => isDeepStrictEqual(item, other)))) {
      this.#problems.add(path, "must not hold the same twice");
    }
    const first = listOf(schema["prefixItems"]);
    for (const [place, item] of value.entries()) this.node(first[place] ?? schema["items"], item, pointer(path, place), depth + 1);
  }

  #object(schema: JsonSchema, value: Readonly<Record<string, unknown>>, path: string, depth: number): void {
    const properties = isPlainObject(schema["properties"]) ? schema["properties"] : {};
    for (const name of listOf(schema["required"])) {
      if (typeof name === "string" && !(Object.hasOwn(value, name) && value[name] !== undefined)) this.#problems.add(pointer(path, name), "is required");
    }
    for (const [name, inner] of Object.entries(value)) {
      if (inner === undefined) continue;
      if (Object.hasOwn(properties, name)) this.node(properties[name], inner, pointer(path, name), depth + 1);
      else this.#extra(schema["additionalProperties"], inner, path, depth);
    }
  }

  /** The name of a property that nobody knows is something that a caller sent, and is not told. */
  #extra(rule: unknown, value: unknown, path: string, depth: number): void {
    if (rule === false) this.#problems.add(path, "has a property that is not known");
    else if (isPlainObject(rule)) this.node(rule, value, path, depth + 1);
  }
}

function isOf(type: unknown, value: unknown): boolean {
  switch (type) {
    case "string":
    case "boolean":
      return typeof value === type;
    case "number":
      return typeof value === "number" && Number.isFinite(value);
    case "integer":
      return Number.isInteger(value);
    case "null":
      return value === null;
    case "array":
      return Array.isArray(value);
    case "object":
      return isPlainObject(value);
    default:
      return true;
  }
}

function bound(schema: JsonSchema, word: string): number | undefined {
  const value = schema[word];
  return typeof value === "number" ? value : undefined;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

const PATTERNS_KEPT_MAX = 500;
const patterns = new Map<string, RegExp | undefined>();

/** Expressions that were written for other engines, and do not compile here, are left to the fleet. */
function patternOf(pattern: unknown): RegExp | undefined {
  if (typeof pattern !== "string") return undefined;
  if (patterns.has(pattern)) return patterns.get(pattern);
  if (patterns.size >= PATTERNS_KEPT_MAX) patterns.clear();
  patterns.set(pattern, compiled(pattern));
  return patterns.get(pattern);
}

function compiled(pattern: string): RegExp | undefined {
  try {
    return new RegExp(pattern, "u");
  } catch {
    return undefined;
  }
}
