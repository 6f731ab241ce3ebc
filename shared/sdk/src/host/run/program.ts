/**
 * The program of a thread: it loads code of the project and runs one handler at a time.
 *
 * What fails outside of a handler's own promise is traced to the execution that made it: errors of the present one end it, errors
 * of one that has ended are reported and harm nobody.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import { register } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promiseHooks } from "node:v8";
import { type MessagePort, parentPort, workerData } from "node:worker_threads";

import { contextOf } from "./context.js";
import { failure, text, trace } from "./failure.js";
import type { Ended, FromThread, ThreadData, ToThread } from "./protocol.js";
import { declareTools, runTool } from "./toolbox.js";
import { Gathering, nameOf, unitsOf } from "./units.js";

/** An execution. */
interface Execution {
  readonly id: number;
  readonly abort: AbortController;
  readonly end: (ended: Ended) => void;
  /** Whether it has ended by an error beside its handler, which may still be running. */
  remains: boolean;
}

const data = workerData as ThreadData;
const port = parentPort as MessagePort;
const executions = new AsyncLocalStorage<Execution>();
const owners = new WeakMap<Promise<unknown>, Execution>();
const calls = new Map<number, (reply: string) => void>();
let nextCall = 1;
let present: Execution | undefined;

function post(message: FromThread): void {
  port.postMessage(message);
}

/** Largest result of a handler, in bytes of its JSON. */
const RESULT_BYTES_MAX = 1_048_576;

function load(file: string): Promise<Readonly<Record<string, unknown>>> {
  return import(pathToFileURL(join(data.root, file)).href) as Promise<Readonly<Record<string, unknown>>>;
}

/** Loads every file and tells what they declare. */
async function survey(): Promise<void> {
  const gathering = new Gathering();
  for (const file of data.entries) {
    if (data.excluded.includes(file)) continue;
    post({ type: "loading", file });
    try {
      gathering.module(file, await load(file));
    } catch (error) {
      gathering.problems.push({ file, problem: told(error) });
    }
  }
  const tools = data.tools.filter((file) => !data.excluded.includes(file));
  await declareTools(data.root, tools, gathering, (file) => post({ type: "loading", file }));
  const index = gathering.index();
  for (const [unit, file] of index) surveyed.set(unit, file);
  post({ type: "surveyed", manifest: gathering.manifest(), index, problems: gathering.problems });
}

/** Why a file cannot be loaded, for the people of the project. */
function told(error: unknown): string {
  const name = error instanceof Error ? error.name : "Error";
  return `${name}: ${text(error)}`.slice(0, 1_000);
}

/** Asks the host to carry out an operation. */
function call(execution: Execution, operation: string, payload: string): Promise<string> {
  if (present !== execution) return Promise.resolve(OVER);
  const number = nextCall++;
  return new Promise((resolve) => {
    calls.set(number, resolve);
    post({ type: "call", id: execution.id, call: number, operation, payload });
  });
}

const OVER = JSON.stringify({ ok: false, error: { code: "NOT_SUPPORTED", message: "The execution is over." } });

async function run(message: Extract<ToThread, { type: "run" }>): Promise<void> {
  const abort = new AbortController();
  const ended = await new Promise<Ended>((end) => {
    const execution: Execution = { id: message.id, abort, end, remains: false };
    present = execution;
    void executions.run(execution, () => perform(message, execution)).then(end, (error: unknown) => end(failure(error)));
  });
  // Rejections that nobody handles are known only when the promises of this turn are done.
  await new Promise((resolve) => setImmediate(resolve));
  if (present?.id !== message.id) return;
  const { remains } = present;
  present = undefined;
  calls.clear();
  abort.abort();
  post({ type: "ended", id: message.id, ended, remains });
}

async function perform(message: Extract<ToThread, { type: "run" }>, execution: Execution): Promise<Ended> {
  const { kind, name, facts } = message;
  const file = data.index?.get(`${kind}:${name}`) ?? surveyed.get(`${kind}:${name}`);
  if (file === undefined) return { how: "failed", code: "NOT_FOUND", retryable: false };
  const input: unknown = JSON.parse(message.input);
  const host = {
    call: (operation: string, payload: string) => call(execution, operation, payload),
    chunk: (chunk: string) => post({ type: "chunk", id: execution.id, chunk }),
    log: (level: "debug" | "info" | "warn" | "error", line: string, fields: string) =>
      post({ type: "log", id: execution.id, level, message: line, fields }),
  };
  if (kind === "tool") return result(await runTool(data.root, data.tools, name, input, facts, execution.abort.signal, host));
  const unit = unitsOf(await load(file)).find((found) => found.kind === kind && nameOf(found, file) === name);
  if (unit === undefined) return { how: "failed", code: "NOT_FOUND", retryable: false };
  return result(await unit.handler(contextOf(kind, input, facts, execution.abort.signal, host)));
}

/** What a handler has returned, as JSON. */
function result(value: unknown): Ended {
  let json: string | undefined;
  try {
    json = JSON.stringify(value ?? null);
  } catch {
    json = undefined;
  }
  const fits = json !== undefined && Buffer.byteLength(json) <= RESULT_BYTES_MAX;
  return fits && json !== undefined ? { how: "done", result: json } : { how: "failed", code: "OUTPUT_INVALID", retryable: false };
}

/** An error outside of every handler's own promise. */
function stray(error: unknown, owner: Execution | undefined): void {
  if (owner !== undefined && owner === present) {
    owner.remains = true;
    owner.end(failure(error));
  } else post({ type: "late", trace: trace(error) });
}

const surveyed = new Map<string, string>();

async function main(): Promise<void> {
  register(new URL("../project/hooks.js", import.meta.url), { data: data.hooks });
  promiseHooks.onInit((promise) => {
    const execution = executions.getStore();
    if (execution !== undefined) owners.set(promise, execution);
  });
  process.on("unhandledRejection", (error, promise) => stray(error, owners.get(promise)));
  process.on("uncaughtException", (error) => stray(error, executions.getStore()));
  port.on("message", (message: ToThread) => {
    if (message.type === "run") void run(message);
    else if (message.type === "cancel" && present?.id === message.id) present.abort.abort();
    else if (message.type === "reply") {
      calls.get(message.call)?.(message.reply);
      calls.delete(message.call);
    }
  });
  if (data.index === undefined) await survey();
  post({ type: "ready" });
}

await main();
