/** `data`: reads and writes records through the fleet, which asks the source of records of the workspace. */
import { fieldReferences } from "../filters.js";
import { PermissionDeniedError } from "../errors.js";
import { badField, characters, isPlainObject, jsonText } from "../json.js";
import type {
  CogoverRecord, CogoverRecordId, DataApi, FilterCondition, FilterExpression, GetRecordOptions, ObjectClient, QueryOptions, RecordsApi, UnknownObjects,
} from "../records.js";
import { OBJECT_SLUG, RECORD_ID_CHARS_MAX } from "../schema/names.js";
import { given } from "./arguments.js";
import { type Execution, notSupported } from "./execution.js";

type Fields = Readonly<Record<string, unknown>>;

const FIELDS_BYTES_MAX = 65_536;
const IDS_MAX = 20;
const MANY_MAX = 200;
const RECORDS_MAX = 50;
const CONDITIONS_MAX = 20;
const SEARCH_CHARS_MAX = 1_000;

/** The records that an execution may reach. */
export function dataOf(execution: Execution, granted = true): DataApi {
  const api: DataApi<UnknownObjects> = {
    asUser(personnelId) {
      if (typeof personnelId !== "string" || personnelId.trim() === "") throw badField("personnelId", "must be the id of a person");
      return dataOf(execution, false) as DataApi<UnknownObjects>;
    },
    asSystem: () => dataOf(execution, false) as DataApi<UnknownObjects>,
    object(slug) {
      if (typeof slug !== "string" || !OBJECT_SLUG.test(slug)) throw badField("object", "must name a kind of record");
      const client: ObjectClient = { slug, fields: fieldReferences<Fields>(), records: recordsOf(granted ? execution : new NotGranted(execution), slug) };
      return Object.freeze(client);
    },
  };
  return Object.freeze(api) as DataApi;
}

/** What records need of an execution. */
type Reach = Pick<Execution, "read" | "write" | "mayWrite">;

/** Refuses what would be done as somebody else. */
class NotGranted implements Reach {
  readonly #execution: Execution;

  constructor(execution: Execution) {
    this.#execution = execution;
  }

  mayWrite(): void {
    this.#execution.mayWrite();
  }

  async read(): Promise<never> {
    throw new PermissionDeniedError("This fleet grants no other identity.", { reason: "IDENTITY_NOT_GRANTED" });
  }

  write(): Promise<never> {
    return this.read();
  }
}

function recordsOf(execution: Reach, objectSlug: string): RecordsApi {
  const query = async (options: QueryOptions = {}): Promise<{ items: CogoverRecord[] }> => {
    const answer = (await execution.read("data.query", { objectSlug, ...queryPayload(options) })) as { records: unknown[] };
    return { items: answer.records.map((record) => recordOf(record, options.fields)) };
  };
  return Object.freeze({
    async get(id: string, options: GetRecordOptions = {}) {
      const recordId = idOf(id);
      fieldsAsked(options.fields);
      const answer = (await execution.read("data.get", { objectSlug, recordId })) as { record: unknown };
      return answer.record === null || answer.record === undefined ? null : recordOf(answer.record, options.fields);
    },
    async getMany(ids: readonly string[], options: GetRecordOptions = {}) {
      if (!Array.isArray(ids)) throw badField("ids", "must be a list of ids");
      const wanted = [...new Set(ids.map(idOf))];
      if (wanted.length > MANY_MAX) throw badField("ids", `must have at most ${MANY_MAX} different ids`);
      const records: CogoverRecord[] = [];
      for (let from = 0; from < wanted.length; from += IDS_MAX) {
        const some = wanted.slice(from, from + IDS_MAX);
        records.push(...(await query({ ...options, ids: some, limit: some.length })).items);
      }
      const found = new Set<string>(records.map(({ id }) => id));
      return { records, missingIds: wanted.filter((id) => !found.has(id)) as CogoverRecordId[] };
    },
    query,
    list: query,
    async create(fields: Fields) {
      execution.mayWrite();
      const answer = await execution.write("data.create", { objectSlug, fields: written(fields) });
      return recordOf((answer as { record: unknown }).record, "*").id;
    },
    async update(id: string, fields: Fields) {
      execution.mayWrite();
      await execution.write("data.update", { objectSlug, recordId: idOf(id), fields: written(fields) });
    },
  });
}

function idOf(id: unknown): string {
  const fits = typeof id === "string" && id.trim() !== "" && characters(id) <= RECORD_ID_CHARS_MAX;
  if (!fits) throw badField("recordId", `must be a text of 1 to ${RECORD_ID_CHARS_MAX} characters`);
  return id;
}

/** Fields to write: a link is sent as the id of its record. */
function written(fields: unknown): Fields {
  const values = given("fields", fields);
  const names = Object.keys(values);
  if (names.length === 0) throw badField("fields", "must not be empty");
  if (!names.every((name) => OBJECT_SLUG.test(name))) throw badField("fields", "has a name that is no name of a field");
  const sent = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, linked(value)]));
  jsonText("fields", sent, FIELDS_BYTES_MAX);
  return sent;
}

function linked(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(linked);
  const isLink = isPlainObject(value) && typeof value["id"] === "string" && typeof value["name"] === "string"
    && Object.keys(value).every((name) => ["id", "name", "objectSlug", "fields"].includes(name));
  return isLink ? value["id"] : value;
}

function fieldsAsked(fields: unknown): void {
  const fits = fields === undefined || fields === "*"
    || (Array.isArray(fields) && fields.length > 0 && fields.every((name) => typeof name === "string" && OBJECT_SLUG.test(name)));
  if (!fits) throw badField("fields", 'must be a list of names of fields, or "*"');
}

function recordOf(record: unknown, asked: GetRecordOptions["fields"]): CogoverRecord {
  const { recordId, fields } = record as { recordId: string; fields: Fields };
  const names = asked === undefined || asked === "*" ? undefined : new Set<string>(asked);
  const kept = names === undefined ? fields : Object.fromEntries(Object.entries(fields).filter(([name]) => names.has(name)));
  return Object.freeze({ id: recordId as CogoverRecordId, fields: Object.freeze({ ...kept }) });
}

const QUERY_OPTIONS = ["ids", "search", "filter", "where", "limit", "fields"];

function queryPayload(options: unknown): Fields {
  const { ids, search, filter: named, where, limit, fields, ...others } = given("options", options) as QueryOptions;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw notSupported("options", `A query takes ${QUERY_OPTIONS.join(", ")} and nothing else.`);
  fieldsAsked(fields);
  const { filter, recordIds } = equalities(given("filter", named ?? {}), where);
  const wanted = ids ?? recordIds;
  if (wanted !== undefined && !(Array.isArray(wanted) && wanted.length > 0 && wanted.length <= IDS_MAX)) {
    throw badField("ids", `must be a list of 1 to ${IDS_MAX} ids`);
  }
  const fitsSearch = search === undefined || (typeof search === "string" && search.trim() !== "" && search.length <= SEARCH_CHARS_MAX);
  if (!fitsSearch) throw badField("search", `must be a text of 1 to ${SEARCH_CHARS_MAX} characters`);
  const fitsLimit = limit === undefined || (Number.isInteger(limit) && limit >= 1 && limit <= RECORDS_MAX);
  if (!fitsLimit) throw badField("limit", `must be a whole number from 1 to ${RECORDS_MAX}`);
  return given("options", {
    recordIds: wanted?.map(idOf),
    search,
    filter: Object.keys(filter).length === 0 ? undefined : filter,
    limit,
  });
}

/** What a source of records knows: fields that equal values, all of them, and ids. */
function equalities(named: Fields, where?: FilterExpression): { filter: Fields; recordIds?: readonly string[] } {
  const conditions = Object.entries(named).map(([field, value]): FilterCondition => ({ kind: "condition", field, operator: "=", value }));
  const filter: Record<string, unknown> = {};
  let recordIds: readonly string[] | undefined;
  for (const condition of [...conditions, ...(where === undefined ? [] : conditionsOf(where))]) {
    const { field, operator, value } = condition;
    const ids = idsOf(condition);
    if (!OBJECT_SLUG.test(field)) throw badField("where", "must name fields");
    if (ids !== undefined && recordIds === undefined) recordIds = ids;
    else if (field !== "id" && operator === "=" && !Object.hasOwn(filter, field)) filter[field] = linked(value);
    else throw notSupported("where", "Records can be asked for by the ids and by fields that equal a value, each once.");
  }
  if (Object.keys(filter).length > CONDITIONS_MAX) throw badField("where", `must have at most ${CONDITIONS_MAX} conditions`);
  jsonText("where", filter, FIELDS_BYTES_MAX);
  return recordIds === undefined ? { filter } : { filter, recordIds };
}

function idsOf({ field, operator, value }: FilterCondition): readonly string[] | undefined {
  if (field !== "id") return undefined;
  const ids = operator === "=" ? [value] : operator === "in" ? value : undefined;
  return Array.isArray(ids) ? (ids as readonly string[]) : undefined;
}

function conditionsOf(where: FilterExpression): readonly FilterCondition[] {
  if (!isPlainObject(where)) throw badField("where", "must be a condition");
  if (where.kind === "condition") return [where];
  if (where.kind !== "group" || where.operator !== "and") throw notSupported("where", "Conditions can be joined by `and` only.");
  return where.expressions.flatMap(conditionsOf);
}
