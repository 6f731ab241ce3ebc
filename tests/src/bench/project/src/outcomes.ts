/**
 * The jobs that get the outcomes of measured runs. Each tells when its handler was at its end, by the clock of this machine, and how
 * its run has ended; the benchmark reads that from the log of the host.
 */

import { type AgentResultJobPayload, defineJob, type ProcessCompletionJobPayload } from "@cogover/sdk";

/** Unix milliseconds, finer than `Date.now()`. */
const now = (): number => performance.timeOrigin + performance.now();

export const jobs = [
  defineJob<ProcessCompletionJobPayload>({ key: "discount_decided" }, ({ job, payload, log }) => {
    log.info("handled", { job: job.id, ended: payload?.process.state ?? null, at: now() });
  }),
  defineJob<AgentResultJobPayload>({ key: "deal_coached" }, ({ job, payload, log }) => {
    log.info("handled", { job: job.id, ended: payload?.agentRun.status ?? null, at: now() });
  }),
];
