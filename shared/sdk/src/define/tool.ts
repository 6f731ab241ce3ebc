/** Tools: code that agents call. Files below `ai/**\/tools` export them as default; a file names its tool. */
import type { ToolContext } from "../tools/types.js";
import type { Schema } from "../schema/types.js";

/** How a tool gets to an agent: to all, to those that name it, or where an administrator adds it. */
export type ToolScope = "GENERAL" | "SPECIFIED" | "CUSTOM";
/** Whether a person is asked before the tool runs. */
export type ToolPermission = "ASK" | "ALLOW";

/** What a tool may do while it runs. */
export interface ToolRuntime {
  /** The call; the same when it is repeated. */
  readonly toolCallId: string;
  /** Tells how far the tool is. Texts as they are, anything else as JSON. */
  readonly writer: (chunk: unknown) => void;
}

/** What a tool takes: a schema of zod 3 or 4, one of `s`, a JSON Schema, or nothing. */
export type ToolSchema = object | null | undefined;

/** The arguments that a tool gets: the schema's output, with its defaults. */
export type ToolArguments<S> =
  // An unknown schema leaves everything open.
  unknown extends S ? any
  : S extends { readonly _zod: { readonly output: infer Output } } ? Output
  : S extends { readonly _output: infer Output } ? Output
  : S extends Schema<infer Output> ? Output
  : any;

/** What the model is told about a tool. */
export interface ToolModelDefinition<S = ToolSchema> {
  /** The file names the tool, whatever stands here. */
  readonly name?: string;
  /** When and how to use it. */
  readonly description: string;
  readonly schema?: S;
}

/** What people are told about a tool. May hold `{{t("key", { ns: "..." })}}`. */
export interface ToolIntroduction {
  readonly title: string;
  readonly about?: string;
}

/** Options of a tool. */
export interface ToolsOptions<S = ToolSchema> {
  readonly scope: ToolScope;
  readonly from?: "loader" | "workflow" | "mcp";
  /** `frontend`: a browser runs it. `backend` unless it is given. */
  readonly execution?: "backend" | "frontend";
  /** `ASK` unless it is given. */
  readonly defaultPermission?: ToolPermission;
  /** Whether the call is hidden in the conversation. */
  readonly silence?: boolean;
  readonly introduction?: ToolIntroduction;
  readonly definition: ToolModelDefinition<S>;
  /** The work. Expected failures are returned as `{status: "error", content}`, not thrown. */
  invoke(ctx: ToolContext, args: ToolArguments<S>, runtime: ToolRuntime): unknown;
}

/** What `defineTools` returns: its options, as a tool. */
export type ToolDefinition<S = ToolSchema> = ToolsOptions<S>;

/** Defines a tool. Only gives types: what is wrong is reported, with its file, when the tool is loaded. */
export function defineTools<S = undefined>(options: ToolsOptions<S>): ToolDefinition<S> {
  return options;
}

