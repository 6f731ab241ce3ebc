/** Runs the handler of a definition and turns every ending into an answer. Never throws. Time and crashes are the host's matter. */
import type { ActionDefinition } from "../define/action.js";
import type { JobInfo } from "../define/job.js";
import { answerOf, response, type RequestMethod, type ScriptRequest } from "../define/response.js";
import type { RouteDefinition } from "../define/route.js";
import type { TriggerDefinition } from "../define/trigger.js";
import { badField, isPlainObject, jsonText } from "../json.js";
import { checkValue } from "../schema/check.js";
import type { SchemaProblem } from "../schema/types.js";
import { type Apis, createApis } from "./apis.js";
import type { Definition } from "./collect.js";
import type { Call, ExecutionInfo } from "./execution.js";
import { type Failure, failureOf } from "./failure.js";
import { changeOf } from "./trigger.js";

/** What a handler is to do. */
export interface Invocation {
  readonly definition: Definition;
  /** Input of a call, or payload of a job. */
  readonly input: unknown;
  /** The run of a job. */
  readonly job?: JobInfo;
  /** The call of an action. */
  readonly runId?: string | null;
}

/** How it has gone. */
export type Ending = { readonly ok: unknown } | { readonly failed: Failure };

/** Largest value that a caller gets, in bytes of its JSON text. */
export const VALUE_BYTES_MAX = 196_608;

/** A value that does not fit its schema. */
class Misfit extends Error {
  readonly code: "INPUT_INVALID" | "OUTPUT_INVALID";
  readonly problems: readonly SchemaProblem[];

  constructor(code: Misfit["code"], problems: readonly SchemaProblem[]) {
    super(code);
    this.code = code;
    this.problems = problems;
  }
}

/** Runs a handler. */
export async function invoke(invocation: Invocation, call: Call, execution: ExecutionInfo): Promise<Ending> {
  const apis = createApis(call, narrowed(invocation.definition, execution));
  try {
    return { ok: await run(invocation, apis) };
  } catch (error) {
    const wrote = apis.writesSent();
    if (!(error instanceof Misfit)) return { failed: failureOf(error, wrote) };
    const { code, problems } = error;
    return { failed: { code, problems, retryable: false, ...(wrote ? { writesMayHaveCompleted: true } : {}) } };
  }
}

/** What a definition says about itself binds its code, whatever the token allows. */
function narrowed(definition: Definition, execution: ExecutionInfo): ExecutionInfo {
  if (definition.kind === "trigger" && definition.config.timing === "beforeChange") return { ...execution, source: "trigger-before" };
  if (definition.kind === "action" && definition.config.effect === "read") return { ...execution, readOnly: true };
  return execution;
}

async function run({ definition, input, job, runId }: Invocation, apis: Apis): Promise<unknown> {
  const base = contextOf(apis);
  switch (definition.kind) {
    case "job": {
      // What a job returns is nobody's business.
      await definition.handler({ ...base, job, payload: input ?? null } as never);
      return null;
    }
    case "script": {
      const request: ScriptRequest = { method: "POST", path: "/", params: {}, query: {}, headers: {}, body: input };
      const value = await definition.handler({ ...base, input, request: Object.freeze(request), response } as never);
      return json(answerOf(value) ?? value);
    }
    case "route":
      return route(definition, input, base);
    case "trigger":
      return trigger(definition, input, runId, base);
    case "action":
      return action(definition, input, runId, base);
  }
}

function contextOf(apis: Apis): Omit<Apis, "writesSent" | "models"> {
  const { processes, agents, jobs, data, log, invocation, signal } = apis;
  return { processes, agents, jobs, data, log, invocation, signal };
}

type Base = ReturnType<typeof contextOf>;

/** A value that JSON carries, and that a caller can be sent; null when nothing was returned. */
function json(value: unknown): unknown {
  if (value === undefined) return null;
  try {
    return JSON.parse(jsonText("output", value, VALUE_BYTES_MAX));
  } catch {
    throw new Misfit("OUTPUT_INVALID", [{ path: "", message: `must be a JSON value of at most ${VALUE_BYTES_MAX} bytes` }]);
  }
}

async function route(definition: RouteDefinition, input: unknown, base: Base): Promise<unknown> {
  const { method, path } = definition.config;
  const request = requestOf(method, path, input);
  const value = await definition.handler({ ...base, input: request.body, request, response } as never);
  return json(answerOf(value) ?? { status: 200, headers: { "content-type": "application/json; charset=utf-8" }, body: json(value) });
}

function requestOf(method: RequestMethod, template: string, input: unknown): ScriptRequest {
  if (input !== undefined && input !== null && !isPlainObject(input)) throw badInput("must be an object with params, query, headers and body");
  const { params = {}, query = {}, headers = {}, body = null, ...unknown } = input ?? {};
  if (Object.keys(unknown).length > 0) throw badInput("must hold nothing but params, query, headers and body");
  const isText = (value: unknown): boolean => typeof value === "string";
  const isTexts = (value: unknown): boolean => isText(value) || (Array.isArray(value) && value.every(isText));
  const fits = isPlainObject(params) && isPlainObject(query) && isPlainObject(headers)
    && Object.values(params).every(isText) && Object.values(headers).every(isText) && Object.values(query).every(isTexts);
  if (!fits) throw badInput("must have texts as params, query and headers");
  const path = template.split("/").map((part) => (part.startsWith(":") ? paramOf(params, part.slice(1)) : part)).join("/");
  const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  const parts = { params: Object.freeze({ ...params }), query: Object.freeze({ ...query }), headers: Object.freeze(lower) };
  return Object.freeze({ method, path, ...parts, body }) as ScriptRequest;
}

function paramOf(params: Readonly<Record<string, unknown>>, name: string): string {
  const value = Object.hasOwn(params, name) ? params[name] : undefined;
  if (typeof value !== "string" || value === "") throw new Misfit("INPUT_INVALID", [{ path: `/params/${name}`, message: "is required" }]);
  return encodeURIComponent(value);
}

function badInput(message: string): Misfit {
  return new Misfit("INPUT_INVALID", [{ path: "", message }]);
}

async function trigger(definition: TriggerDefinition, input: unknown, runId: string | null | undefined, base: Base): Promise<unknown> {
  const change = changeOf(definition.config, input, runId, base.log);
  if ("problem" in change) throw badInput(change.problem);
  await definition.handler({ ...base, records: change.records, trigger: change.trigger } as never);
  return json(change.result());
}

async function action(definition: ActionDefinition, input: unknown, runId: string | null | undefined, base: Base): Promise<unknown> {
  const { key, config } = definition;
  if (typeof runId !== "string" || runId === "") throw badField("runId", "is required");
  const checked = checkValue(config.inputSchema, input);
  if (!checked.ok) throw new Misfit("INPUT_INVALID", checked.problems);
  const info = Object.freeze({ key, runId, effect: config.effect });
  const value = json(await definition.handler({ ...base, action: info } as never, checked.value as never));
  const output = checkValue(config.outputSchema, value);
  if (!output.ok) throw new Misfit("OUTPUT_INVALID", output.problems);
  return output.value;
}
