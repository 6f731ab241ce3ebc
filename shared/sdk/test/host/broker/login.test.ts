/** Logging in: what a host registers, and when it gives up. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { Fleet, Host, projectKey } from "../fleet.js";
import { project, until } from "../project.js";

const CODE = `
import { defineJob, defineScript } from "@cogover/sdk";
export const jobs = [defineJob({ key: "nightly", timeoutMs: 5_000, schedule: { cron: "0 3 * * *", timezone: "Europe/Berlin" } }, () => {})];
export const scripts = [defineScript({ name: "one" }, () => {})];
`;

test("a host registers what its project declares, with its key, and then makes the version active", async (context) => {
  const fleet = await Fleet.start(context);
  const host = Host.start(context, fleet, project(context, { "src/main.ts": CODE, "src/broken.ts": "export {" }));
  await host.taking();
  const [registered] = fleet.requests("projects.register");
  assert.equal(registered?.payload["version"], "1");
  assert.deepEqual(registered?.payload["scripts"], ["one"]);
  assert.deepEqual((registered?.payload["jobs"] as Record<string, unknown>[])[0]?.["schedule"], { cron: "0 3 * * *", timeZone: "Europe/Berlin" });
  assert.equal(String(registered?.token).split(".").length, 3);
  assert.ok(fleet.requests("projects.show").every(({ payload }) => (payload["host"] as { version: string }).version === "1"));
  const text = JSON.stringify(host.lines) + host.errors;
  assert.ok(!text.includes(String(registered?.token)));
  assert.ok(!text.includes(new URL(fleet.url).password));
  assert.ok(host.lines.some((line) => line["file"] === "src/broken.ts" && line.level === "ERROR"));
});

test("a key or a version that is refused ends the host with 78 and a line that says why", async (context) => {
  const fleet = await Fleet.start(context);
  const details = { field: "jobs[0].key", problem: "is taken" };
  fleet.operations.set("projects.register", () => ({ error: { code: "VALIDATION_ERROR", message: "The request is not valid.", details } }));
  const host = Host.start(context, fleet, project(context, { "src/main.ts": CODE }));
  assert.equal(await host.ended, 78);
  assert.ok(host.lines.some((line) => line.message.includes("jobs[0].key is taken")));
});

test("a fleet that does not answer yet is waited for, and a signal ends the waiting", async (context) => {
  const fleet = await Fleet.start(context);
  fleet.operations.set("projects.register", () => ({ error: { code: "RETRYABLE", message: "", details: { writesMayHaveCompleted: false } } }));
  const host = Host.start(context, fleet, project(context, { "src/main.ts": CODE }));
  await until("two tries", () => fleet.requests("projects.register").length >= 2);
  host.process.kill("SIGTERM");
  assert.equal(await host.ended, 0);
});

test("dev runs one piece of the project here with a session of its own", async (context) => {
  const fleet = await Fleet.start(context);
  const session = projectKey({ source: "development" });
  fleet.operations.set("projects.session", () => ({ token: session, expiresAt: 0 }));
  fleet.operations.set("processes.start", () => ({ instanceId: "PI1", duplicate: false }));
  const code = `
    import { defineScript } from "@cogover/sdk";
    export default defineScript({ name: "start" }, async ({ input, processes }) => {
      let refused = "";
      try {
        await processes.start("p", { onComplete: { job: "nightly" } });
      } catch (error) {
        refused = (error as { code: string }).code;
      }
      return { input, refused, started: await processes.start("p") };
    });`;
  const root = project(context, { "src/main.ts": code });
  writeFileSync(join(root, ".key"), projectKey());
  const host = Host.start(context, fleet, root, ["dev", "script", "start", "--input", '{"a":1}']);
  let printed = "";
  host.process.stdout?.on("data", (text: string) => {
    printed += text;
  });
  assert.equal(await host.ended, 0, host.errors);
  /** CG-170, CG-172 */
  assert.deepEqual(JSON.parse(printed), { input: { a: 1 }, refused: "NOT_SUPPORTED", started: { instanceId: "PI1", duplicate: false } });
  assert.deepEqual(fleet.requests("processes.start").map(({ token }) => token), [session]);
});
