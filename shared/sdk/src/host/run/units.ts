/**
 * What the modules of a project declare: found among their exports by the kind that each definition states.
 */

import { basename, dirname } from "node:path/posix";

import { MANIFEST_MAX, type Manifest, type ManifestAction, type ManifestJob, type ManifestTool, type ManifestTrigger } from "../project/manifest.js";
import type { Problem } from "../project/snapshot.js";
import type { Index, UnitKind } from "./protocol.js";

/** A definition, as the functions of the SDK return it. */
export interface Unit {
  readonly kind: Exclude<UnitKind, "tool">;
  readonly key?: string;
  readonly name?: string;
  readonly config?: Readonly<Record<string, unknown>>;
  readonly handler: (context: unknown) => unknown;
}

const KINDS: ReadonlySet<string> = new Set(["job", "script", "route", "trigger", "action"]);

/** The definitions that a module exports: by themselves, and in lists. */
export function unitsOf(module: Readonly<Record<string, unknown>>): Unit[] {
  const found = Object.values(module).flatMap((value) => (Array.isArray(value) ? (value as unknown[]) : [value]));
  return [...new Set(found.filter(isUnit))];
}

function isUnit(value: unknown): value is Unit {
  if (typeof value !== "object" || value === null) return false;
  const { kind, handler } = value as Partial<Record<string, unknown>>;
  return typeof kind === "string" && KINDS.has(kind) && typeof handler === "function";
}

/** The name of a unit: its own, or that of its file. */
export function nameOf(unit: Unit, file: string): string {
  const own = unit.key ?? unit.name ?? unit.config?.["key"] ?? unit.config?.["name"];
  return typeof own === "string" && own !== "" ? own : stem(file);
}

/** The name of a file without its ending; that of its folder for an `index`. */
export function stem(file: string): string {
  const name = basename(file).replace(/\.[^.]+$/, "");
  return name === "index" ? basename(dirname(file)) : name;
}

/** Gathers what a project declares, file after file. */
export class Gathering {
  readonly #index = new Map<string, string>();
  readonly #seen = new Set<unknown>();
  readonly #units: { unit: Unit; name: string }[] = [];
  readonly #tools: ManifestTool[] = [];
  readonly problems: Problem[] = [];

  /** Takes what a module exports. The first of a name stays. */
  module(file: string, module: Readonly<Record<string, unknown>>): void {
    for (const unit of unitsOf(module)) {
      // A definition that several modules export is one.
      if (this.#seen.has(unit)) continue;
      this.#seen.add(unit);
      const name = nameOf(unit, file);
      if (!this.#place(unit.kind, name, file)) continue;
      this.#units.push({ unit, name });
    }
  }

  /** Takes a tool. The first of a name stays. */
  tool(file: string, tool: ManifestTool): void {
    if (this.#place("tool", tool.name, file)) this.#tools.push(tool);
  }

  #place(kind: UnitKind, name: string, file: string): boolean {
    const place = `${kind}:${kind === "job" ? name.toLowerCase() : name}`;
    const first = this.#index.get(place);
    if (first !== undefined) {
      this.problems.push({ file, problem: `declares a ${kind} of a name that ${first} has; the first stays` });
      return false;
    }
    const most = MANIFEST_MAX[`${kind}s`];
    if (this.#count(kind) >= most) {
      this.problems.push({ file, problem: `declares one ${kind} too many: there are at most ${most}` });
      return false;
    }
    this.#index.set(place, file);
    return true;
  }

  #count(kind: UnitKind): number {
    return [...this.#index.keys()].filter((place) => place.startsWith(`${kind}:`)).length;
  }

  /** Where each unit is. */
  index(): Index {
    const units = this.#units.map(({ unit, name }) => [`${unit.kind}:${name}`, this.#index.get(placeOf(unit.kind, name)) ?? ""] as const);
    const tools = this.#tools.map((tool) => [`tool:${tool.name}`, this.#index.get(`tool:${tool.name}`) ?? ""] as const);
    return new Map([...units, ...tools]);
  }

  /** What is registered. */
  manifest(): Manifest {
    const of = (kind: Unit["kind"]) => this.#units.filter(({ unit }) => unit.kind === kind);
    return {
      jobs: of("job").map(({ unit, name }) => job(name, unit.config ?? {})),
      scripts: of("script").map(({ name }) => name),
      routes: of("route").map(({ name }) => name),
      triggers: of("trigger").map(({ unit, name }) => trigger(name, unit.config ?? {})),
      actions: of("action").map(({ unit, name }) => action(name, unit.config ?? {})),
      tools: this.#tools,
    };
  }
}

function placeOf(kind: UnitKind, name: string): string {
  return `${kind}:${kind === "job" ? name.toLowerCase() : name}`;
}

type Config = Readonly<Record<string, unknown>>;

function job(key: string, config: Config): ManifestJob {
  const { name, timeoutMs, maxAttempts, schedule } = config;
  const when = schedule as { cron: string; timezone?: string } | undefined;
  return {
    key,
    ...(typeof name === "string" ? { name } : {}),
    ...(typeof timeoutMs === "number" ? { timeoutMs } : {}),
    ...(typeof maxAttempts === "number" ? { maxAttempts } : {}),
    ...(when === undefined ? {} : { schedule: { cron: when.cron, timeZone: when.timezone ?? "UTC" } }),
  };
}

function trigger(key: string, { timeoutMs }: Config): ManifestTrigger {
  return { key, ...(typeof timeoutMs === "number" ? { timeoutMs } : {}) };
}

function action(key: string, { access, timeoutMs }: Config): ManifestAction {
  return { key, access: access === "read" ? "read" : "write", ...(typeof timeoutMs === "number" ? { timeoutMs } : {}) };
}
