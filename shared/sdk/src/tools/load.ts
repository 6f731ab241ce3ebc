/**
 * Loads the tools of a project from files. A file or its folder names a tool; one that is broken is reported and never stops the
 * others. Follows no links and looks at no hidden files.
 */
import { readdir, readFile, stat } from "node:fs/promises";
import { basename, dirname, join, relative, sep } from "node:path";
import { pathToFileURL } from "node:url";
import type { ToolDefinition } from "../define/tool.js";
import { isPlainObject } from "../json.js";
import { type PreparedTool, prepareTool } from "./prepare.js";
import { type Texts, textsOf, translated } from "./texts.js";

/** Something that was left out or looks wrong. */
export interface ToolProblem {
  /** `error`: the tool is not there. `warning`: something was ignored. */
  readonly level: "error" | "warning";
  readonly tool: string;
  /** Below the folder of the project. */
  readonly file: string;
  readonly message: string;
}

/** How tools are loaded. */
export interface LoadOptions {
  /** The folder of the project. */
  readonly root: string;
  /** Loads a file; the loader of the runtime unless it is given. */
  readonly importModule?: (file: string) => Promise<unknown>;
  /** Language of titles; `en-US` unless it is given. */
  readonly language?: string;
}

/** Folders that tools are looked for in, in this order. */
const FOLDERS = ["ai", "src/ai"];
/** Most files below them. */
const FILES_MAX = 5_000;
/** Largest text of a description or a locale, in bytes. */
const TEXT_BYTES_MAX = 1_048_576;

/** Files of one tool. */
interface Group {
  readonly code: string[];
  readonly descriptions: string[];
}

/** Loads all tools below `ai` and `src/ai`. */
export async function loadTools(options: LoadOptions): Promise<{ readonly tools: readonly PreparedTool[]; readonly problems: readonly ToolProblem[] }> {
  const tools = new Map<string, PreparedTool>();
  const problems: ToolProblem[] = [];
  const texts = await localeOf(options);
  for (const folder of FOLDERS) {
    const groups = groupsOf(await filesBelow(join(options.root, folder)));
    for (const [name, group] of groups) {
      const tool = await new Loading(options, texts, name, problems).load(group);
      if (tool === undefined) continue;
      const other = tools.get(name);
      if (other === undefined) tools.set(name, tool);
      else problems.push({ level: "warning", tool: name, file: tool.file, message: `is ignored: ${other.file} is a tool of that name` });
    }
  }
  return { tools: [...tools.values()], problems };
}

/** Regular files, sorted, without hidden ones. */
async function filesBelow(folder: string): Promise<string[]> {
  const found: string[] = [];
  const open = [folder];
  for (let at = open.pop(); at !== undefined && found.length < FILES_MAX; at = open.pop()) {
    const entries = await readdir(at, { withFileTypes: true }).catch(() => []);
    for (const entry of entries.filter(({ name }) => !name.startsWith(".") && name !== "node_modules")) {
      if (entry.isDirectory()) open.push(join(at, entry.name));
      else if (entry.isFile() && isOfTool(join(relative(folder, at), entry.name))) found.push(join(at, entry.name));
    }
  }
  return found.sort();
}

/** Code anywhere below a folder `tools`; a description in a folder of its tool. */
function isOfTool(path: string): boolean {
  const folders = path.split(sep).slice(0, -1);
  const place = folders.indexOf("tools");
  if (place < 0) return false;
  if (basename(path) === "description.md") return place < folders.length - 1;
  return /\.(?:ts|js)$/.test(path) && !path.endsWith(".d.ts");
}

function groupsOf(files: readonly string[]): ReadonlyMap<string, Group> {
  const groups = new Map<string, Group>();
  for (const file of files) {
    const name = basename(file);
    const byFolder = ["index.ts", "index.js", "description.md"].includes(name);
    const key = byFolder ? basename(dirname(file)) : name.replace(/\.(?:ts|js)$/, "");
    const group = groups.get(key) ?? { code: [], descriptions: [] };
    groups.set(key, group);
    (name === "description.md" ? group.descriptions : group.code).push(file);
  }
  return groups;
}

/** Loads one tool. */
class Loading {
  readonly #options: LoadOptions;
  readonly #texts: Texts;
  readonly #name: string;
  readonly #problems: ToolProblem[];

  constructor(options: LoadOptions, texts: Texts, name: string, problems: ToolProblem[]) {
    this.#options = options;
    this.#texts = texts;
    this.#name = name;
    this.#problems = problems;
  }

  async load({ code, descriptions }: Group): Promise<PreparedTool | undefined> {
    const [file, ...others] = code;
    if (file === undefined) return this.#problem("error", descriptions[0] ?? "", "has a description and no code");
    for (const other of others) this.#problem("warning", other, `is ignored: ${this.#path(file)} is a tool of that name`);
    try {
      const options = await this.#optionsOf(file);
      if (options === undefined) return undefined;
      // The text beside the code is the one that is meant.
      const text = descriptions.find((description) => dirname(description) === dirname(file)) ?? descriptions[0];
      const description = text === undefined ? {} : { description: await textFile(text) };
      const translate = (template: string): string => translated(template, this.#texts);
      return await prepareTool(options, { name: this.#name, file: this.#path(file), ...description, translate });
    } catch (error) {
      return this.#problem("error", file, error instanceof Error ? error.message : "could not be loaded");
    }
  }

  /** The default export; a function is called for it. */
  async #optionsOf(file: string): Promise<ToolDefinition | undefined> {
    const load = this.#options.importModule ?? ((path: string) => import(pathToFileURL(path).href) as Promise<unknown>);
    let value = (await load(file)) as unknown;
    value = (value as { default?: unknown } | null)?.default;
    if (typeof value === "function") value = await (value as () => unknown)();
    const empty = !isPlainObject(value) || Object.keys(value).length === 0;
    return empty ? this.#problem("warning", file, "is skipped: its default export is no tool") : (value as unknown as ToolDefinition);
  }

  #problem(level: ToolProblem["level"], file: string, message: string): undefined {
    this.#problems.push({ level, tool: this.#name, file: this.#path(file), message });
    return undefined;
  }

  #path(file: string): string {
    return relative(this.#options.root, file).split(sep).join("/");
  }
}

async function textFile(file: string): Promise<string> {
  const { size } = await stat(file);
  if (size > TEXT_BYTES_MAX) throw new Error(`${basename(file)} is larger than ${TEXT_BYTES_MAX} bytes`);
  const text = await readFile(file, "utf8");
  return text.trim() === "" ? "" : text;
}

/** Texts of the language, then of its first part; none when there is no file that can be read. */
async function localeOf({ root, language = "en-US" }: LoadOptions): Promise<Texts> {
  const names = [language, language.split("-")[0] ?? language];
  for (const folder of ["locale", "src/locale"]) {
    for (const name of names.filter((name) => /^[A-Za-z0-9_-]+$/.test(name))) {
      const text = await textFile(join(root, folder, `${name}.json`)).catch(() => "");
      const texts = text === "" ? undefined : parsed(text);
      if (texts !== undefined) return texts;
    }
  }
  return new Map();
}

function parsed(text: string): Texts | undefined {
  try {
    return textsOf(JSON.parse(text));
  } catch {
    return undefined;
  }
}
