/** Loading projects: what is found, and that one broken file stops no other. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { logTo } from "../../../src/host/logs.js";
import { load } from "../../../src/host/project/load.js";
import { project } from "../project.js";

const quiet = logTo(() => undefined, "error");
const script = (name: string) => `export default { kind: "script", name: ${JSON.stringify(name)}, handler: () => null };\n`;

async function loaded(context: { after(fn: () => void): void }, files: Readonly<Record<string, string>>) {
  const found = await load({ project: project(context, files), memoryMb: 64 }, quiet);
  await found.thread.stop();
  return found;
}

/** NB-03 */
test("one broken file never stops the others and is reported by name", async (context) => {
  const { manifest, problems } = await loaded(context, {
    "src/a.ts": script("a"),
    "src/no-syntax.ts": "export default {",
    "src/ends.ts": "process.exit(0);",
    "src/throws.ts": "throw new Error('at load');",
    "src/imports-nothing.ts": "import './nothing-there';",
    "src/z.ts": script("z"),
  });
  assert.deepEqual(manifest.scripts, ["a", "z"]);
  assert.deepEqual(problems.map(({ file }) => file).sort(), ["src/ends.ts", "src/imports-nothing.ts", "src/no-syntax.ts", "src/throws.ts"]);
});

test("imports find TypeScript without an ending, by its compiled name, in folders, and JSON", async (context) => {
  const { manifest, problems } = await loaded(context, {
    "src/main.ts": `
      import { one } from "./lib/one";
      import { one as again } from "./lib/one.js";
      import two from "./two";
      import data from "./data.json";
      import { three } from "../lib/three";
      if (one !== again) throw new Error("two modules for one file");
      export default { kind: "script", name: [one, two, data.four, three].join(""), handler: () => null };`,
    "src/lib/one.ts": "export const one = 'o';",
    "src/two/index.ts": "export default 't';",
    "src/data.json": '{"four": "f"}',
    "lib/three.ts": "export const three = 'h';",
  });
  assert.deepEqual(problems, []);
  assert.deepEqual(manifest.scripts, ["otfh"]);
});

test("every name of the SDK leads to one SDK", async (context) => {
  const { manifest, problems } = await loaded(context, {
    "src/main.ts": `
      import { RetryableError as a } from "@cogover/sdk";
      import { RetryableError as b } from "@runfleet/sdk";
      export default { kind: "script", name: a === b ? "one" : "two", handler: () => null };`,
  });
  assert.deepEqual(problems, []);
  assert.deepEqual(manifest.scripts, ["one"]);
});

test("tests, type declarations, hidden files and packages are no code of the project", async (context) => {
  const bad = "throw new Error('must not be loaded');";
  const { manifest, problems } = await loaded(context, {
    "src/a.ts": script("a"),
    "src/a.test.ts": bad,
    "src/types.d.ts": "declare const nothing: number;",
    "src/.hidden.ts": bad,
    "src/node_modules/x/index.ts": bad,
    "elsewhere/b.ts": bad,
  });
  assert.deepEqual(problems, []);
  assert.deepEqual(manifest.scripts, ["a"]);
});

test("the second unit of a name is left out and reported", async (context) => {
  const { manifest, problems } = await loaded(context, { "src/a.ts": script("same"), "src/b.ts": script("same") });
  assert.deepEqual(manifest.scripts, ["same"]);
  assert.deepEqual(problems.map(({ file }) => file), ["src/b.ts"]);
});

test("the version changes with any file and with nothing else", async (context) => {
  const files = { "src/a.ts": script("a"), "package.json": '{"version": "1.2.3"}' };
  const first = await loaded(context, files);
  const same = await loaded(context, files);
  const other = await loaded(context, { ...files, "src/a.ts": `${script("a")}// more\n` });
  assert.match(first.version, /^1\.2\.3\+[0-9a-f]{16}$/);
  assert.equal(same.version, first.version);
  assert.notEqual(other.version, first.version);
});
