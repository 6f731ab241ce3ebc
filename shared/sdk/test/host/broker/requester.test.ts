/** Requests over a real broker: every way in which an answer does not come, and whether something may have been done. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Link } from "../../../src/host/amqp/link.js";
import { type Ask, REQUEST_BYTES_MAX, Requester } from "../../../src/host/amqp/requester.js";
import { Fleet, type Test } from "../fleet.js";
import { until } from "../project.js";

function asking(test: Test, url: string): Requester {
  const requester = new Requester();
  const link = new Link(url, "test", () => undefined, (connection) => requester.use(connection));
  link.start();
  test.after(() => link.stop());
  return requester;
}

const ask = (operation: string, ms: number, payload = "{}"): Ask => ({ operation, payload, token: "token", deadline: Date.now() + ms });
const passing = (writesMayHaveCompleted: boolean) => ({ code: "RETRYABLE", details: { writesMayHaveCompleted } });

/** What a program needs of a reply that is an error. */
async function error(reply: ReturnType<Requester["ask"]>): Promise<unknown> {
  const got = await reply;
  assert.ok(!got.ok);
  return { code: got.error.code, details: got.error.details };
}

test("each of many requests at once gets its own answer", async (context) => {
  const fleet = await Fleet.start(context);
  fleet.operations.set("echo", (payload) => payload);
  const requester = asking(context, fleet.url);
  const replies = await Promise.all(Array.from({ length: 200 }, (_, n) => requester.ask(ask("echo", 10_000, `{"n":${n}}`))));
  replies.forEach((reply, n) => assert.deepEqual(reply, { ok: true, data: { n } }));
});

/** CG-126 */
test("a request that is not answered in time may have been done", async (context) => {
  const fleet = await Fleet.start(context);
  fleet.operations.set("silent", () => undefined);
  const requester = asking(context, fleet.url);
  const began = Date.now();
  assert.deepEqual(await error(requester.ask(ask("silent", 2_000))), passing(true));
  assert.ok(Date.now() - began < 5_000);
  assert.equal(fleet.requests("silent").length, 1);
});

/** CG-126 */
test("a request that never reached a queue was not done", async (context) => {
  const fleet = await Fleet.start(context);
  const nobody = asking(context, "amqp://127.0.0.1:1/");
  assert.deepEqual(await error(nobody.ask(ask("echo", 500))), passing(false));
  const requester = asking(context, fleet.url);
  await fleet.unbind();
  assert.deepEqual(await error(requester.ask(ask("echo", 2_000))), passing(false));
});

test("a request that is too large is refused and not sent", async (context) => {
  const fleet = await Fleet.start(context);
  const requester = asking(context, fleet.url);
  const refused = (await error(requester.ask(ask("echo", 2_000, JSON.stringify("x".repeat(REQUEST_BYTES_MAX)))))) as { code: string };
  assert.equal(refused.code, "VALIDATION_ERROR");
  assert.equal(fleet.asked.length, 0);
});

test("a request under way is sent again after its connection is lost, under the same id, and the first answer counts", async (context) => {
  const fleet = await Fleet.start(context);
  let answers = false;
  fleet.operations.set("slow", (_, asked) => (answers ? { id: asked.id } : undefined));
  const requester = asking(context, fleet.url);
  const reply = requester.ask(ask("slow", 20_000));
  await until("it was sent", () => fleet.requests("slow").length === 1);
  answers = true;
  await until("a connection to cut", async () => (await fleet.cut()) > 0);
  const [first] = fleet.requests("slow");
  assert.deepEqual(await reply, { ok: true, data: { id: first?.id } });
  assert.ok(fleet.requests("slow").length > 1);
});
