/** What a tool is given, made out of what its execution can do. */
import { CogoverApiError, NotFoundError } from "../errors.js";
import { badField, isPlainObject } from "../json.js";
import type { CogoverRecord, ObjectClient, QueryOptions } from "../records.js";
import type { Apis } from "../runtime/apis.js";
import type { ModelMessage } from "../runtime/models.js";
import type { AiPlugin, ConversationValues, FindOptions, Repository, RepositoryRecord, ToolContext } from "./types.js";

/** What is known about the call of a tool. */
export interface ToolCallInfo {
  /** The person, or null. */
  readonly user?: string | null;
  /** The request of the conversation; absent for a run that nobody watches. */
  readonly values?: ConversationValues;
  /** Resolves texts. */
  readonly translate?: (key: string) => string;
}

const FOUND_MAX = 50;
/** What picks records, and what other packages give along that has no meaning here. */
const FIND_OPTIONS: readonly string[] = ["filterByTk", "filter", "fields", "limit", "context", "transaction"];

/** The context of one call. */
export function toolContext(apis: Apis, info: ToolCallInfo): ToolContext {
  const { processes, agents, jobs, data, log, signal } = apis;
  const values = info.values === undefined ? {} : { values: info.values };
  const plugin = aiOf(apis, info.values);
  const user = info.user === undefined || info.user === null ? null : Object.freeze({ id: info.user });
  const db = Object.freeze({ getRepository: (name: string) => repositoryOf(data.object(name as never) as unknown as ObjectClient) });
  return Object.freeze({
    auth: Object.freeze({ user }),
    state: Object.freeze({ currentUser: user }),
    action: Object.freeze({ params: Object.freeze(values) }),
    db,
    app: Object.freeze({
      db,
      pm: Object.freeze({ get: ((name: string) => (name === "ai" ? plugin : undefined)) as ToolContext["app"]["pm"]["get"] }),
    }),
    t: (key: string) => info.translate?.(key) ?? key,
    processes, agents, jobs, data, log, signal,
  });
}

function aiOf(apis: Apis, values: ConversationValues | undefined): AiPlugin {
  return Object.freeze({
    aiManager: Object.freeze({
      async getLLMService(options: Readonly<Record<string, unknown>> = {}) {
        const own = modelOf(values?.model);
        const model = typeof options["model"] === "string" ? options["model"] : own;
        const invoke = async (given: unknown): Promise<{ readonly text: string }> => {
          const messages = messagesOf(given);
          if (model === undefined) return apis.models.invoke({ messages });
          try {
            return await apis.models.invoke({ model, messages });
          } catch (error) {
            // The model of the conversation is a wish: a project has agents for some models, the first of which answers otherwise.
            if (model !== own || !(error instanceof NotFoundError) || error.resource !== "model") throw error;
            return apis.models.invoke({ messages });
          }
        };
        return { provider: Object.freeze({ invoke }) };
      },
    }),
  });
}

function modelOf(model: unknown): string | undefined {
  if (typeof model === "string") return model;
  return isPlainObject(model) && typeof model["model"] === "string" ? model["model"] : undefined;
}

const ROLES: Readonly<Record<string, ModelMessage["role"]>> = {
  system: "system", developer: "system", user: "user", human: "user", assistant: "assistant", ai: "assistant",
};

/** Messages as the fleet takes them: one text, a list, or an object with a list. */
function messagesOf(given: unknown): ModelMessage[] {
  if (typeof given === "string") return [{ role: "user", content: given }];
  const list: unknown = isPlainObject(given) ? given["messages"] : given;
  if (!Array.isArray(list)) throw badField("messages", "must be a text or a list of messages");
  return list.map((message: unknown, place) => {
    const { role, type, content } = (typeof message === "string" ? { role: "user", content: message } : message) as Readonly<Record<string, unknown>>;
    const known = ROLES[String(role ?? type)];
    const text = typeof content === "string" ? content : partsOf(content);
    if (known === undefined || text === undefined) throw badField(`messages[${place}]`, "must have a role and a text");
    return { role: known, content: text };
  });
}

function partsOf(content: unknown): string | undefined {
  if (!Array.isArray(content)) return undefined;
  const texts = content.map((part: unknown) => (isPlainObject(part) && part["type"] === "text" ? part["text"] : undefined));
  return texts.every((text) => typeof text === "string") ? texts.join("") : undefined;
}

function repositoryOf(client: ObjectClient): Repository {
  const find = async (options: FindOptions = {}): Promise<RepositoryRecord[]> => {
    // Left out silently, an order or a page would be a wrong answer.
    const foreign = Object.keys(options).some((name) => !FIND_OPTIONS.includes(name));
    if (foreign) throw new CogoverApiError("NOT_SUPPORTED", `Records are found by ${FIND_OPTIONS.slice(0, 4).join(", ")}.`, { field: "options" });
    const fields = options.fields === undefined ? {} : { fields: options.fields.filter((name) => name !== "id") };
    const asked = fields.fields?.length === 0 ? {} : fields;
    if (options.filterByTk !== undefined) {
      const record = await client.records.get(String(options.filterByTk), asked);
      return record === null ? [] : [recordOf(record)];
    }
    const { items } = await client.records.query({ ...asked, ...whereOf(client, options.filter), limit: options.limit ?? FOUND_MAX });
    return items.map(recordOf);
  };
  return Object.freeze({
    find,
    findOne: async (options: FindOptions = {}) => (await find({ ...options, limit: 1 }))[0] ?? null,
    async create({ values }: { readonly values: Readonly<Record<string, unknown>> }) {
      const id = await client.records.create(values);
      return recordOf({ id, fields: values });
    },
    async update({ values, ...picked }: FindOptions & { readonly values: Readonly<Record<string, unknown>> }) {
      // Without a condition, this would change whatever comes first.
      if (picked.filterByTk === undefined && Object.keys(picked.filter ?? {}).length === 0) throw badField("filter", "is required");
      const records = await find({ ...picked, limit: FOUND_MAX });
      for (const { id } of records) await client.records.update(id, values);
      return records.map((record) => recordOf({ id: record.id as never, fields: { ...record.toJSON(), ...values } }));
    },
  });
}

/** Conditions of a filter: `{field: value}` or `{field: {$eq: value}}`, joined by `$and`. */
function whereOf(client: ObjectClient, filter: unknown): Pick<QueryOptions, "where"> {
  if (filter === undefined) return {};
  const conditions = equalsOf(filter);
  if (conditions.length === 0) return {};
  const expressions = conditions.map(([name, value]) => client.fields[name]?.eq(value as never));
  return { where: { kind: "group", operator: "and", expressions: expressions.filter((expression) => expression !== undefined) } };
}

function equalsOf(filter: unknown): (readonly [string, unknown])[] {
  if (!isPlainObject(filter)) throw badField("filter", "must be an object");
  return Object.entries(filter).flatMap(([name, value]) => {
    if (name === "$and" && Array.isArray(value)) return value.flatMap(equalsOf);
    const operators = isPlainObject(value) ? Object.keys(value) : [];
    const plain = !name.startsWith("$") && !isPlainObject(value);
    if (plain) return [[name, value] as const];
    if (operators.length === 1 && operators[0] === "$eq") return [[name, (value as Readonly<Record<string, unknown>>)["$eq"]] as const];
    throw new CogoverApiError("NOT_SUPPORTED", "A filter can say which fields equal which values, joined by $and.", { field: "filter" });
  });
}

function recordOf({ id, fields }: CogoverRecord): RepositoryRecord {
  const values: Record<string, unknown> = { ...fields, id };
  const hidden = (value: unknown): PropertyDescriptor => ({ value, enumerable: false });
  return Object.defineProperties(values, {
    get: hidden((name?: string) => (name === undefined ? { ...values } : values[name])),
    toJSON: hidden(() => ({ ...values })),
  }) as RepositoryRecord;
}
