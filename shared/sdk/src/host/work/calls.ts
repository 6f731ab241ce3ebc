/**
 * Calls of scripts, routes, triggers and actions that somebody waits for: `host.call.v1` in, `host.callanswer.v1` out.
 */

import type { Delivery, Handler } from "../amqp/consumer.js";
import type { Publisher } from "../amqp/publisher.js";
import type { UnitKind } from "../run/protocol.js";
import { type Outcome, type Shop, execute, tokenOf, traceOf } from "./execute.js";
import type { Fields } from "./read.js";
import { type Asked, json, telling } from "./tell.js";

/** Largest value of an answer, in bytes of its JSON. */
const VALUE_BYTES_MAX = 196_608;

/** Time that an answer needs to get back before its deadline, in milliseconds. */
const WAY_BACK_MS = 250;

const KINDS: ReadonlySet<string> = new Set(["script", "route", "trigger", "action"]);

/** Handles the call queue of this version. */
export function calls(shop: Shop, publisher: Publisher): Handler {
  return telling(publisher, shop.log, (kind, fields, delivery) =>
    kind === "host.call.v1" && fields.text("workspace") === shop.workspace && fields.text("project") === shop.project
      ? asked(shop, fields, delivery)
      : undefined,
  );
}

function asked(shop: Shop, fields: Fields, delivery: Delivery): Asked | undefined {
  const [callId, attempt, kind, name] = [fields.text("callId"), fields.count("attempt"), fields.text("kind"), fields.text("name")];
  if (!KINDS.has(kind)) return undefined;
  const answerKey = fields.textOrNull("answerKey");
  const answer = (outcome: unknown): Buffer =>
    json({ callId, attempt, workspace: shop.workspace, project: shop.project, ...(answerKey === null ? {} : { answerKey }), outcome });
  const [deadline, runId, user, input] = [fields.count("deadline"), fields.textOrNull("runId"), fields.textOrNull("user"), fields.json("input")];
  const readOnly = fields.raw["readOnly"] === true;
  return {
    id: `${callId}.${attempt}`,
    deadline,
    answerKind: "host.callanswer.v1",
    answerId: `answer:${callId}.${attempt}`,
    work: async () => {
      if (!shop.index.has(`${kind}:${name}`)) return answer(failed("NOT_FOUND"));
      let began = false;
      const outcome = await execute(shop, {
        kind: kind as UnitKind,
        name,
        urgency: "call",
        input,
        facts: { id: callId, user, readOnly, ...(runId === null ? {} : { runId }) },
        timeoutMs: Math.max(50, deadline - Date.now() - WAY_BACK_MS),
        beginBy: deadline - WAY_BACK_MS,
        token: tokenOf(delivery),
        traceparent: traceOf(delivery),
        began: () => {
          began = true;
        },
      });
      return outcome.how === "stopped" ? undefined : answer(outcomeOf(outcome, began));
    },
  };
}

function outcomeOf(outcome: Exclude<Outcome, { how: "stopped" }>, began: boolean): unknown {
  switch (outcome.how) {
    case "done":
      if (Buffer.byteLength(outcome.result) > VALUE_BYTES_MAX) return failed("OUTPUT_INVALID");
      return { ok: JSON.parse(outcome.result) as unknown };
    case "failed": {
      const { how: _how, retryable: _retryable, trace: _trace, text: _text, ...told } = outcome;
      return { failed: told };
    }
    case "late":
      return failed("TIMEOUT", { writesMayHaveCompleted: began });
    case "killed":
      return failed("RATE_LIMITED");
    case "crashed":
      return failed("SCRIPT_ERROR", { scriptErrorCode: outcome.code });
  }
}

function failed(code: string, more: Readonly<Record<string, unknown>> = {}): unknown {
  return { failed: { code, ...more } };
}
