/**
 * Tools of agents and tasks of Processes: `host.request.v1` in; `host.accepted.v1`, `host.progress.v1` and `host.answer.v1` out.
 *
 * A task is carried out by the script of its name: the task's variables are the script's input, and what it returns is given to the run.
 * All hosts of a project share one queue of requests. What this version does not declare goes back a few times, for a host that has it.
 */

import type { Delivery, Handler } from "../amqp/consumer.js";
import type { Publisher } from "../amqp/publisher.js";
import type { ToolConversation } from "../../generated/contract.js";
import { userOf } from "../key.js";
import type { ExecutionFacts } from "../run/protocol.js";
import { type Outcome, type Shop, execute, tokenOf, traceOf } from "./execute.js";
import { Progress } from "./progress.js";
import { type Fields, isObject } from "./read.js";
import { ANSWERS, type Asked, json, RETURNS_MAX, telling } from "./tell.js";

/** Time that an answer needs to get back before its deadline, in milliseconds. */
const WAY_BACK_MS = 250;

/** Largest result, in bytes of its JSON: the answer around it has to fit too. */
const RESULT_BYTES_MAX = 196_608;

/**
 * Deliveries after which nobody is taken to have what is asked for. Each costs a second (the pause of the consumer), so that hosts of
 * another version have found out by then that theirs is the active one.
 */
const ELSEWHERE_MAX = 4;

/** Handles the task queue of the project. */
export function requests(shop: Shop, publisher: Publisher): Handler {
  return telling(publisher, shop.log, (kind, fields, delivery) =>
    kind === "host.request.v1" && fields.text("workspace") === shop.workspace && fields.text("project") === shop.project
      ? asked(shop, publisher, fields, delivery)
      : undefined,
  );
}

function asked(shop: Shop, publisher: Publisher, fields: Fields, delivery: Delivery): Asked | undefined {
  const [requestId, kind, name] = [fields.text("requestId"), fields.text("kind"), fields.text("name")];
  const [runId, instance, attempt] = [fields.text("runId"), fields.count("instance"), fields.count("attempt")];
  const [deadline, answerKey] = [fields.count("deadline"), fields.textOrNull("answerKey")];
  if (kind !== "tool" && kind !== "task") return undefined;
  const tool = kind === "tool";
  const unit = tool ? ("tool" as const) : ("script" as const);
  const same = { requestId, workspace: shop.workspace, project: shop.project, runId, instance, attempt };
  const answer = (outcome: unknown): Buffer => json({ ...same, ...(answerKey === null ? {} : { answerKey }), outcome });
  const callId = fields.textOrNull("elementId") ?? requestId;
  return {
    id: requestId,
    deadline,
    answerKind: "host.answer.v1",
    answerId: `answer:${requestId}`,
    work: async (tell) => {
      if (!shop.index.has(`${unit}:${name}`)) {
        if (delivery.returns < ELSEWHERE_MAX) return undefined;
        // A Process has attempts of its own: at the next one there may be a host that has it.
        return answer(tool ? failed("TOOL_NOT_DECLARED", false) : failed("TASK_NOT_DECLARED", true));
      }
      if (delivery.returns >= RETURNS_MAX) {
        shop.log("error", "a request has come back too often and is given up", { id: requestId, returns: delivery.returns });
        return answer(failed("HOST_CRASHED", false));
      }
      const progress = new Progress((text, seq) => {
        const { workspace, project } = shop;
        const told = { requestId, workspace, project, ...(answerKey === null ? {} : { answerKey }), seq, chunk: text };
        const [body, id] = [json(told), `progress:${requestId}:${seq}`];
        return publisher.once({ exchange: ANSWERS, key: delivery.replyTo ?? "", kind: "host.progress.v1", id, body });
      });
      const accepted = json({ requestId, until: deadline });
      const outcome = await execute(shop, {
        kind: unit,
        name,
        urgency: tool ? "tool" : "job",
        input: fields.json("variables"),
        facts: { id: requestId, user: userOf(tokenOf(delivery)), readOnly: false, ...(tool ? { toolCallId: callId, ...valuesOf(fields) } : {}) },
        timeoutMs: Math.max(50, deadline - Date.now() - WAY_BACK_MS),
        beginBy: deadline - WAY_BACK_MS,
        token: tokenOf(delivery),
        traceparent: traceOf(delivery),
        began: () => tell({ kind: "host.accepted.v1", id: `accepted:${requestId}`, body: accepted }),
        chunk: (text) => progress.add(text),
      });
      await progress.end();
      if (outcome.how === "stopped") return undefined;
      return answer(tool ? toolOutcome(outcome) : taskOutcome(outcome));
    },
  };
}

/** What the agent is working on, as tools that were written for other packages look for it. */
function valuesOf(fields: Fields): Pick<ExecutionFacts, "values"> {
  const given = fields.raw["conversation"];
  if (!isObject(given)) return {};
  const { model, ...rest } = given as unknown as ToolConversation;
  return { values: { ...rest, model: { model } } };
}

type Ending = Exclude<Outcome, { how: "stopped" }>;

/** A model is told what a tool returns; an exception becomes an error result, so that the conversation goes on. */
function toolOutcome(outcome: Ending): unknown {
  if (outcome.how === "done") {
    if (Buffer.byteLength(outcome.result) > RESULT_BYTES_MAX) return { ok: { status: "error", content: "The result is too large." } };
    const result: unknown = JSON.parse(outcome.result);
    return { ok: isObject(result) ? result : { status: "success", content: result } };
  }
  if (outcome.how === "failed") return failed(outcome.scriptErrorCode ?? outcome.code, outcome.retryable);
  return failed(codeOf(outcome), outcome.how === "late");
}

/** A known error is one that the Process may catch; everything else is a failure. */
function taskOutcome(outcome: Ending): unknown {
  if (outcome.how === "done") {
    if (Buffer.byteLength(outcome.result) > RESULT_BYTES_MAX) return failed("RESULT_TOO_LARGE", false);
    const result: unknown = JSON.parse(outcome.result);
    return { ok: isObject(result) ? result : result === null ? {} : { result } };
  }
  if (outcome.how !== "failed") return failed(codeOf(outcome), outcome.how === "late");
  const code = outcome.scriptErrorCode ?? outcome.code;
  if (outcome.retryable || code === "SCRIPT_ERROR") return failed(code, outcome.retryable);
  return { error: { code, variables: {} } };
}

function codeOf(outcome: Exclude<Ending, { how: "done" | "failed" }>): string {
  if (outcome.how === "late") return "TIMEOUT";
  return outcome.how === "killed" ? "RATE_LIMITED" : outcome.code;
}

function failed(code: string, retry: boolean): unknown {
  return { failed: { code, retry } };
}
