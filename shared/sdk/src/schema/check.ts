/** Holds values to schemas of the builder. Works on the JSON Schema alone, so that both say the same. */
import { characters, isPlainObject } from "../json.js";
import { ARRAY_ITEMS_MAX, EPOCH_MS, PROPERTY_NAME, RECORD_ID_CHARS_MAX, RECORD_KIND, STRING_CHARS_MAX } from "./names.js";
import { Problems, pointer } from "./problems.js";
import type { JsonSchema, SchemaResult } from "./types.js";

/** The value without its empty optional properties, or what does not fit. */
export function checkValue<T>(schema: JsonSchema, value: unknown): SchemaResult<T> {
  const problems = new Problems();
  const checked = node(schema, value, "", problems);
  return problems.result(checked as T);
}

function node(schema: JsonSchema, value: unknown, path: string, problems: Problems): unknown {
  if (value === null || value === undefined) {
    problems.add(path, "must not be empty");
    return value;
  }
  switch (schema["type"]) {
    case "string":
      string(schema, value, path, problems);
      return value;
    case "number":
    case "integer":
      number(schema, value, path, problems);
      return value;
    case "boolean":
      if (typeof value !== "boolean") problems.add(path, "must be true or false");
      return value;
    case "array":
      return array(schema, value, path, problems);
    default:
      return object(schema, value, path, problems);
  }
}

function string(schema: JsonSchema, value: unknown, path: string, problems: Problems): void {
  if (typeof value !== "string") return problems.add(path, "must be a text");
  const words = schema["enum"] as readonly string[] | undefined;
  if (words !== undefined) {
    if (!words.includes(value)) problems.add(path, "must be one of the allowed words");
  } else if (schema["format"] === "date") {
    if (!isCalendarDay(value)) problems.add(path, "must be a day of the calendar, written YYYY-MM-DD");
  } else if (schema[RECORD_KIND] !== undefined) {
    const size = characters(value);
    if (size > RECORD_ID_CHARS_MAX || value.trim() === "") {
      problems.add(path, `must be the id of a record: 1 to ${RECORD_ID_CHARS_MAX} characters, not blank`);
    }
  } else {
    length(schema, characters(value), path, problems);
  }
}

function length(schema: JsonSchema, size: number, path: string, problems: Problems): void {
  const least = bound(schema, "minLength") ?? 0;
  const most = bound(schema, "maxLength") ?? STRING_CHARS_MAX;
  if (size < least) problems.add(path, `must have at least ${least} characters`);
  if (size > most) problems.add(path, `must have at most ${most} characters`);
}

function number(schema: JsonSchema, value: unknown, path: string, problems: Problems): void {
  if (schema["type"] === "integer" && !Number.isSafeInteger(value)) {
    const time = schema["format"] === EPOCH_MS;
    return problems.add(path, time ? "must be a time in Unix milliseconds" : "must be a whole number");
  }
  if (typeof value !== "number" || !Number.isFinite(value)) return problems.add(path, "must be a number");
  const least = bound(schema, "minimum") ?? -Infinity;
  const most = bound(schema, "maximum") ?? Infinity;
  if (value < least) problems.add(path, `must be at least ${least}`);
  if (value > most) problems.add(path, `must be at most ${most}`);
}

function array(schema: JsonSchema, value: unknown, path: string, problems: Problems): unknown {
  if (!Array.isArray(value)) {
    problems.add(path, "must be a list");
    return value;
  }
  const most = bound(schema, "maxItems") ?? ARRAY_ITEMS_MAX;
  if (value.length > most) {
    problems.add(path, `must have at most ${most} items`);
    return value;
  }
  const items = schema["items"] as JsonSchema;
  return value.map((item: unknown, place) => node(items, item, pointer(path, place), problems));
}

function object(schema: JsonSchema, value: unknown, path: string, problems: Problems): unknown {
  if (!isPlainObject(value)) {
    problems.add(path, "must be an object");
    return value;
  }
  const properties = schema["properties"] as Readonly<Record<string, JsonSchema>>;
  const required = new Set(schema["required"] as readonly string[] | undefined);
  for (const name of Object.keys(value)) {
    if (Object.hasOwn(properties, name) || value[name] === undefined) continue;
    // A name is something that a caller chose: it is told only when it looks like one.
    problems.add(PROPERTY_NAME.test(name) ? pointer(path, name) : path, "is not a property that is known");
  }
  const checked: Record<string, unknown> = {};
  for (const [name, property] of Object.entries(properties)) {
    const inner = Object.hasOwn(value, name) ? value[name] : undefined;
    if (inner !== undefined && inner !== null) {
      checked[name] = node(property, inner, pointer(path, name), problems);
    } else if (required.has(name)) {
      problems.add(pointer(path, name), "is required");
    }
  }
  return checked;
}

function bound(schema: JsonSchema, word: string): number | undefined {
  const value = schema[word];
  return typeof value === "number" ? value : undefined;
}

function isCalendarDay(text: string): boolean {
  const [, year, month, day] = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text) ?? [];
  if (year === undefined || month === undefined || day === undefined) return false;
  const date = new Date(0);
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  return date.getUTCFullYear() === Number(year) && date.getUTCMonth() === Number(month) - 1 && date.getUTCDate() === Number(day);
}
