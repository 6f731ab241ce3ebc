/** A tool as it is registered and called: its options checked, every default filled in, its schema read. */
import type { ToolDefinition, ToolPermission, ToolScope } from "../define/tool.js";
import { isPlainObject } from "../json.js";
import type { JsonSchema } from "../schema/types.js";
import { type Parameters, parametersOf } from "./schema.js";

/** A tool that can be called. */
export interface PreparedTool {
  readonly name: string;
  /** Below the folder of the project. */
  readonly file: string;
  readonly scope: ToolScope;
  readonly from: "loader" | "workflow" | "mcp";
  readonly execution: "backend" | "frontend";
  readonly defaultPermission: ToolPermission;
  readonly silence: boolean;
  readonly introduction: { readonly title: string; readonly about?: string };
  readonly definition: { readonly name: string; readonly description: string };
  /** What it takes, as the fleet and the model see it. */
  readonly parameters: JsonSchema;
  readonly parse: Parameters["parse"];
  readonly invoke: (...args: never[]) => unknown;
}

/** What is known about a tool beside its options. */
export interface ToolFile {
  readonly name: string;
  readonly file: string;
  /** Text that takes the place of the description; empty for none. */
  readonly description?: string;
  /** Resolves the texts for people. */
  readonly translate?: (template: string) => string;
}

/** Name of a tool as models take it. */
export const TOOL_NAME = /^[A-Za-z0-9_-]{1,64}$/;
const DESCRIPTION_CHARS_MAX = 16_384;

/**
 * Checks the options of a tool and reads its schema.
 *
 * @throws Error that says what is wrong.
 */
export async function prepareTool(options: ToolDefinition, file: ToolFile): Promise<PreparedTool> {
  if (!TOOL_NAME.test(file.name)) throw new Error("the name of a tool is 1 to 64 letters, digits, `_` and `-`");
  const { definition } = options;
  if (!isPlainObject(definition)) throw new Error("`definition` must be an object");
  if (typeof options.invoke !== "function") throw new Error("`invoke` must be a function");
  const described = file.description === undefined || file.description === "" ? definition["description"] : file.description;
  const description = textOf("definition.description", described, DESCRIPTION_CHARS_MAX);
  const parameters = await parametersOf(definition["schema"]);
  return Object.freeze({
    name: file.name,
    file: file.file,
    scope: wordOf("scope", options.scope, ["GENERAL", "SPECIFIED", "CUSTOM"]),
    from: wordOf("from", options.from ?? "loader", ["loader", "workflow", "mcp"]),
    execution: wordOf("execution", options.execution ?? "backend", ["backend", "frontend"]),
    defaultPermission: wordOf("defaultPermission", options.defaultPermission ?? "ASK", ["ASK", "ALLOW"]),
    silence: options.silence === true,
    introduction: introductionOf(options, file),
    definition: Object.freeze({ name: file.name, description }),
    parameters: parameters.json,
    parse: parameters.parse,
    invoke: options.invoke.bind(options) as PreparedTool["invoke"],
  });
}

function introductionOf({ introduction }: ToolDefinition, { name, translate = (text) => text }: ToolFile): PreparedTool["introduction"] {
  const title = typeof introduction?.title === "string" && introduction.title !== "" ? translate(introduction.title) : name;
  const about = typeof introduction?.about === "string" ? { about: translate(introduction.about) } : {};
  return Object.freeze({ title, ...about });
}

function wordOf<Word extends string>(name: string, value: unknown, words: readonly Word[]): Word {
  if (!words.includes(value as Word)) throw new Error(`\`${name}\` must be ${words.join(" or ")}`);
  return value as Word;
}

function textOf(name: string, value: unknown, most: number): string {
  const fits = typeof value === "string" && value.trim() !== "" && value.length <= most;
  if (!fits) throw new Error(`\`${name}\` must be a text of 1 to ${most} characters`);
  return value;
}
