/** Triggers: code that runs when records change. */
import type { HandlerContext } from "../context.js";
import { frozenCopy, isPlainObject } from "../json.js";
import type { CogoverRecordId, EffectiveWorkspaceObjects, FilterOperator, UpdateFields } from "../records.js";
import { OBJECT_SLUG } from "../schema/names.js";
import { Config, handlerOf, KEY, KEY_PROBLEM } from "./config.js";

/** Whether a trigger runs before a change is stored or after it was. */
export type TriggerTiming = "beforeChange" | "afterChange";
/** What happens to a record. */
export type TriggerOperation = "create" | "update" | "delete";
/** Whether a trigger runs for every record that fulfils its condition, or only when one begins to. */
export type TriggerRunWhen = "always" | "onEnter";

/** One comparison of a trigger. */
export interface TriggerFilterCondition {
  readonly op: FilterOperator;
  readonly field: string;
  readonly params?: unknown;
}

/** Comparisons of a trigger that are joined. */
export interface TriggerFilterGroup {
  readonly op: "and" | "or";
  readonly conditions: readonly TriggerFilter[];
}

/** What a record has to fulfil. */
export type TriggerFilter = TriggerFilterCondition | TriggerFilterGroup;

type FieldName<Slug extends string, Schema extends object> = Slug extends keyof Schema ? keyof Schema[Slug] & string : string;
type FieldsOf<Slug extends string, Schema extends object> = Slug extends keyof Schema ? Schema[Slug] : Readonly<Record<string, unknown>>;

/** What is said about a trigger. */
export interface TriggerConfig<
  Slug extends string = string,
  Operation extends TriggerOperation = TriggerOperation,
  Schema extends object = EffectiveWorkspaceObjects,
> {
  /** Names the trigger: a letter, then letters, digits and `_`, at most 100. */
  readonly key: string;
  /** A name for people, at most 250 characters; the key unless it is given. */
  readonly name?: string;
  /** The kind of record. */
  readonly object: Slug;
  readonly timing: TriggerTiming;
  readonly operations: readonly Operation[];
  /** Fields that the handler sees: 1 to 200. */
  readonly fields: readonly FieldName<Slug, Schema>[];
  /** An update runs the trigger only when one of these has changed. */
  readonly changedFields?: readonly FieldName<Slug, Schema>[];
  readonly when?: TriggerFilter;
  readonly runWhen?: TriggerRunWhen;
  /** Fields that a before-change trigger may set. */
  readonly writableFields?: readonly FieldName<Slug, Schema>[];
  /** Place among the triggers of an object: 1,000 to 8,999; 5,000 unless it is given. */
  readonly order?: number;
  /** 100 to 3,000 milliseconds; 2,000 unless it is given. */
  readonly timeoutMs?: number;
}

/** A trigger with every default filled in. */
export interface TriggerManifest {
  readonly key: string;
  readonly name: string;
  readonly object: string;
  readonly timing: TriggerTiming;
  readonly operations: readonly TriggerOperation[];
  readonly fields: readonly string[];
  readonly changedFields?: readonly string[];
  readonly when?: TriggerFilter;
  readonly runWhen: TriggerRunWhen;
  readonly writableFields: readonly string[];
  readonly order: number;
  readonly timeoutMs: number;
}

/** Values after a change. A before-change trigger may set those that it has named as writable. */
export type TriggerNewValues<Fields> = { -readonly [Name in keyof Fields]?: Fields[Name] | UpdateFields<Fields>[Name] };
/** Values before a change. */
export type TriggerOldValues<Fields> = { readonly [Name in keyof Fields]?: Fields[Name] };

/** A record that changes. */
export interface TriggerRecord<Fields = Record<string, unknown>, Operation extends TriggerOperation = TriggerOperation> {
  /** Names the record in this change. Not its id. */
  readonly key: string;
  /** Its id; null for one that is being made. */
  readonly id: CogoverRecordId | null;
  /** Null for a record that is deleted. */
  readonly new: TriggerNewValues<Fields> | ("delete" extends Operation ? null : never);
  /** Null for a record that is made. */
  readonly old: TriggerOldValues<Fields> | ("create" extends Operation ? null : never);
  readonly changedFields: readonly (keyof Fields & string)[];
  /** Refuses the record before a change; is written to the log after one. */
  addError(field: (keyof Fields & string) | null, code: string, message?: string): void;
}

/** Which change runs a trigger. */
export interface TriggerInfo<Operation extends TriggerOperation = TriggerOperation> {
  readonly id: string;
  readonly key: string;
  readonly timing: TriggerTiming;
  readonly operation: Operation;
  readonly objectSlug: string;
  readonly changeId: string;
}

/** What the handler of a trigger is given. Before a change it may read records and nothing else. */
export interface TriggerContext<
  Slug extends string = string,
  Operation extends TriggerOperation = TriggerOperation,
  Schema extends object = EffectiveWorkspaceObjects,
> extends HandlerContext<Schema> {
  readonly records: readonly TriggerRecord<FieldsOf<Slug, Schema>, Operation>[];
  readonly trigger: TriggerInfo<Operation>;
}

/** Does the work of a trigger. */
export type TriggerHandler<
  Slug extends string = string,
  Operation extends TriggerOperation = TriggerOperation,
  Schema extends object = EffectiveWorkspaceObjects,
> = (context: TriggerContext<Slug, Operation, Schema>) => void | Promise<void>;

/** A trigger of a project. */
export interface TriggerDefinition {
  readonly kind: "trigger";
  readonly key: string;
  readonly config: TriggerManifest;
  readonly handler: (context: never) => void | Promise<void>;
}

const OPTIONS = ["key", "name", "object", "timing", "operations", "fields", "changedFields", "when", "runWhen", "writableFields", "order", "timeoutMs"];
const OPERATORS: readonly string[] = ["=", "!=", ">", ">=", "<", "<=", "like", "not like", "startsWith", "endsWith", "in", "not in", "is null", "not null", "between"];
const FILTER_DEPTH_MAX = 8;
const FILTER_CONDITIONS_MAX = 50;

/**
 * Defines a trigger. Export it as default, or in the list `triggers`.
 *
 * @throws ValidationError when an option is not known or does not fit.
 */
export function defineTrigger<
  Slug extends keyof Schema & string,
  Operation extends TriggerOperation,
  Schema extends object = EffectiveWorkspaceObjects,
>(config: TriggerConfig<Slug, Operation, Schema>, handler: TriggerHandler<Slug, Operation, Schema>): TriggerDefinition {
  const options = new Config("trigger", config, OPTIONS);
  const key = options.name("key", KEY, KEY_PROBLEM);
  const manifest = { key, ...valuesOf(options, key), ...fieldsOf(options), ...conditionOf(options) } as TriggerManifest;
  return Object.freeze({ kind: "trigger", key, config: frozenCopy(manifest), handler: handlerOf("trigger", handler) });
}

function valuesOf(options: Config, key: string): Partial<TriggerManifest> {
  const isOperation = (word: string): boolean => ["create", "update", "delete"].includes(word);
  return {
    name: options.text("name", 250, key),
    object: options.name("object", OBJECT_SLUG, "must name a kind of record"),
    timing: options.word("timing", ["beforeChange", "afterChange"]),
    operations: options.list("operations", { least: 1, most: 3 }, isOperation) as readonly TriggerOperation[],
    order: options.integer("order", 1_000, 8_999, 5_000),
    timeoutMs: options.integer("timeoutMs", 100, 3_000, 2_000),
  };
}

function fieldsOf(options: Config): Partial<TriggerManifest> {
  const isField = (name: string): boolean => OBJECT_SLUG.test(name);
  const operations = options.get("operations") as readonly string[];
  const writableFields = options.list("writableFields", { least: 0, most: 100 }, isField, []);
  const cannotWrite = options.get("timing") === "afterChange" || operations.every((operation) => operation === "delete");
  if (writableFields.length > 0 && cannotWrite) throw options.wrong("writableFields", "is for triggers before a change of a record that stays");
  const fields = options.list("fields", { least: 1, most: 200 }, isField);
  if (options.get("changedFields") === undefined) return { fields, writableFields };
  if (!operations.includes("update")) throw options.wrong("changedFields", "needs the operation update");
  return { fields, writableFields, changedFields: options.list("changedFields", { least: 1, most: 200 }, isField) };
}

function conditionOf(options: Config): Partial<TriggerManifest> {
  const runWhen = options.word("runWhen", ["always", "onEnter"], "always");
  const when = options.get("when");
  if (when === undefined) {
    if (runWhen === "onEnter") throw options.wrong("runWhen", "needs a condition in `when` to be onEnter");
    return { runWhen };
  }
  const count = { conditions: 0 };
  if (!isFilter(when, 1, count) || count.conditions > FILTER_CONDITIONS_MAX) {
    throw options.wrong("when", `must be a condition, or a group of at most ${FILTER_CONDITIONS_MAX} in ${FILTER_DEPTH_MAX} levels`);
  }
  return { runWhen, when };
}

function isFilter(value: unknown, depth: number, count: { conditions: number }): value is TriggerFilter {
  if (!isPlainObject(value) || depth > FILTER_DEPTH_MAX) return false;
  const { op, conditions, field, params } = value;
  if (op === "and" || op === "or") {
    const known = Object.keys(value).every((name) => name === "op" || name === "conditions");
    return known && Array.isArray(conditions) && conditions.length > 0 && conditions.every((inner) => isFilter(inner, depth + 1, count));
  }
  count.conditions += 1;
  const known = Object.keys(value).every((name) => ["op", "field", "params"].includes(name));
  return known && typeof op === "string" && OPERATORS.includes(op) && typeof field === "string" && OBJECT_SLUG.test(field) && takes(op, params);
}

function takes(op: string, params: unknown): boolean {
  if (op === "is null" || op === "not null") return params === undefined;
  if (op === "in" || op === "not in") return Array.isArray(params) && params.length > 0;
  return op === "between" ? Array.isArray(params) && params.length === 2 : params !== undefined && params !== null;
}
