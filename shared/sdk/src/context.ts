/** What handlers are given. Types only. */
import type { DataApi, EffectiveWorkspaceObjects } from "./records.js";
import type { AgentsApi, JobsApi, ProcessesApi } from "./runs.js";

/** Writes to the log of the project. Never put secrets or data of persons into it. */
export interface ScriptLogger {
  debug(message: string, details?: unknown): void;
  info(message: string, details?: unknown): void;
  warn(message: string, details?: unknown): void;
  error(message: string, details?: unknown): void;
}

/** The workspace of an execution. */
export interface CurrentWorkspace {
  readonly id: string;
  readonly name?: string;
}

/** The person behind an execution. */
export interface CurrentUser {
  readonly accountId: string;
  readonly membership: { readonly personnelId?: string };
}

/** On whose behalf code runs. */
export type InvocationContext =
  | { readonly identity: "user"; readonly workspace: CurrentWorkspace; readonly user: CurrentUser }
  | { readonly identity: "system"; readonly workspace: CurrentWorkspace; readonly user: null };

/** What every handler is given. */
export interface HandlerContext<Schema extends object = EffectiveWorkspaceObjects> {
  /** Starts Processes and looks at their runs. */
  readonly processes: ProcessesApi;
  /** Starts agents and looks at their runs. */
  readonly agents: AgentsApi;
  /** Runs background jobs of the project. */
  readonly jobs: JobsApi;
  /** The records of the workspace. */
  readonly data: DataApi<Schema>;
  /** Writes to the log of the project. */
  readonly log: ScriptLogger;
  /** On whose behalf the code runs. */
  readonly invocation: InvocationContext;
  /** Aborted when the time of the execution is over or its host stops. */
  readonly signal: AbortSignal;
}
