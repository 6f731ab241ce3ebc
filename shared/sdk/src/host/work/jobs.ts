/**
 * Attempts of background jobs: `job.run.v1` in, `job.accepted.v1` and `job.result.v1` out.
 */

import type { Delivery, Handler } from "../amqp/consumer.js";
import type { Publisher } from "../amqp/publisher.js";
import { type Outcome, type Shop, execute, tokenOf, traceOf } from "./execute.js";
import type { Fields } from "./read.js";
import { type Address, type Asked, json, RETURNS_MAX, telling } from "./tell.js";

/** Time of an attempt that states none, in milliseconds. */
const TIMEOUT_MS = 30_000;

/** Longest time of an attempt, in milliseconds. */
const TIMEOUT_MAX_MS = 600_000;

/** How an attempt failed. */
interface JobError {
  readonly code: string;
  readonly retryable: boolean;
}

/** Handles the job queue of the project. */
export function jobs(shop: Shop, publisher: Publisher): Handler {
  return telling(
    publisher,
    shop.log,
    (kind, fields, delivery) =>
      kind === "job.run.v1" && fields.text("workspace") === shop.workspace && fields.text("project") === shop.project
        ? asked(shop, fields, delivery)
        : undefined,
    dispatcher,
  );
}

/** Jobs that an older fleet has enqueued name no address, and wait in the queue until somebody takes them: their results go where they went. */
function dispatcher(delivery: Delivery): Address {
  const lane = delivery.headers["x-lane"] === "backfill" ? "backfill" : "interactive";
  return { exchange: "x.done", key: `completion-dispatcher.${lane}` };
}

function asked(shop: Shop, fields: Fields, delivery: Delivery): Asked {
  const [jobId, attempt, key] = [fields.text("jobId"), fields.count("attempt"), fields.text("job")];
  const result = (error?: JobError): Buffer =>
    json({ jobId, attempt, succeeded: error === undefined, ...(error === undefined ? {} : { error }) });
  const deadline = fields.countOr("deadline", Number.MAX_SAFE_INTEGER);
  const job = {
    id: jobId,
    key,
    attempt,
    maxAttempts: fields.countOr("maxAttempts", 1),
    source: fields.text("source"),
    runAt: fields.raw["runAt"] === null ? null : fields.countOr("runAt", 0) || null,
    enqueuedAt: fields.countOr("enqueuedAt", 0),
  };
  const [user, payload] = [fields.textOrNull("user"), fields.json("payload")];
  const timeoutMs = Math.min(fields.countOr("timeoutMs", TIMEOUT_MS), TIMEOUT_MAX_MS);
  return {
    id: `${jobId}:${attempt}`,
    deadline,
    answerKind: "job.result.v1",
    answerId: `result:${jobId}:${attempt}`,
    work: async (tell) => {
      // The dispatcher looks again whether the job is declared before the next attempt.
      if (!shop.index.has(`job:${key}`)) return result({ code: "JOB_NOT_DECLARED", retryable: true });
      if (delivery.returns >= RETURNS_MAX) {
        shop.log("error", "a job has come back too often and is given up", { id: jobId, returns: delivery.returns });
        return result({ code: "HOST_CRASHED", retryable: false });
      }
      const accepted = json({ jobId, attempt });
      const outcome = await execute(shop, {
        kind: "job",
        name: key,
        urgency: "job",
        input: payload,
        facts: { id: jobId, user, readOnly: false, job },
        timeoutMs,
        beginBy: deadline,
        token: tokenOf(delivery),
        traceparent: traceOf(delivery),
        began: () => tell({ kind: "job.accepted.v1", id: `accepted:${jobId}:${attempt}`, body: accepted }),
      });
      return outcome.how === "stopped" ? undefined : result(errorOf(outcome));
    },
  };
}

function errorOf(outcome: Exclude<Outcome, { how: "stopped" }>): JobError | undefined {
  switch (outcome.how) {
    case "done":
      return undefined;
    case "failed":
      return { code: outcome.scriptErrorCode ?? outcome.code, retryable: outcome.retryable };
    case "late":
      return { code: "JOB_TIMEOUT", retryable: true };
    case "killed":
      return { code: "RATE_LIMITED", retryable: false };
    case "crashed":
      return { code: outcome.code, retryable: outcome.code === "THREAD_FAILED" };
  }
}
