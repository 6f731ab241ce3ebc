/** The records of a change as a trigger sees them, and what it has made of them. */
import type { ScriptLogger } from "../context.js";
import type { TriggerInfo, TriggerManifest, TriggerOperation, TriggerRecord } from "../define/trigger.js";
import { ValidationError } from "../errors.js";
import { badField, frozenCopy, isPlainObject } from "../json.js";
import type { CogoverRecordId } from "../records.js";
import { OBJECT_SLUG } from "../schema/names.js";
import { isDeepStrictEqual } from "node:util";

/** A change that a trigger is called for. */
export interface Change {
  readonly records: readonly TriggerRecord[];
  readonly trigger: TriggerInfo;
  /** What the handler has set and refused. Throws when it has set what it may not. */
  result(): unknown;
}

interface Refusal {
  readonly field: string | null;
  readonly code: string;
  readonly message?: string;
}

const RECORDS_MAX = 200;
const ERROR_CODE = /^[A-Z][A-Z0-9_]{0,63}$/;
const ERROR_CHARS_MAX = 500;

/** Reads `{operation, records: [{id?, key?, new?, old?, changedFields?}], changeId?}`. */
export function changeOf(config: TriggerManifest, input: unknown, runId: string | null | undefined, log: ScriptLogger): Change | { readonly problem: string } {
  if (!isPlainObject(input)) return { problem: "must be an object with operation and records" };
  const { operation, records, changeId } = input;
  if (!config.operations.includes(operation as TriggerOperation)) return { problem: `must have an operation of the trigger: ${config.operations.join(", ")}` };
  const fits = Array.isArray(records) && records.length > 0 && records.length <= RECORDS_MAX && records.every(isPlainObject);
  if (!fits) return { problem: `must have 1 to ${RECORDS_MAX} records` };
  const seen = records.map((record, place) => new Changed(config, operation as TriggerOperation, record, place, log));
  const id = typeof changeId === "string" ? changeId : (runId ?? "");
  const trigger = Object.freeze({
    id: config.key, key: config.key, timing: config.timing, operation: operation as TriggerOperation, objectSlug: config.object, changeId: id,
  });
  return { records: Object.freeze(seen.map((record) => record.view)), trigger, result: () => ({ records: seen.map((record) => record.result()) }) };
}

/** One record: what it was, what it is to be, and what the handler says about it. */
class Changed {
  readonly view: TriggerRecord;
  readonly #config: TriggerManifest;
  readonly #before: Readonly<Record<string, unknown>>;
  readonly #refusals: Refusal[] = [];

  constructor(config: TriggerManifest, operation: TriggerOperation, record: Readonly<Record<string, unknown>>, place: number, log: ScriptLogger) {
    this.#config = config;
    const shown = (values: unknown): Record<string, unknown> | null =>
      isPlainObject(values) ? Object.fromEntries(Object.entries(values).filter(([name]) => name === "id" || config.fields.includes(name))) : null;
    const next = operation === "delete" ? null : (shown(record["new"]) ?? {});
    this.#before = frozenCopy(next ?? {});
    const changed = Array.isArray(record["changedFields"]) ? (record["changedFields"] as string[]) : Object.keys(next ?? {});
    const id = typeof record["id"] === "string" ? (record["id"] as CogoverRecordId) : null;
    const view = {
      key: typeof record["key"] === "string" ? record["key"] : String(place),
      id,
      new: next,
      old: operation === "create" ? null : frozenCopy(shown(record["old"]) ?? {}),
      changedFields: Object.freeze([...changed]),
      addError: (field: string | null, code: string, message?: string) => this.#refuse(field, code, message, log),
    };
    // The object of new values may be changed, and not be replaced.
    this.view = Object.freeze(view) as unknown as TriggerRecord;
  }

  #refuse(field: string | null, code: string, message: string | undefined, log: ScriptLogger): void {
    if (field !== null && !(typeof field === "string" && OBJECT_SLUG.test(field))) throw badField("field", "must be the name of a field, or null");
    if (typeof code !== "string" || !ERROR_CODE.test(code)) throw badField("code", "must be capital letters, digits and `_`, at most 64");
    const fits = message === undefined || (typeof message === "string" && message.length <= ERROR_CHARS_MAX);
    if (!fits) throw badField("message", `must be a text of at most ${ERROR_CHARS_MAX} characters`);
    this.#refusals.push({ field, code, ...(message === undefined || message === "" ? {} : { message }) });
    if (this.#config.timing === "afterChange") log.warn("A trigger reports an error of a record that is stored already", { field, code });
  }

  result(): unknown {
    const { key } = this.view;
    const changes = this.#changes();
    const errors = this.#refusals;
    // What was set on a record that is refused goes with it.
    if (errors.length > 0) return { key, errors };
    return Object.keys(changes).length > 0 ? { key, changes } : { key };
  }

  #changes(): Record<string, unknown> {
    const after = (this.view.new ?? {}) as Readonly<Record<string, unknown>>;
    const names = new Set([...Object.keys(this.#before), ...Object.keys(after)]);
    const changed = [...names].filter((name) => !isDeepStrictEqual(this.#before[name] ?? null, after[name] ?? null));
    const foreign = changed.find((name) => !this.#config.writableFields.includes(name));
    if (foreign !== undefined) throw new ValidationError(`The trigger may not set the field ${foreign}.`, { field: foreign });
    return Object.fromEntries(changed.map((name) => [name, after[name] ?? null]));
  }
}
