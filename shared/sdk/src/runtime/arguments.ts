/**
 * Checks arguments before anything is sent. The generated schemas of the contract say most of it; what a schema cannot say (bytes,
 * pairs, what stands together) is here.
 */
import { tooMuch } from "../define/action.js";
import { ValidationError } from "../errors.js";
import { agentStart, processStart } from "../generated/schemas.js";
import { badField, characters, isPlainObject, jsonText } from "../json.js";
import type { AgentStartOptions, EnqueueOptions, OutcomeJobOptions, ProcessStartOptions } from "../runs.js";
import { isObjectSchema } from "../schema/builder.js";
import { checkJsonSchema } from "../schema/json-schema.js";
import type { JsonSchema } from "../schema/types.js";

/** Bytes of the values of a Process, of facts for an agent, and of the payload of a job. */
const VALUES_BYTES_MAX = 65_536;
/** Bytes of what an outcome job gets back. */
const ECHO_BYTES_MAX = 8_192;
/** Bytes of a whole request. */
const REQUEST_BYTES_MAX = 262_144;
const VARIABLES_MAX = 50;
const VARIABLE_NAME = /^[A-Za-z][A-Za-z0-9_]{0,63}$/;
const VARIABLE_CHARS_MAX = 32_768;
const DELAY_MS_MAX = 2_592_000_000;
const JOB_KEY = /^[A-Za-z][A-Za-z0-9_]{0,99}$/;
const IDEMPOTENCY_KEY = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;

/** What travels: the options that were given, and the id. */
type Payload = Readonly<Record<string, unknown>>;

/** Payload of `processes.start`. */
export function processStartPayload(processInfoId: string, options: ProcessStartOptions = {}): Payload {
  const payload = { ...given("options", options), processInfoId };
  conform(processStart, payload);
  const { input, onComplete } = options;
  if (input !== undefined) jsonText("input", input, VALUES_BYTES_MAX);
  if (onComplete !== undefined) echo("onComplete", onComplete);
  return bounded(payload);
}

/** Payload of `agents.start`. */
export function agentStartPayload(agentId: string, options: AgentStartOptions): Payload {
  const { resultSchema, ...rest } = given("options", options) as Partial<AgentStartOptions>;
  const schema = resultSchema === undefined ? {} : { resultSchema: schemaPayload(resultSchema) };
  const payload = { ...rest, ...schema, agentId };
  const { instruction } = rest;
  if (typeof instruction === "string" && instruction.trim() === "") throw badField("instruction", "must not be blank");
  conform(agentStart, payload);
  if (rest.variables !== undefined) variables(rest.variables);
  if (rest.records !== undefined) records(rest.records);
  if (rest.deliverTo?.title !== undefined) title(rest.deliverTo.title);
  if (rest.onResult !== undefined) echo("onResult", rest.onResult);
  return bounded(payload);
}

/** Payload of `jobs.enqueue`. */
export function enqueuePayload(job: string, value: unknown, options: EnqueueOptions = {}): Payload {
  const { delayMs, runAt, idempotencyKey, ...unknown } = given("options", options) as EnqueueOptions;
  if (typeof job !== "string" || !JOB_KEY.test(job)) throw badField("job", "must be a letter followed by at most 99 letters, digits and `_`");
  if (Object.keys(unknown).length > 0) throw badField("options", "has a property that is not known");
  if (delayMs !== undefined && runAt !== undefined) throw badField("runAt", "must not be given together with `delayMs`");
  if (delayMs !== undefined) whole("delayMs", delayMs, 0, DELAY_MS_MAX);
  if (runAt !== undefined) whole("runAt", runAt, 0, Date.now() + DELAY_MS_MAX);
  if (idempotencyKey !== undefined && !(typeof idempotencyKey === "string" && IDEMPOTENCY_KEY.test(idempotencyKey))) {
    throw badField("idempotencyKey", "must be a letter or digit followed by at most 127 letters, digits, `.`, `_`, `:` and `-`");
  }
  const empty = value === undefined || value === null;
  if (!empty) jsonText("payload", value, VALUES_BYTES_MAX);
  return { job, ...(empty ? {} : { payload: value }), ...given("options", { delayMs, runAt, idempotencyKey }) };
}

/** The id of a run that is asked for. Whether there is such a run is for the fleet to say. */
export function runId(field: string, id: unknown): string {
  if (typeof id !== "string" || id === "" || id.length > 128) throw badField(field, "must be the id of a run");
  return id;
}

/** An object without what is undefined. */
export function given(field: string, options: unknown): Payload {
  if (!isPlainObject(options)) throw badField(field, "must be an object");
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

/** Refuses a request that no worker would read. */
export function bounded(payload: Payload): Payload {
  const size = Buffer.byteLength(JSON.stringify(payload));
  if (size <= REQUEST_BYTES_MAX) return payload;
  throw new ValidationError("The request is too large.", { limit: REQUEST_BYTES_MAX, size });
}

function whole(field: string, value: unknown, least: number, most: number): void {
  const fits = typeof value === "number" && Number.isSafeInteger(value) && value >= least && value <= most;
  if (!fits) throw badField(field, `must be a whole number from ${least} to ${most}`);
}

/** Throws the first problem with the name of the option, as the fleet would say it. */
function conform(schema: unknown, payload: Payload): void {
  const result = checkJsonSchema(schema as JsonSchema, payload);
  const problem = result.ok ? undefined : result.problems[0];
  if (problem === undefined) return;
  const steps = problem.path.split("/").slice(1);
  const field = steps.reduce((at, step) => (/^\d+$/.test(step) ? `${at}[${step}]` : at === "" ? step : `${at}.${step}`), "");
  throw badField(field === "" ? "options" : field, problem.message);
}

function echo(field: string, { payload }: OutcomeJobOptions): void {
  if (payload !== undefined) jsonText(`${field}.payload`, payload, ECHO_BYTES_MAX);
}

function schemaPayload(schema: unknown): JsonSchema {
  if (!isObjectSchema(schema)) throw badField("resultSchema", "must be an object schema made by `s.object`");
  if (schema.isOptional) throw badField("resultSchema", "must not be optional");
  const problem = tooMuch(schema.toJSON());
  if (problem !== undefined) throw badField("resultSchema", problem);
  return schema.toJSON();
}

function variables(values: Payload): void {
  const entries = Object.entries(given("variables", values));
  if (entries.length > VARIABLES_MAX) throw badField("variables", `is too large: ${entries.length} entries, at most ${VARIABLES_MAX} are allowed`);
  for (const [name, value] of entries) {
    if (!VARIABLE_NAME.test(name)) throw badField("variables", "has a name that is not a letter followed by at most 63 letters, digits and `_`");
    const simple = typeof value === "string" || typeof value === "number" || typeof value === "boolean";
    if (!simple) throw badField(`variables.${name}`, "must be a string, a number or a boolean");
    const long = typeof value === "string" && characters(value) > VARIABLE_CHARS_MAX;
    if (long) throw badField(`variables.${name}`, `is too large: at most ${VARIABLE_CHARS_MAX} characters are allowed`);
  }
  jsonText("variables", values, VALUES_BYTES_MAX);
}

function records(list: NonNullable<AgentStartOptions["records"]>): void {
  const seen = new Set<string>();
  for (const [place, { objectSlug, recordId }] of list.entries()) {
    const pair = JSON.stringify([objectSlug, recordId]);
    if (seen.has(pair)) throw badField(`records[${place}]`, "is listed above");
    seen.add(pair);
  }
}

function title(text: string): void {
  if (/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(text) || text.trim() === "") throw badField("deliverTo.title", "must be one line, not blank");
}
