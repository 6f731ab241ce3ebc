/** Texts of a project in languages: `{{t("key", { ns: "..." })}}` in titles, and the files that hold them. */
import { isPlainObject } from "../json.js";

/** Texts by key, of one language. */
export type Texts = ReadonlyMap<string, string>;

const TEMPLATE = /\{\{\s*t\(\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')\s*(?:,\s*\{[^{}]*\}\s*)?\)\s*\}\}/g;
const TEXT_CHARS_MAX = 10_000;
const DEPTH_MAX = 8;

/** A text with its templates resolved; a key without a text stands for itself. */
export function translated(text: string, texts: Texts): string {
  if (text.length > TEXT_CHARS_MAX) return text;
  return text.replaceAll(TEMPLATE, (_, double: string | undefined, single: string | undefined) => {
    const key = (double ?? single ?? "").replaceAll(/\\(.)/g, "$1");
    return texts.get(key) ?? key;
  });
}

/** Texts of a locale file: a flat object, or objects in each other whose names are joined by dots. */
export function textsOf(json: unknown): Texts {
  const texts = new Map<string, string>();
  const walk = (value: unknown, path: string, depth: number): void => {
    if (typeof value === "string") texts.set(path, value);
    if (!isPlainObject(value) || depth > DEPTH_MAX) return;
    for (const [name, inner] of Object.entries(value)) walk(inner, path === "" ? name : `${path}.${name}`, depth + 1);
  };
  walk(json, "", 0);
  return texts;
}
