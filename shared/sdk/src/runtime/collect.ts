/**
 * What the files of a project define. One file that is wrong never stops the others: it is reported by name. Loads nothing itself.
 */
import type { ActionDefinition } from "../define/action.js";
import { CALL_NAME } from "../define/config.js";
import type { JobDefinition } from "../define/job.js";
import type { RouteDefinition, RouterDefinition } from "../define/route.js";
import type { ScriptDefinition } from "../define/script.js";
import type { TriggerDefinition } from "../define/trigger.js";

/** Something that a project defines. */
export type Definition = ScriptDefinition | JobDefinition | RouteDefinition | TriggerDefinition | ActionDefinition;

/** A file that was loaded. */
export interface LoadedModule {
  /** Below the folder of the project, with `/`. */
  readonly file: string;
  readonly exports: Readonly<Record<string, unknown>>;
}

/** Something that was left out, and why. */
export interface ProjectProblem {
  readonly file: string;
  readonly message: string;
}

/** What a project defines, by name. */
export interface Project {
  readonly scripts: ReadonlyMap<string, ScriptDefinition>;
  readonly jobs: ReadonlyMap<string, JobDefinition>;
  readonly routes: ReadonlyMap<string, RouteDefinition>;
  readonly triggers: ReadonlyMap<string, TriggerDefinition>;
  readonly actions: ReadonlyMap<string, ActionDefinition>;
}

/** Lists that a file may export, beside its default export. */
const LISTS = ["scripts", "jobs", "routes", "triggers", "actions"] as const;
/** Most definitions of a kind in one project, as the fleet has it. */
const MOST = { script: 200, job: 50, route: 200, trigger: 200, action: 50 } as const;

type Kind = Definition["kind"];

class Collection {
  readonly problems: ProjectProblem[] = [];
  readonly #found = new Map<Kind, Map<string, Definition>>();
  /** Keys of jobs are the same whatever the case of their letters. */
  readonly #taken = new Map<string, Definition>();

  of(kind: Kind): Map<string, Definition> {
    const found = this.#found.get(kind) ?? new Map<string, Definition>();
    this.#found.set(kind, found);
    return found;
  }

  add(file: string, definition: Definition): void {
    const name = nameOf(file, definition);
    const found = this.of(definition.kind);
    if (!CALL_NAME.test(name)) return this.#wrong(file, `the ${definition.kind} needs a name: its file cannot be one`);
    const slot = `${definition.kind} ${definition.kind === "job" ? name.toLowerCase() : name}`;
    const other = this.#taken.get(slot);
    // A list that gathers what other files export as default names the same thing again.
    if (other === definition) return;
    if (other !== undefined) return this.#wrong(file, `the ${definition.kind} ${name} is defined twice; the first one stays`);
    if (found.size >= MOST[definition.kind]) return this.#wrong(file, `a project has at most ${MOST[definition.kind]} of the kind ${definition.kind}`);
    this.#taken.set(slot, definition);
    found.set(name, definition);
  }

  #wrong(file: string, message: string): void {
    this.problems.push({ file, message });
  }
}

/** Collects what files define: their default exports, and the lists `jobs`, `triggers`, `actions`, `routes` and `scripts`. */
export function collect(modules: readonly LoadedModule[]): { readonly project: Project; readonly problems: readonly ProjectProblem[] } {
  const collection = new Collection();
  for (const { file, exports } of modules) {
    for (const definition of definitionsOf(exports["default"])) collection.add(file, definition);
    for (const list of LISTS) {
      const value = exports[list];
      if (value === undefined) continue;
      const items: readonly unknown[] = Array.isArray(value) ? value : [value];
      const definitions = items.flatMap(definitionsOf);
      if (!Array.isArray(value) || definitions.length < items.length) {
        collection.problems.push({ file, message: `\`${list}\` must be a list of what the define functions return` });
      }
      for (const definition of definitions) collection.add(file, definition);
    }
  }
  const project = {
    scripts: collection.of("script"),
    jobs: collection.of("job"),
    routes: collection.of("route"),
    triggers: collection.of("trigger"),
    actions: collection.of("action"),
  };
  return { project: project as unknown as Project, problems: collection.problems };
}

/** Definitions in a value that a file exports. */
function definitionsOf(value: unknown): readonly Definition[] {
  if (value === null || typeof value !== "object") return [];
  const { kind } = value as { kind?: unknown };
  if (kind === "router") return (value as RouterDefinition).routes;
  const known = typeof kind === "string" && Object.hasOwn(MOST, kind) && typeof (value as { handler?: unknown }).handler === "function";
  return known ? [value as Definition] : [];
}

function nameOf(file: string, definition: Definition): string {
  if (definition.kind === "route") return definition.name;
  if (definition.kind !== "script") return definition.key;
  return definition.name ?? file.replace(/^(?:\.\/)?(?:src\/)?(?:scripts\/)?/, "").replace(/\.[^./]+$/, "");
}
