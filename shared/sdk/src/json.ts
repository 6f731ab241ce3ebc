/** What JSON can carry unchanged, and how large it is. Looks at values and never repeats one. */
import { ValidationError } from "./errors.js";

/** Nested lists and objects of a value that a caller sends. */
export const JSON_DEPTH_MAX = 64;

/** An object with nothing but own properties, as JSON has it. */
export function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return false;
  const prototype = Object.getPrototypeOf(value) as object | null;
  return prototype === null || prototype === Object.prototype || isForeignObject(prototype);
}

/** `Object.prototype` of another realm: a handler may run in a context of its own. */
function isForeignObject(prototype: object): boolean {
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, "isPrototypeOf");
}

/** Characters as people count them, not halves of them. */
export function characters(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** An argument that can never work. */
export function badField(field: string, problem: string, details: Readonly<Record<string, unknown>> = {}): ValidationError {
  return new ValidationError(`\`${field}\` ${problem}.`, { field, problem, ...details });
}

/**
 * The JSON text of a value that JSON carries unchanged, of at most `bytesMax` bytes of UTF-8. A property that is undefined is left
 * out, as JSON does it; anything else that JSON would change is an error: NaN, functions, dates, maps and other instances.
 */
export function jsonText(field: string, value: unknown, bytesMax: number): string {
  const problem = changedBy(value, 0, new Set());
  if (problem !== undefined) throw badField(field, problem);
  const json = JSON.stringify(value);
  const size = Buffer.byteLength(json);
  if (size > bytesMax) {
    const sizes = { limit: bytesMax, size };
    throw badField(field, `is too large: ${size} bytes, at most ${bytesMax} are allowed`, sizes);
  }
  return json;
}

/** Why JSON would change a value; undefined when it would not. */
function changedBy(value: unknown, depth: number, around: Set<object>): string | undefined {
  switch (typeof value) {
    case "string":
    case "boolean":
      return undefined;
    case "number":
      return Number.isFinite(value) ? undefined : "holds a number that JSON cannot carry";
    case "object":
      return value === null ? undefined : nested(value, depth, around);
    default:
      return "holds a value that JSON cannot carry";
  }
}

function nested(value: object, depth: number, around: Set<object>): string | undefined {
  if (depth >= JSON_DEPTH_MAX) return "is nested too deeply";
  if (around.has(value)) return "holds itself";
  if (!Array.isArray(value) && !isPlainObject(value)) return "holds an instance of a class, which JSON would change";
  around.add(value);
  const inner: readonly unknown[] = Array.isArray(value)
    ? Array.from(value as readonly unknown[])
    : Object.values(value).filter((entry) => entry !== undefined);
  for (const entry of inner) {
    const problem = changedBy(entry, depth + 1, around);
    if (problem !== undefined) return problem;
  }
  around.delete(value);
  return undefined;
}

/** Copies what JSON carries and freezes all of it. */
export function frozenCopy<T>(value: T): T {
  return freeze(structuredClone(value));
}

function freeze<T>(value: T): T {
  if (value === null || typeof value !== "object") return value;
  for (const entry of Object.values(value)) freeze(entry);
  return Object.freeze(value);
}
