/**
 * How the modules of a project are found and loaded: translated TypeScript from memory, the SDK under every name that project code
 * knows it by, imports without an extension, and JSON. Runs on the thread of Node's loader; sees nothing but paths and code.
 */

import { existsSync, readFileSync, statSync } from "node:fs";
import type { LoadHook, ResolveHook } from "node:module";
import { fileURLToPath } from "node:url";

import type { Translated } from "./snapshot.js";

/** What the hooks are given. */
export interface HookData {
  readonly modules: ReadonlyMap<string, Translated>;
  /** URLs of modules by the names of packages. */
  readonly aliases: ReadonlyMap<string, string>;
}

let data: HookData = { modules: new Map(), aliases: new Map() };

/** Called by Node once, before the other two. */
export function initialize(given: HookData): void {
  data = given;
}

/** Endings that an import may leave out, in the order in which they are tried. */
const ENDINGS = [".ts", ".tsx", ".mts", ".js", ".mjs", ".json", "/index.ts", "/index.tsx", "/index.js", "/index.mjs"];

/** What a compiled name stands for. */
const SOURCES: readonly (readonly [RegExp, readonly string[]])[] = [
  [/\.js$/, [".ts", ".tsx"]],
  [/\.jsx$/, [".tsx"]],
  [/\.mjs$/, [".mts"]],
];

/** Finds a module. */
export const resolve: ResolveHook = async (specifier, context, next) => {
  const alias = data.aliases.get(specifier);
  if (alias !== undefined) return { url: alias, shortCircuit: true };
  const from = context.parentURL;
  const local = /^\.{0,2}\//.test(specifier) || specifier === "." || specifier === ".." || specifier.startsWith("file:");
  if (local && from?.startsWith("file:") === true && !from.includes("/node_modules/")) {
    const found = locate(new URL(specifier, from).href);
    if (found !== undefined) return { url: found, shortCircuit: true, importAttributes: context.importAttributes };
  }
  return next(specifier, context);
};

/** The module behind a URL as project code writes it; none when Node's own rules do. */
function locate(url: string): string | undefined {
  if (data.modules.has(url)) return url;
  if (isFile(url)) return undefined;
  for (const [compiled, sources] of SOURCES) {
    if (!compiled.test(url)) continue;
    const source = sources.map((ending) => url.replace(compiled, ending)).find((name) => data.modules.has(name));
    if (source !== undefined) return source;
  }
  const stem = url.replace(/\/$/, "");
  return ENDINGS.map((ending) => stem + ending).find((name) => data.modules.has(name) || isFile(name));
}

function isFile(url: string): boolean {
  try {
    const path = fileURLToPath(url);
    return existsSync(path) && statSync(path).isFile();
  } catch {
    return false;
  }
}

/** Loads a module. */
export const load: LoadHook = async (url, context, next) => {
  const translated = data.modules.get(url);
  if (translated !== undefined) {
    if ("mistake" in translated) throw new SyntaxError(translated.mistake);
    return { format: "module", source: translated.code, shortCircuit: true };
  }
  if (url.startsWith("file:") && url.endsWith(".json") && context.importAttributes["type"] === undefined) {
    const value: unknown = JSON.parse(readFileSync(fileURLToPath(url), "utf8"));
    return { format: "module", source: `export default ${JSON.stringify(value)};`, shortCircuit: true };
  }
  return next(url, context);
};
