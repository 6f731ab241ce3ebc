/**
 * What a project defines, on a thread: all of it when a host finds out what there is, and one file at a time for whoever runs something.
 */

import { join, relative, sep } from "node:path";
import { pathToFileURL } from "node:url";

import { type Definition, type LoadedModule, type Project, collect, manifest } from "../../runtime/index.js";
import { type PreparedTool, loadTools } from "../../tools/index.js";
import type { Problem } from "../project/snapshot.js";
import type { Index, Manifest, ThreadData, UnitKind } from "./protocol.js";

/** What was found in a project. */
export interface Found {
  readonly manifest: Manifest;
  readonly index: Index;
  readonly problems: readonly Problem[];
}

const LISTS = { script: "scripts", job: "jobs", route: "routes", trigger: "triggers", action: "actions" } as const;

/** The code of a project. */
export class Catalog {
  readonly #data: ThreadData;
  #index: Index | undefined;
  #tools: Promise<Awaited<ReturnType<typeof loadTools>>> | undefined;
  /** What was found once: asking Node for a module goes to the thread of its loader and back, even for one that is loaded. */
  readonly #definitions = new Map<string, Definition>();

  constructor(data: ThreadData) {
    this.#data = data;
    this.#index = data.index;
  }

  /** Loads every file. `loading` hears of each before it is loaded. */
  async survey(loading: (file: string) => void): Promise<Found> {
    const problems: Problem[] = [];
    const modules: LoadedModule[] = [];
    for (const file of this.#data.entries) {
      if (this.#data.excluded.includes(file)) continue;
      loading(file);
      try {
        modules.push({ file, exports: await this.#load(file) });
      } catch (error) {
        problems.push({ file, problem: told(error) });
      }
    }
    const { project, problems: more } = collect(modules);
    const { tools, problems: others } = await this.#loadTools(loading);
    for (const { file, message } of [...more, ...others]) problems.push({ file, problem: message });
    this.#index = indexOf(modules, project, tools);
    const { version: _, ...rest } = manifest("", project, tools);
    return { manifest: rest, index: this.#index, problems };
  }

  /** A definition; none when the project has none of that name. */
  async definition(kind: Exclude<UnitKind, "tool">, name: string): Promise<Definition | undefined> {
    const place = `${kind}:${name}`;
    const known = this.#definitions.get(place);
    const file = this.#index?.get(place);
    if (known !== undefined || file === undefined) return known;
    const { project } = collect([{ file, exports: await this.#load(file) }]);
    const found = project[LISTS[kind]].get(name);
    if (found !== undefined) this.#definitions.set(place, found);
    return found;
  }

  /** A tool; none when the project has none of that name. */
  async tool(name: string): Promise<PreparedTool | undefined> {
    const { tools } = await this.#loadTools(() => undefined);
    return tools.find((tool) => tool.name === name);
  }

  #load(file: string): Promise<Readonly<Record<string, unknown>>> {
    return import(pathToFileURL(join(this.#data.root, file)).href) as Promise<Readonly<Record<string, unknown>>>;
  }

  #loadTools(loading: (file: string) => void): ReturnType<typeof loadTools> {
    const { root, excluded } = this.#data;
    this.#tools ??= loadTools({
      root,
      importModule: (path) => {
        const file = relative(root, path).split(sep).join("/");
        if (excluded.includes(file)) return Promise.reject(new Error("was not loaded"));
        loading(file);
        return this.#load(file);
      },
    });
    return this.#tools;
  }
}

/** The file of everything that a project defines. */
function indexOf(modules: readonly LoadedModule[], project: Project, tools: readonly PreparedTool[]): Index {
  const files = new Map<Definition, string>();
  for (const each of modules) {
    const { project: own } = collect([each]);
    // The first file that has a definition is the one that it was taken from.
    for (const definition of all(own)) if (!files.has(definition[1])) files.set(definition[1], each.file);
  }
  const units = all(project).map(([name, definition]) => [`${definition.kind}:${name}`, files.get(definition) ?? ""] as const);
  return new Map([...units, ...tools.map((tool) => [`tool:${tool.name}`, tool.file] as const)]);
}

function all(project: Project): (readonly [string, Definition])[] {
  return Object.values(LISTS).flatMap((list) => [...(project[list] as ReadonlyMap<string, Definition>)]);
}

/** Why a file cannot be loaded, for the people of the project. */
function told(error: unknown): string {
  const [name, message] = error instanceof Error ? [error.name, error.message] : ["Error", ""];
  return `${name}: ${message}`.slice(0, 1_000);
}
