/**
 * The code of a project as it was when the host began: every TypeScript file, translated once, in memory.
 *
 * A thread that is started later runs the same code, whatever has happened to the files meanwhile: a version is one thing. A file
 * that cannot be translated is kept with its mistake and stops no other. Runs no project code.
 */

import { createHash } from "node:crypto";
import { type Dirent, readFileSync, readdirSync, statSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { pathToFileURL } from "node:url";

import { type Loader, type TransformFailure, transform } from "esbuild";

/** A translated file, or why it could not be translated. */
export type Translated = { readonly code: string } | { readonly mistake: string };

/** Something that is wrong with one file. */
export interface Problem {
  /** Path in the project. */
  readonly file: string;
  readonly problem: string;
}

/** The code of a project. */
export interface Snapshot {
  /** Absolute path of the project. */
  readonly root: string;
  /** Translated TypeScript by its URL. */
  readonly modules: ReadonlyMap<string, Translated>;
  /** Files under `src` that may declare something, as paths in the project, in order. */
  readonly entries: readonly string[];
  /** Files and descriptions of tools, as paths in the project, in order. */
  readonly tools: readonly string[];
  /** Digest of all files that count, 16 hexadecimal digits. */
  readonly digest: string;
  /** Version that `package.json` states. */
  readonly packageVersion: string | undefined;
  readonly problems: readonly Problem[];
}

/** Bounds on a project: more is refused as a whole. */
const MAX = { files: 5_000, fileBytes: 2 * 1_048_576, bytes: 64 * 1_048_576, depth: 32 } as const;

const CODE = /\.(ts|tsx|mts|js|mjs|jsx)$/;
const TYPED = /\.(ts|tsx|mts)$/;
const TYPES_ONLY = /\.d\.[cm]?ts$/;
const TEST = /\.(test|spec)\.[a-z]+$/;
const SKIPPED = new Set(["node_modules", "dist", "build", "coverage", "__tests__", "__mocks__"]);

/** A project cannot be read. Its message names paths and numbers. */
export class ProjectError extends Error {}

/** Reads and translates a project. */
export async function takeSnapshot(root: string): Promise<Snapshot> {
  const files = walk(root);
  const digest = createHash("sha256");
  const modules = new Map<string, Translated>();
  const problems: Problem[] = [];
  const tsconfig = readText(join(root, "tsconfig.json"));
  for (const file of files) {
    const text = readFileSync(join(root, file), "utf8");
    digest.update(`${file.length}:${file}:${text.length}:`).update(text);
    if (!TYPED.test(file)) continue;
    const translated = await translate(root, file, text, tsconfig);
    modules.set(pathToFileURL(join(root, file)).href, translated);
    if ("mistake" in translated) problems.push({ file, problem: translated.mistake });
  }
  return {
    root,
    modules,
    entries: files.filter((file) => file.startsWith("src/") && CODE.test(file) && !isTool(file)),
    tools: files.filter(isTool),
    digest: digest.digest("hex").slice(0, 16),
    packageVersion: packageVersion(root),
    problems,
  };
}

/** `ai/tools/**` and `src/ai/tools/**`, also with folders of groups between `ai` and `tools`. */
function isTool(file: string): boolean {
  const folders = file.split("/").slice(0, -1);
  const ai = folders[0] === "src" ? 1 : 0;
  if (folders[ai] !== "ai" || !folders.includes("tools", ai + 1)) return false;
  return /\.(ts|js)$/.test(file) || file.endsWith("/description.md");
}

/** Paths of the files that count, sorted, with `/` between folders. */
function walk(root: string): string[] {
  const found: string[] = [];
  let bytes = 0;
  const into = (folder: string, depth: number): void => {
    if (depth > MAX.depth) throw new ProjectError(`${relative(root, folder)} is nested too deeply`);
    for (const entry of list(folder, root)) {
      if (entry.name.startsWith(".")) continue;
      const path = join(folder, entry.name);
      if (entry.isDirectory() && !SKIPPED.has(entry.name)) into(path, depth + 1);
      if (!entry.isFile() || !counts(entry.name)) continue;
      const { size } = statSync(path);
      bytes += size;
      const name = relative(root, path).split(sep).join("/");
      if (size > MAX.fileBytes) throw new ProjectError(`${name} is larger than ${MAX.fileBytes} bytes`);
      found.push(name);
      if (found.length > MAX.files) throw new ProjectError(`the project has more than ${MAX.files} files`);
      if (bytes > MAX.bytes) throw new ProjectError(`the project has more than ${MAX.bytes} bytes of code`);
    }
  };
  into(root, 0);
  return found.sort();
}

function list(folder: string, root: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    const name = relative(root, folder);
    throw new ProjectError(name === "" ? "the folder of the project cannot be read" : `${name} cannot be read`);
  }
}

function counts(name: string): boolean {
  if (TYPES_ONLY.test(name) || TEST.test(name)) return false;
  return CODE.test(name) || name.endsWith(".json") || name === "description.md";
}

async function translate(root: string, file: string, text: string, tsconfig: string | undefined): Promise<Translated> {
  const loader: Loader = file.endsWith("x") ? "tsx" : "ts";
  const options = {
    loader,
    format: "esm",
    target: "node20",
    sourcemap: "inline",
    sourcesContent: false,
    sourcefile: join(root, file),
    logLevel: "silent",
  } as const;
  try {
    const { code } = await transform(text, { ...options, ...(tsconfig === undefined ? {} : { tsconfigRaw: tsconfig }) });
    return { code };
  } catch (error) {
    return { mistake: mistake(error) };
  }
}

/** What the compiler says, with the line, without the text of that line. */
function mistake(error: unknown): string {
  const first = (error as Partial<TransformFailure>).errors?.[0];
  if (first === undefined) return "cannot be translated";
  const line = first.location === null ? "" : `line ${first.location.line}: `;
  return `${line}${first.text}`;
}

function readText(path: string): string | undefined {
  try {
    const text = readFileSync(path, "utf8");
    return text.length > 65_536 ? undefined : text;
  } catch {
    return undefined;
  }
}

function packageVersion(root: string): string | undefined {
  const text = readText(join(root, "package.json"));
  if (text === undefined) return undefined;
  try {
    const { version } = JSON.parse(text) as { version?: unknown };
    return typeof version === "string" ? version : undefined;
  } catch {
    return undefined;
  }
}

/** The name of a version that nobody has named: the package's own, and the digest of its files. At most 64 characters. */
export function versionOf(snapshot: Snapshot): string {
  const own = (snapshot.packageVersion ?? "0").replace(/[^A-Za-z0-9._-]/g, "-").slice(0, 40);
  return `${own === "" ? "0" : own}+${snapshot.digest}`;
}
