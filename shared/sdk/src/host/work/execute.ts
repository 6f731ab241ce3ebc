/**
 * Running one piece of project code for a message: its calls to the fleet, its budget of refused calls, and its log line. Knows
 * nothing of how the result is told.
 */

import type { Log } from "../logs.js";
import type { Requester } from "../amqp/requester.js";
import type { Delivery } from "../amqp/consumer.js";
import type { Pool, Result, Urgency } from "../run/pool.js";
import type { ExecutionFacts, Index, UnitKind } from "../run/protocol.js";

/** What every handler of messages needs. */
export interface Shop {
  readonly workspace: string;
  readonly project: string;
  readonly version: string;
  /** What is declared. */
  readonly index: Index;
  readonly pool: Pool;
  readonly requester: Requester;
  readonly log: Log;
  /** Whether texts of errors are logged: on a developer's machine only. */
  readonly showErrors: boolean;
}

/** What is to be executed. */
export interface Execution {
  readonly kind: UnitKind;
  readonly name: string;
  readonly urgency: Urgency;
  /** JSON. */
  readonly input: string;
  readonly facts: Omit<ExecutionFacts, "workspace" | "project" | "version" | "deadline" | "local"> & { readonly local?: boolean };
  readonly timeoutMs: number;
  /** Unix milliseconds. */
  readonly beginBy: number;
  readonly token: string | undefined;
  readonly traceparent?: string | undefined;
  readonly began?: () => void;
  readonly chunk?: (text: string) => void;
}

/** Longest wait for the answer to one call. */
const CALL_MS = 10_000;

/** Calls over a budget before the execution is ended. */
const REFUSED_MAX = 1_000;

/** How an execution ended; `killed` when it would not stop calling over its budget. */
export type Outcome = Result | { readonly how: "killed" };

/** Runs it to its end. Never rejects. */
export async function execute(shop: Shop, execution: Execution): Promise<Outcome> {
  const began = Date.now();
  const killed = new AbortController();
  const deadline = (): number => began + execution.timeoutMs;
  let refused = 0;
  const call = async (operation: string, payload: string): Promise<string> => {
    if (execution.token === undefined) return NOT_SUPPORTED;
    const reply = await shop.requester.ask({
      operation,
      payload,
      token: execution.token,
      deadline: Math.min(Date.now() + CALL_MS, Math.max(deadline(), Date.now() + 100)),
      ...(execution.traceparent === undefined ? {} : { traceparent: execution.traceparent }),
    });
    if (!reply.ok && reply.error.code === "RATE_LIMITED" && reply.error.details?.["budget"] !== undefined) refused += 1;
    if (refused >= REFUSED_MAX) killed.abort();
    return JSON.stringify(reply);
  };
  const facts: ExecutionFacts = {
    local: false,
    ...execution.facts,
    workspace: shop.workspace,
    project: shop.project,
    version: shop.version,
    deadline: Math.min(execution.beginBy, Date.now()) + execution.timeoutMs,
  };
  const result = await shop.pool.run({
    run: { kind: execution.kind, name: execution.name, input: execution.input, facts },
    urgency: execution.urgency,
    listener: { call, chunk: (text) => execution.chunk?.(text) },
    timeoutMs: execution.timeoutMs,
    beginBy: execution.beginBy,
    signal: killed.signal,
    ...(execution.began === undefined ? {} : { began: execution.began }),
  });
  const outcome: Outcome = killed.signal.aborted ? { how: "killed" } : result;
  say(shop, execution, outcome, Date.now() - began);
  return outcome;
}

const NOT_SUPPORTED = JSON.stringify({
  ok: false,
  error: { code: "NOT_SUPPORTED", message: "The operation is not available to this execution." },
});

function say(shop: Shop, execution: Execution, outcome: Outcome, ms: number): void {
  const facts = { unit: `${execution.kind}:${execution.name}`, id: execution.facts.id, ms };
  if (outcome.how === "done" || outcome.how === "failed") {
    const { trace } = outcome;
    const text = shop.showErrors ? outcome.text : undefined;
    const code = outcome.how === "failed" ? (outcome.scriptErrorCode ?? outcome.code) : undefined;
    const good = outcome.how === "done" && trace === undefined;
    shop.log(good ? "info" : "warn", good ? "a handler has ended" : "a handler has failed", { ...facts, code, trace, text });
  } else if (outcome.how === "crashed") shop.log("error", "a handler has ended its thread", { ...facts, code: outcome.code });
  else if (outcome.how === "killed") shop.log("error", "a handler was ended: it went on calling over its budget", facts);
  else if (outcome.how === "late") shop.log("warn", "a handler was too slow", facts);
}

/** The execution token of a message. */
export function tokenOf(delivery: Delivery): string | undefined {
  const token = delivery.headers["authorization"];
  return typeof token === "string" && token !== "" ? token.replace(/^Bearer /, "") : undefined;
}

/** The trace that a message belongs to. */
export function traceOf(delivery: Delivery): string | undefined {
  const trace = delivery.headers["traceparent"];
  return typeof trace === "string" ? trace : undefined;
}
