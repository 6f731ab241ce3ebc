/** Handlers on threads: what they do to themselves, they do to nobody else. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { logTo } from "../../../src/host/logs.js";
import { type Loaded, load } from "../../../src/host/project/load.js";
import { Pool, type Result, type Work } from "../../../src/host/run/pool.js";
import { type Lines, project, until } from "../project.js";

const HANDLERS = `
import { CogoverApiError, RetryableError, ValidationError, defineScript } from "@cogover/sdk";
import { add, Kind } from "./lib/add";
const script = (name: string, handler: (context: any) => unknown) => defineScript({ name }, handler);
let count = 0;
export const scripts = [
  script("fine", ({ input }) => ({ input, sum: add(1, 2), kind: Kind.A })),
  script("counts", () => ++count),
  script("retryable", () => { throw new RetryableError("s3cret"); }),
  script("known", () => { throw new CogoverApiError("NO_STOCK", "s3cret"); }),
  script("invalid", () => { throw new ValidationError("s3cret"); }),
  script("throws", () => { throw new TypeError("s3cret"); }),
  script("throws_text", () => { throw "s3cret"; }),
  script("exits", () => { process.exit(0); }),
  script("blocks", () => { for (;;); }),
  script("hangs", () => new Promise(() => {})),
  script("heeds", ({ signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("over"))))),
  script("fills", () => { const all: unknown[] = []; for (;;) all.push(new Array(1000).fill(Math.random())); }),
  script("rejects_beside", async () => { void Promise.reject(new Error("s3cret")); await new Promise((resolve) => setTimeout(resolve, 5_000)); }),
  script("throws_beside", async () => { setTimeout(() => { throw new Error("s3cret"); }, 1); await new Promise((resolve) => setTimeout(resolve, 5_000)); }),
  script("rejects_later", () => { setTimeout(() => void Promise.reject(new Error("s3cret")), 50); }),
  script("waits", () => new Promise((resolve) => setTimeout(resolve, 200, "waited"))),
  script("no_json", () => 1n),
  script("environment", () => Object.keys(process.env).filter((name) => name.startsWith("RUNFLEET_"))),
  script("prints", () => { console.log("a line"); }),
];
`;

let pool: Pool;
let loaded: Loaded;
const lines: Lines[] = [];
const log = logTo((line) => lines.push(JSON.parse(line) as Lines), "debug");
let clean: (() => void)[] = [];

before(async () => {
  process.env["RUNFLEET_SOMETHING"] = "s3cret";
  const files = {
    "src/lib/add.ts": "export enum Kind { A = 'a' }\nexport function add(a: number, b: number): number { return a + b; }\n",
    "src/handlers.ts": HANDLERS,
  };
  const root = project({ after: (fn) => clean.push(fn) }, files);
  loaded = await load({ project: root, memoryMb: 64 }, log);
  pool = new Pool(2, 64, loaded.data, log);
  pool.adopt(loaded.thread);
});

after(async () => {
  await pool.stop(0);
  for (const each of clean) each();
  clean = [];
});

function run(name: string, more: Partial<Work> = {}): Promise<Result> {
  const facts = { id: "JB1", workspace: "acme", project: "shop", version: "1", user: null, readOnly: false, local: false, deadline: Date.now() + 5_000 };
  return pool.run({
    run: { kind: "script", name, input: '{"a":1}', facts },
    urgency: "job",
    listener: { call: () => Promise.resolve('{"ok":true,"data":null}'), chunk: () => undefined },
    timeoutMs: 5_000,
    beginBy: Date.now() + 10_000,
    ...more,
  });
}

test("a handler gets its input, TypeScript and all, and its result is JSON", async () => {
  const result = await run("fine");
  assert.deepEqual(result, { how: "done", result: '{"input":{"a":1},"sum":3,"kind":"a"}' });
});

test("errors of handlers are told by code and never by message", async () => {
  for (const [name, code, retryable] of [
    ["retryable", "RETRYABLE", true],
    ["known", "SCRIPT_ERROR", false],
    ["invalid", "VALIDATION_ERROR", false],
    ["throws", "SCRIPT_ERROR", false],
    ["throws_text", "SCRIPT_ERROR", false],
    ["no_json", "OUTPUT_INVALID", false],
  ] as const) {
    const result = await run(name);
    assert.equal(result.how, "failed", name);
    assert.deepEqual([result.code, result.retryable], [code, retryable], name);
    assert.ok(!(result.trace ?? "").includes("s3cret"), name);
  }
});

test("a handler that ends its process, blocks it or fills its memory fails alone, and the next one runs", async () => {
  assert.deepEqual(await run("exits"), { how: "crashed", code: "HANDLER_EXITED" });
  assert.deepEqual(await run("fills", { timeoutMs: 30_000 }), { how: "crashed", code: "OUT_OF_MEMORY" });
  const began = Date.now();
  assert.deepEqual(await run("blocks", { timeoutMs: 300 }), { how: "late" });
  assert.ok(Date.now() - began < 3_000);
  assert.equal((await run("fine")).how, "done");
});

test("a handler that is too slow is told by its signal, and ended when it does not heed it", async () => {
  assert.deepEqual(await run("heeds", { timeoutMs: 100 }), { how: "late" });
  assert.deepEqual(await run("hangs", { timeoutMs: 100 }), { how: "late" });
});

test("an error beside the promise of a handler ends that execution", async () => {
  for (const name of ["rejects_beside", "throws_beside"]) {
    const began = Date.now();
    const result = await run(name);
    assert.equal(result.how === "failed" && result.code, "SCRIPT_ERROR", name);
    assert.ok(Date.now() - began < 3_000, name);
  }
});

test("an error of a handler that has ended harms nobody and is reported", async () => {
  assert.equal((await run("rejects_later")).how, "done");
  assert.deepEqual(await run("waits"), { how: "done", result: '"waited"' });
  await until("the report", () => lines.some((line) => line.message === "code of a handler that had ended has failed"));
});

test("handlers see nothing of the host's own settings", async () => {
  assert.deepEqual(await run("environment"), { how: "done", result: "[]" });
});

test("what handlers print becomes a log line", async () => {
  await run("prints");
  await until("the line", () => lines.some((line) => line.message === "a line" && line["from"] === "console"));
});

test("jobs leave a thread for calls", async () => {
  const jobs = [run("waits", { timeoutMs: 5_000 }), run("waits", { timeoutMs: 5_000 })];
  const began = Date.now();
  await run("fine", { urgency: "call" });
  assert.ok(Date.now() - began < 1_500);
  for (const job of await Promise.all(jobs)) assert.equal(job.how, "done");
});

test("what has not begun in time is not begun", async () => {
  const holding = run("waits");
  assert.deepEqual(await run("fine", { beginBy: Date.now() + 50 }), { how: "late" });
  assert.equal((await holding).how, "done");
});

test("no line of the log holds the text of an error", () => {
  assert.ok(lines.length > 0);
  assert.ok(!JSON.stringify(lines).includes("s3cret"));
});
