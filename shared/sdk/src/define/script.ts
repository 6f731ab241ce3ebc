/** Scripts: code that a person or a client calls by name. */
import type { HandlerContext } from "../context.js";
import type { EffectiveWorkspaceObjects } from "../records.js";
import { CALL_NAME, CALL_NAME_PROBLEM, Config, handlerOf } from "./config.js";
import type { ResponseApi, ScriptRequest, ScriptResponse } from "./response.js";

/** What the handler of a script or route is given. */
export interface ScriptContext<Input = unknown, Schema extends object = EffectiveWorkspaceObjects> extends HandlerContext<Schema> {
  /** What the caller has sent. Nobody has checked it. */
  readonly input: Input;
  /** The request; for a script that is called by name, one with the input as its body. */
  readonly request: ScriptRequest<Input>;
  /** Makes answers with a status and headers. */
  readonly response: ResponseApi;
}

/** Does the work of a script or route. */
export type ScriptHandler<Input = unknown, Output = unknown, Schema extends object = EffectiveWorkspaceObjects> = (
  context: ScriptContext<Input, Schema>,
) => Output | ScriptResponse | null | Promise<Output | ScriptResponse | null>;

/** What is said about a script. */
export interface ScriptConfig {
  /** Names the script; the path of its file unless it is given. */
  readonly name?: string;
}

/** A script of a project. */
export interface ScriptDefinition {
  readonly kind: "script";
  /** Its name; absent when its file names it. */
  readonly name?: string;
  readonly handler: ScriptHandler<never>;
}

/**
 * Defines a script. Export it as default.
 *
 * @throws ValidationError when the handler is no function or an option is not known.
 */
export function defineScript<Input = unknown, Output = unknown, Schema extends object = EffectiveWorkspaceObjects>(
  handler: ScriptHandler<Input, Output, Schema>,
): ScriptDefinition;
export function defineScript<Input = unknown, Output = unknown, Schema extends object = EffectiveWorkspaceObjects>(
  config: ScriptConfig,
  handler: ScriptHandler<Input, Output, Schema>,
): ScriptDefinition;
export function defineScript(first: unknown, second?: unknown): ScriptDefinition {
  const alone = typeof first === "function";
  const options = new Config("script", alone ? {} : first, ["name"]);
  const name = options.get("name");
  if (name !== undefined) options.name("name", CALL_NAME, CALL_NAME_PROBLEM);
  const handler = handlerOf("script", (alone ? first : second) as ScriptHandler<never>);
  return Object.freeze({ kind: "script", ...(name === undefined ? {} : { name: name as string }), handler });
}
