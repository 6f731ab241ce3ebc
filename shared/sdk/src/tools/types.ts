/** What a tool may use: the request that its agent works for, and the fleet. Types only. */
import type { ScriptLogger } from "../context.js";
import type { DataApi } from "../records.js";
import type { AgentsApi, JobsApi, ProcessesApi } from "../runs.js";

/** The person on whose behalf an agent runs. */
export interface ToolUser {
  readonly id: string;
  readonly [name: string]: any;
}

/** The request of a conversation. */
export interface ConversationValues {
  readonly sessionId?: string;
  /** The model of the conversation, as `getLLMService` takes it. */
  readonly model?: Readonly<Record<string, any>>;
  readonly webSearch?: boolean;
  readonly messages?: readonly any[];
  readonly [name: string]: any;
}

/** Options that pick records. */
export interface FindOptions {
  /** The id of one record. */
  readonly filterByTk?: string | number;
  /** Fields and the values that they equal. */
  readonly filter?: Readonly<Record<string, any>>;
  readonly fields?: readonly string[];
  /** At most 50. */
  readonly limit?: number;
}

/** A record: its fields, and its `id`. */
export interface RepositoryRecord {
  readonly id: string;
  /** A field, or all of them. */
  get(name?: string): any;
  toJSON(): Readonly<Record<string, any>>;
  readonly [name: string]: any;
}

/** Records of one kind, with the rights of the person. */
export interface Repository {
  find(options?: FindOptions): Promise<RepositoryRecord[]>;
  findOne(options?: FindOptions): Promise<RepositoryRecord | null>;
  create(options: { readonly values: Readonly<Record<string, any>> }): Promise<RepositoryRecord>;
  /** Changes the records that are picked; at most 50. */
  update(options: FindOptions & { readonly values: Readonly<Record<string, any>> }): Promise<RepositoryRecord[]>;
}

/** A model that can be asked. */
export interface ModelProvider {
  /** The answer to messages with role and content, or to one text. */
  invoke(messages: any): Promise<{ readonly text: string }>;
}

/** What the part for agents offers. */
export interface AiPlugin {
  readonly aiManager: {
    /** A model; the one of the conversation unless it is named. Calls are charged like any others. */
    getLLMService(options?: Readonly<Record<string, any>>): Promise<{ readonly provider: ModelProvider }>;
  };
}

/** What a tool is given. */
export interface ToolContext {
  readonly auth: { readonly user: ToolUser | null };
  /** The same person. */
  readonly state: { readonly currentUser: ToolUser | null };
  readonly action: { readonly params: { readonly values?: ConversationValues; readonly [name: string]: any } };
  /** Records, also as `app.db`. */
  readonly db: { getRepository(name: string): Repository };
  readonly app: {
    readonly db: { getRepository(name: string): Repository };
    readonly pm: { get(name: "ai"): AiPlugin; get(name: string): any };
  };
  /** Resolves a text of the project's locales. */
  t(key: string, options?: Readonly<Record<string, any>>): string;
  readonly processes: ProcessesApi;
  readonly agents: AgentsApi;
  readonly jobs: JobsApi;
  readonly data: DataApi;
  readonly log: ScriptLogger;
  /** Aborted when the time of the call is over. */
  readonly signal: AbortSignal;
}
