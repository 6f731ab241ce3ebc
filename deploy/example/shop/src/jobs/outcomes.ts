import { type AgentResultJobPayload, defineJob, type ProcessCompletionJobPayload } from "@cogover/sdk";

/** What `look-at-deal` gives along. */
interface Deal {
  readonly deal: string;
}

/** What `advice` describes. */
interface Advice {
  readonly nextStep: string;
  readonly urgency: "now" | "this week" | "later";
  readonly discount?: number;
}

/**
 * Jobs that get outcomes. Each may run more than once, and what it gets may be null: somebody could enqueue it by hand.
 */
export const jobs = [
  defineJob<ProcessCompletionJobPayload<Deal>>({ key: "discount_decided", name: "A discount was decided" }, ({ payload, job, log }) => {
    const process = payload?.process;
    log.info("a discount was decided", { job: job.id, deal: payload?.payload?.deal ?? null, state: process?.state ?? null, approved: process?.output?.["approved"] ?? null });
  }),
  defineJob<AgentResultJobPayload<Deal, Advice>>({ key: "deal_coached", name: "An agent has looked at a deal" }, async ({ payload, job, jobs, log }) => {
    const run = payload?.agentRun;
    log.info("an agent has looked at a deal", { job: job.id, status: run?.status ?? null, urgency: run?.result?.urgency ?? null, told: run?.delivery?.status ?? null });
    // A run that has failed for good is looked at by a person.
    if (run !== undefined && run.status !== "COMPLETED") {
      await jobs.enqueue("look_again", { run: run.runId, error: run.error?.code ?? null }, { delayMs: 60_000, idempotencyKey: job.id });
    }
  }),
  defineJob({ key: "look_again", name: "Somebody should look at a run", maxAttempts: 3 }, ({ payload, log }) => {
    log.warn("a run of an agent has failed", payload);
  }),
  defineJob({ key: "count_done", name: "A count has ended", timeoutMs: 10_000, maxAttempts: 3 }, ({ job, log }) => {
    log.info("a count has ended", { job: job.id });
  }),
];
