/** Every kind of code that a project has. What waits does so until the file is gone that it is told of. */
import { existsSync } from "node:fs";

import { type CogoverApiError, createRouter, defineAction, defineJob, defineScript, defineTrigger, s } from "@cogover/sdk";

/** The reason of a refusal, or its code. */
async function refusal(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return "none";
  } catch (error) {
    const { code, details } = error as CogoverApiError;
    return String(details?.["reason"] ?? code);
  }
}

async function held(file: unknown): Promise<void> {
  while (existsSync(String(file))) await new Promise((resolve) => setTimeout(resolve, 50));
}

export const jobs = [
  defineJob({ key: "noted" }, () => {}),
  defineJob({ key: "decided" }, () => {}),
  defineJob<{ hold: string }>({ key: "wait", timeoutMs: 60_000 }, async ({ payload, log }) => {
    log.info("begun", { by: "job" });
    await held(payload?.hold);
  }),
];

export const scripts = [
  // Carries out the tasks of its name too.
  defineScript<{ hold: string; by: string }>({ name: "wait" }, async ({ input, jobs, log }) => {
    await jobs.enqueue("noted", { by: input.by }, { idempotencyKey: input.by });
    log.info("begun", { by: input.by });
    await held(input.hold);
    return { answer: `held for ${input.by}` };
  }),
  defineScript({ name: "develop" }, async ({ processes, agents, jobs }) => {
    const outcome = { job: "decided" };
    const refused = [
      await refusal(processes.start("approve-discount", { input: { amount: 5 }, onComplete: outcome })),
      await refusal(agents.start("caller", { instruction: "say hello", onResult: outcome })),
    ];
    const process = await processes.start("approve-discount", { input: { amount: 5 } });
    const agent = await agents.start("caller", { instruction: "tell ada", deliverTo: { personnelId: "ada" } });
    const job = await jobs.enqueue("noted", { by: "development" });
    return { refused, process: process.instanceId, agent: agent.runId, job: job.runId };
  }),
];

export const triggers = [
  defineTrigger({ key: "deal_changed", object: "deal", timing: "afterChange", operations: ["update"], fields: ["stage"] }, async ({ records, trigger, jobs, processes }) => {
    for (const record of records) {
      const key = `${trigger.changeId}:${record.key}`;
      await processes.start("approve-discount", { input: { amount: 5 }, idempotencyKey: key, onComplete: { job: "decided" } });
      await jobs.enqueue("noted", { by: "trigger" }, { idempotencyKey: key });
    }
  }),
  defineTrigger({ key: "deal_checked", object: "deal", timing: "beforeChange", operations: ["update"], fields: ["stage"] }, async ({ records, processes, agents, jobs }) => {
    for (const record of records) {
      record.addError(null, await refusal(processes.start("approve-discount")));
      record.addError(null, await refusal(processes.get("PI1501JDX3Z8GF0000000000000000")));
      record.addError(null, await refusal(agents.start("caller", { instruction: "say hello" })));
      record.addError(null, await refusal(jobs.enqueue("noted")));
    }
  }),
];

export const actions = [
  defineAction({
    key: "look", effect: "read", input: s.object({ deal: s.string() }), output: s.object({ refused: s.string(), amount: s.number() }),
    handler: async ({ processes, data }, { deal }) => {
      const found = await data.object("deal").records.get(deal);
      return { refused: await refusal(processes.start("approve-discount")), amount: Number(found?.fields["amount"]) };
    },
  }),
  defineAction({
    key: "note", effect: "write", input: s.object({}), output: s.object({ job: s.string(), again: s.boolean() }),
    handler: async ({ action, jobs }) => {
      const { runId, duplicate } = await jobs.enqueue("noted", { by: "action" }, { idempotencyKey: action.runId });
      return { job: runId, again: duplicate };
    },
  }),
];

export default createRouter()
  .post<{ amount: number }>("/deals/:deal", async ({ input, request, response, jobs, invocation }) => {
    const { runId } = await jobs.enqueue("noted", { by: "route" });
    const told = { deal: request.params["deal"], amount: input.amount, job: runId, as: invocation.user?.membership.personnelId ?? null };
    return response.json(told, { status: 202 });
  })
  .toHandler();
