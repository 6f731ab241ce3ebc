/**
 * The program of a thread: it loads code of the project and runs one handler at a time.
 *
 * What fails outside of a handler's own promise is traced to the execution that made it: errors of the present one end it, errors
 * of one that has ended are reported and harm nobody.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import { register } from "node:module";
import { promiseHooks } from "node:v8";
import { type MessagePort, parentPort, workerData } from "node:worker_threads";

import { Catalog } from "./catalog.js";
import { type HostSide, perform, stray, traceOf } from "./perform.js";
import type { Ended, FromThread, ThreadData, ToThread } from "./protocol.js";

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
const catalog = new Catalog(data);
const executions = new AsyncLocalStorage<Execution>();
const owners = new WeakMap<Promise<unknown>, Execution>();
const calls = new Map<number, (reply: string) => void>();
let nextCall = 1;
let present: Execution | undefined;

function post(message: FromThread): void {
  port.postMessage(message);
}

const OVER = JSON.stringify({ ok: false, error: { code: "NOT_SUPPORTED", message: "The execution is over." } });

/** What an execution can ask of the host; nothing any more once it has ended. */
function hostSide(execution: Execution): HostSide {
  const { id } = execution;
  const live = (): boolean => present === execution;
  return {
    call: (operation, payload) => {
      if (!live()) return Promise.resolve(OVER);
      const call = nextCall++;
      return new Promise((resolve) => {
        calls.set(call, resolve);
        post({ type: "call", id, call, operation, payload });
      });
    },
    chunk: (chunk) => {
      if (live()) post({ type: "chunk", id, chunk });
    },
    log: (level, message, fields) => {
      if (live()) post({ type: "log", id, level, message, fields });
    },
  };
}

async function run(message: Extract<ToThread, { type: "run" }>): Promise<void> {
  const abort = new AbortController();
  const ended = await new Promise<Ended>((end) => {
    const execution: Execution = { id: message.id, abort, end, remains: false };
    present = execution;
    const work = executions.run(execution, () => perform(catalog, message, abort.signal, hostSide(execution)));
    void work.then(end, (error: unknown) => end(stray(error)));
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

/** An error outside of every handler's own promise. */
function strayed(error: unknown, owner: Execution | undefined): void {
  if (owner === undefined || owner !== present) {
    post({ type: "late", trace: traceOf(error) });
    return;
  }
  owner.remains = true;
  owner.end(stray(error));
}

async function main(): Promise<void> {
  register(new URL("../project/hooks.js", import.meta.url), { data: data.hooks });
  promiseHooks.onInit((promise) => {
    const execution = executions.getStore();
    if (execution !== undefined) owners.set(promise, execution);
  });
  process.on("unhandledRejection", (error, promise) => strayed(error, owners.get(promise)));
  process.on("uncaughtException", (error) => strayed(error, executions.getStore()));
  port.on("message", (message: ToThread) => {
    if (message.type === "run") void run(message);
    else if (message.type === "cancel" && present?.id === message.id) present.abort.abort();
    else if (message.type === "reply") {
      calls.get(message.call)?.(message.reply);
      calls.delete(message.call);
    }
  });
  if (data.index === undefined) {
    const found = await catalog.survey((file) => post({ type: "loading", file }));
    post({ type: "surveyed", ...found });
  }
  post({ type: "ready" });
}

await main();
