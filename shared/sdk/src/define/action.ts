/** Actions: code that Processes and agents call, with checked input and output. */
import type { HandlerContext } from "../context.js";
import { frozenCopy } from "../json.js";
import type { EffectiveWorkspaceObjects } from "../records.js";
import { isObjectSchema } from "../schema/builder.js";
import { SCHEMA_BYTES_MAX, SCHEMA_DEPTH_MAX } from "../schema/names.js";
import type { InferSchema, JsonSchema, ObjectSchema, ObjectShape } from "../schema/types.js";
import { Config, handlerOf } from "./config.js";

/** Who may call an action. */
export type ActionCaller = "process" | "agent";
/** Whether an action may change anything. */
export type ActionEffect = "read" | "write";

/** The call that a handler works for. */
export interface ActionInfo {
  /** Which action. */
  readonly key: string;
  /** The call; the same when it is repeated. A call that has ended is answered from what is stored. */
  readonly runId: string;
  /** Whether it may change anything. */
  readonly effect: ActionEffect;
}

/** What the handler of an action is given. One that only reads cannot start or enqueue anything. */
export interface ActionContext<Schema extends object = EffectiveWorkspaceObjects> extends HandlerContext<Schema> {
  readonly action: ActionInfo;
}

type AnyObject = ObjectSchema<ObjectShape, false>;

/** Does the work of an action. */
export type ActionHandler<
  Input extends AnyObject = AnyObject,
  Output extends AnyObject = AnyObject,
  Schema extends object = EffectiveWorkspaceObjects,
> = (context: ActionContext<Schema>, input: InferSchema<Input>) => InferSchema<Output> | Promise<InferSchema<Output>>;

/** What is said about an action beside its handler. */
export interface ActionOptions<Input extends AnyObject = AnyObject, Output extends AnyObject = AnyObject> {
  /** Names the action: a small letter, then small letters, digits and `_`, at most 64. */
  readonly key: string;
  /** A name for people, at most 250 characters; the key unless it is given. */
  readonly label?: string;
  /** When to use it, for people and models; at most 2,000 characters. */
  readonly description?: string;
  /** Who may call it: everybody unless it is given. */
  readonly exposeTo?: readonly ActionCaller[];
  /** Whether it may change anything. */
  readonly effect: ActionEffect;
  /** What it takes. */
  readonly input: Input;
  /** What it gives. */
  readonly output: Output;
  /** 1,000 to 8,000 milliseconds; 8,000 unless it is given. */
  readonly timeoutMs?: number;
}

/** What is said about an action. */
export interface ActionConfig<
  Input extends AnyObject = AnyObject,
  Output extends AnyObject = AnyObject,
  Schema extends object = EffectiveWorkspaceObjects,
> extends ActionOptions<Input, Output> {
  readonly handler: ActionHandler<Input, Output, Schema>;
}

/** An action with every default filled in. */
export interface ActionManifest {
  readonly key: string;
  readonly label: string;
  readonly description: string;
  readonly exposeTo: readonly ActionCaller[];
  readonly effect: ActionEffect;
  readonly inputSchema: JsonSchema;
  readonly outputSchema: JsonSchema;
  readonly timeoutMs: number;
}

/** An action of a project. */
export interface ActionDefinition {
  readonly kind: "action";
  readonly key: string;
  readonly config: ActionManifest;
  readonly handler: (context: never, input: never) => unknown;
}

const OPTIONS = ["key", "label", "description", "exposeTo", "effect", "input", "output", "timeoutMs", "handler"];

/**
 * Defines an action. Export it as default, or in the list `actions`.
 *
 * @throws ValidationError when an option is not known or does not fit.
 */
export function defineAction<
  Input extends AnyObject,
  Output extends AnyObject,
  // Constant, so that the words of an enum that a handler returns stay what they are.
  const Result extends InferSchema<Output>,
  Schema extends object = EffectiveWorkspaceObjects,
>(
  config: ActionOptions<Input, Output> & {
    readonly handler: (context: ActionContext<Schema>, input: InferSchema<Input>) => Result | Promise<Result>;
  },
): ActionDefinition {
  const options = new Config("action", config, OPTIONS);
  const key = options.name("key", /^[a-z][a-z0-9_]{0,63}$/, "must be a small letter followed by at most 63 small letters, digits and `_`");
  const isCaller = (word: string): boolean => word === "process" || word === "agent";
  const manifest: ActionManifest = {
    key,
    label: options.text("label", 250, key),
    description: options.text("description", 2_000, ""),
    exposeTo: options.list("exposeTo", { least: 1, most: 2 }, isCaller, ["process", "agent"]) as readonly ActionCaller[],
    effect: options.word("effect", ["read", "write"]),
    inputSchema: schemaOf(options, "input"),
    outputSchema: schemaOf(options, "output"),
    timeoutMs: options.integer("timeoutMs", 1_000, 8_000, 8_000),
  };
  return Object.freeze({ kind: "action", key, config: frozenCopy(manifest), handler: handlerOf("action", config.handler) });
}

function schemaOf(options: Config, name: string): JsonSchema {
  const schema = options.get(name);
  if (!isObjectSchema(schema) || schema.isOptional) throw options.wrong(name, "must be an object schema that is not optional");
  const problem = tooMuch(schema.toJSON());
  if (problem !== undefined) throw options.wrong(name, problem);
  return schema.toJSON();
}

/** Why a schema is larger than it may be; undefined when it is not. */
export function tooMuch(schema: JsonSchema): string | undefined {
  const size = Buffer.byteLength(JSON.stringify(schema));
  if (size > SCHEMA_BYTES_MAX) return `is too large: ${size} bytes, at most ${SCHEMA_BYTES_MAX} are allowed`;
  return depthOf(schema) > SCHEMA_DEPTH_MAX ? `is nested deeper than ${SCHEMA_DEPTH_MAX} levels` : undefined;
}

/** Lists and objects around each other. */
function depthOf(schema: JsonSchema): number {
  if (schema["type"] === "array") return 1 + depthOf(schema["items"] as JsonSchema);
  if (schema["type"] !== "object") return 0;
  const inner = Object.values(schema["properties"] as Readonly<Record<string, JsonSchema>>);
  return 1 + Math.max(0, ...inner.map(depthOf));
}
