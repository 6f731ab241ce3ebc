/**
 * A project, from its folder to what it declares and a thread that can run it.
 */

import { stop as stopCompiler } from "esbuild";

import type { Log } from "../logs.js";
import type { Index, Manifest, ThreadData } from "../run/protocol.js";
import { survey } from "../run/survey.js";
import type { Thread } from "../run/thread.js";
import type { Settings } from "../settings.js";
import { aliases } from "./aliases.js";
import { type Problem, takeSnapshot, versionOf } from "./snapshot.js";

/** A loaded project. */
export interface Loaded {
  readonly manifest: Manifest;
  readonly index: Index;
  /** Files that are left out, and why. */
  readonly problems: readonly Problem[];
  /** The name that its files give the version. */
  readonly version: string;
  readonly data: ThreadData;
  readonly thread: Thread;
}

/** Loads a project. A broken file is reported and left out; throws when nothing can be loaded. */
export async function load(settings: Pick<Settings, "project" | "memoryMb">, log: Log): Promise<Loaded> {
  const snapshot = await takeSnapshot(settings.project);
  // Its process is of no more use: everything is translated.
  await stopCompiler();
  const { root, modules, entries, tools } = snapshot;
  const data: ThreadData = { root, hooks: { modules, aliases: aliases() }, entries, tools, excluded: [] };
  const found = await survey(data, settings.memoryMb, log);
  // A file that could not be translated has failed to load too; once is enough.
  const untranslated = new Set(snapshot.problems.map((problem) => problem.file));
  const problems = [...snapshot.problems, ...found.problems.filter((problem) => !untranslated.has(problem.file))];
  for (const { file, problem } of problems) log("error", "a file of the project is left out", { file, problem });
  const counts = Object.fromEntries(Object.entries(found.manifest).map(([kind, list]) => [kind, (list as unknown[]).length]));
  log("info", "loaded the project", { files: modules.size, ...counts });
  return { ...found, problems, version: versionOf(snapshot) };
}
