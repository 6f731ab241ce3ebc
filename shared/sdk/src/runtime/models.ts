/** Calls of a model through the fleet: charged and bounded like any other run of an agent. */
import { CogoverApiError, RetryableError } from "../errors.js";
import { badField, isPlainObject, jsonText } from "../json.js";
import type { AgentRunState } from "../runs.js";
import type { Execution } from "./execution.js";

/** A message to a model. */
export interface ModelMessage {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

/** Asks models. */
export interface ModelsApi {
  /** The answer of a model. Takes at most five minutes. */
  invoke(request: { readonly model?: string; readonly messages: readonly ModelMessage[] }): Promise<{ readonly text: string }>;
}

const MESSAGES_MAX = 50;
const MESSAGES_BYTES_MAX = 131_072;
/** Longest time that an answer is waited for. */
const ANSWER_MS_MAX = 300_000;
/** First pause between two looks at the run; each is half as long again, up to the last. Each look is a call of the execution. */
const LOOK_MS_FIRST = 200;
const LOOK_MS_LAST = 5_000;

/** Models that an execution may ask. */
export function modelsOf(execution: Execution): ModelsApi {
  return Object.freeze({
    async invoke(request: Parameters<ModelsApi["invoke"]>[0]) {
      execution.mayWrite();
      const { model, messages } = isPlainObject(request) ? request : { model: undefined, messages: undefined };
      check(model, messages);
      const payload = { ...(model === undefined ? {} : { model }), messages };
      const { runId } = (await execution.write("models.invoke", payload)) as { runId: string };
      return answerOf(await ended(execution, runId));
    },
  });
}

function check(model: unknown, messages: unknown): void {
  const fitsModel = model === undefined || (typeof model === "string" && /^[A-Za-z0-9_.:/-]{1,128}$/.test(model));
  if (!fitsModel) throw badField("model", "must be the name of a model");
  const isMessage = (message: unknown): boolean =>
    isPlainObject(message) && ["system", "user", "assistant"].includes(message["role"] as string) && typeof message["content"] === "string";
  const fits = Array.isArray(messages) && messages.length > 0 && messages.length <= MESSAGES_MAX && messages.every(isMessage);
  if (!fits) throw badField("messages", `must be a list of 1 to ${MESSAGES_MAX} messages with role and content`);
  jsonText("messages", messages, MESSAGES_BYTES_MAX);
}

async function ended(execution: Execution, runId: string): Promise<AgentRunState> {
  const until = Date.now() + ANSWER_MS_MAX;
  for (let pause = LOOK_MS_FIRST; Date.now() < until; pause = Math.min(pause * 1.5, LOOK_MS_LAST)) {
    await waited(pause, execution.info.signal);
    const state = (await execution.read("agents.get", { runId })) as AgentRunState;
    if (state.status !== "QUEUED" && state.status !== "RUNNING") return state;
  }
  throw new RetryableError("The model has not answered in time.", { writesMayHaveCompleted: true, runId });
}

function waited(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((done) => {
    const timer = setTimeout(end, ms);
    function end(): void {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      done();
    }
    // The next call of the execution notices that it was ended.
    if (signal?.aborted === true) end();
    else signal?.addEventListener("abort", end, { once: true });
  });
}

function answerOf({ status, text, error }: AgentRunState): { readonly text: string } {
  if (status === "COMPLETED") return { text: text ?? "" };
  throw new CogoverApiError(error?.code ?? "AGENT_ERROR", error?.message ?? "The model has given no answer.");
}
