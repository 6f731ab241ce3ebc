/** The command line of a host, its key, its progress reports and its memory of answers. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { readKey, userOf } from "../../../src/host/key.js";
import { logTo } from "../../../src/host/logs.js";
import { HELP, SettingsError, readSettings } from "../../../src/host/settings.js";
import { Once } from "../../../src/host/work/once.js";
import { Progress, parts } from "../../../src/host/work/progress.js";
import { projectKey } from "../fleet.js";
import { project } from "../project.js";

const URL = "amqp://user:s3cret@127.0.0.1:5672/%2f";

test("settings come from options, then from the environment, and then are the usual ones", (context) => {
  const root = project(context, {});
  writeFileSync(join(root, "key"), `${projectKey()}\n`);
  const env = { RUNFLEET_AMQP_URL: URL, RUNFLEET_PROJECT_KEY_FILE: join(root, "key"), RUNFLEET_HOST_CONCURRENCY: "9" };
  const usual = readSettings([], env);
  assert.ok(usual !== "help");
  assert.deepEqual([usual.command, usual.amqp, usual.concurrency, usual.drainMs, usual.activate], ["run", URL, 9, 30_000, false]);
  const given = readSettings(["--concurrency", "2", "--project", root, "--activate", "--drain-seconds", "0"], env);
  assert.ok(given !== "help");
  assert.deepEqual([given.project, given.concurrency, given.drainMs, given.activate], [root, 2, 0, true]);
  assert.equal(readSettings(["--help"], {}), "help");
  for (const option of ["--project", "--amqp", "--key-file", "--concurrency"]) assert.ok(HELP.includes(option));
});

test("mistakes in settings are refused and repeat no value", () => {
  for (const [args, env] of [
    [[], {}],
    [["--amqp", "s3cret"], {}],
    [["--amqp", "http://u:s3cret@h"], {}],
    [[], { RUNFLEET_AMQP_URL: URL, RUNFLEET_PROJECT_KEY_FILE: "/s3cret" }],
    [["--s3cret"], {}],
    [["s3cret"], {}],
    [["--concurrency", "s3cret"], { RUNFLEET_AMQP_URL: URL, RUNFLEET_PROJECT_KEY_FILE: "/dev/null" }],
    [["--concurrency", "65"], { RUNFLEET_AMQP_URL: URL, RUNFLEET_PROJECT_KEY_FILE: "/dev/null" }],
    [["dev", "s3cret"], {}],
    [["dev", "script", "x", "--input", "s3cret"], { RUNFLEET_AMQP_URL: URL, RUNFLEET_PROJECT_KEY_FILE: "/dev/null" }],
  ] as const) {
    assert.throws(() => readSettings(args, env), (error) => error instanceof SettingsError && !error.message.includes("s3cret"), args.join(" "));
  }
});

test("a key says whose it is, and what is no key says nothing", () => {
  assert.deepEqual(readKey(projectKey({ exp: 5 })), { workspace: "acme", project: "shop", expiresAt: 5 });
  for (const bad of ["", "a.b", "a.b.c", "a.b.c.d", projectKey({ workspace: "a.b" }), projectKey({ project: undefined }), `x.${btoa("[1]")}.y`]) {
    assert.equal(readKey(bad), undefined, bad);
  }
  assert.equal(userOf(projectKey({ user: "ada" })), "ada");
  assert.equal(userOf(undefined), null);
  assert.equal(userOf("nothing"), null);
});

test("a log line is one JSON object, of a wanted level, cut to a bound", () => {
  const lines: string[] = [];
  const log = logTo((line) => lines.push(line), "info");
  log("debug", "no");
  log("warn", "two\nlines", { fact: "x".repeat(10_000), count: 1, none: undefined });
  assert.equal(lines.length, 1);
  const line = JSON.parse(lines[0] ?? "") as Record<string, unknown>;
  assert.deepEqual([line["level"], line["message"], line["count"], line["worker"]], ["WARN", "two\nlines", 1, "host"]);
  assert.ok(String(line["fact"]).length < 5_000 && !("none" in line));
});

test("progress is cut between characters and loses nothing", () => {
  const text = `${"é".repeat(9_000)}🙂${"x".repeat(20_000)}`;
  const found = parts(text);
  assert.equal(found.join(""), text);
  assert.ok(found.every((part) => Buffer.byteLength(part) <= 8_192));
  assert.deepEqual(parts(""), []);
});

test("progress is told in order, one report at a time, and the oldest goes when nobody takes it", async () => {
  const told: string[] = [];
  let release: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const progress = new Progress(async (text) => {
    told.push(text);
    await held;
  });
  for (let number = 0; number < 1_000; number += 1) progress.add(String(number));
  assert.deepEqual(told, ["0"]);
  release();
  await progress.end();
  assert.equal(told.length, 257);
  assert.equal(told.at(-1), "999");
});

test("an answer is remembered, one under way is waited for, and what was not done is done again", async () => {
  const once = new Once();
  let count = 0;
  const work = async (): Promise<Buffer> => {
    count += 1;
    await new Promise((resolve) => setTimeout(resolve, 10));
    return Buffer.from("done");
  };
  const both = await Promise.all([once.run("a", work), once.run("a", work)]);
  assert.deepEqual([both.map(String), count], [["done", "done"], 1]);
  await once.run("a", work);
  assert.equal(count, 1);
  assert.equal(await once.run("b", () => Promise.resolve(undefined)), undefined);
  assert.equal(String(await once.run("b", work)), "done");
  await assert.rejects(once.run("c", () => Promise.reject(new Error("no"))));
  assert.equal(String(await once.run("c", work)), "done");
});

test("the memory of answers is bounded in number and in bytes", async () => {
  const once = new Once();
  let count = 0;
  const work = (bytes: number) => () => {
    count += 1;
    return Promise.resolve(Buffer.alloc(bytes));
  };
  for (let number = 0; number <= 2_000; number += 1) await once.run(`a${number}`, work(1));
  await once.run("a0", work(1));
  assert.equal(count, 2_002, "the oldest was forgotten");
  await once.run("a2000", work(1));
  assert.equal(count, 2_002, "the newest was not");
  await once.run("large", work(40 * 1_048_576));
  await once.run("a2000", work(1));
  assert.equal(count, 2_004, "a large answer takes the place of all");
});
