/** Calls a tool: holds its arguments to the schema, and turns every ending into a result for the model. Never throws. */
import { isPlainObject } from "../json.js";
import type { Apis } from "../runtime/apis.js";
import type { SchemaProblem } from "../schema/types.js";
import { toolContext, type ToolCallInfo } from "./context.js";
import type { PreparedTool } from "./prepare.js";

/** The call of a tool. */
export interface ToolCall extends ToolCallInfo {
  readonly args: unknown;
  readonly toolCallId: string;
  /** Takes texts that tell how far the tool is. */
  readonly progress?: (chunk: string) => void;
}

/** What the model is told, and what is stored. */
export interface ToolResult {
  readonly status: "success" | "error";
  /** A JSON value. */
  readonly content: unknown;
}

/** Largest result, in bytes of its JSON text. */
const RESULT_BYTES_MAX = 196_608;
/** Longest text of an exception that the model is told. */
const MESSAGE_CHARS_MAX = 2_000;
/** Longest text of progress, in bytes. */
const CHUNK_BYTES_MAX = 16_384;

/** Calls a tool. */
export async function invokeTool(tool: PreparedTool, call: ToolCall, apis: Apis): Promise<ToolResult> {
  try {
    const parsed = await tool.parse(call.args ?? {});
    if (!parsed.ok) return misfit(parsed.problems, parsed.errorCount);
    const runtime = Object.freeze({ toolCallId: call.toolCallId, writer: writerOf(call) });
    const value = await tool.invoke(toolContext(apis, call) as never, parsed.value as never, runtime as never);
    return resultOf(value);
  } catch (error) {
    const message = error instanceof Error ? error.message : "The tool has failed.";
    return { status: "error", content: message.slice(0, MESSAGE_CHARS_MAX) };
  }
}

/** Places and reasons; no value, no stack. */
function misfit(problems: readonly SchemaProblem[], errorCount: number): ToolResult {
  return { status: "error", content: { code: "ARGUMENTS_INVALID", message: "The arguments do not fit. Correct them and call again.", problems, errorCount } };
}

function resultOf(value: unknown): ToolResult {
  const said = isPlainObject(value) && (value["status"] === "success" || value["status"] === "error") ? value : undefined;
  const result = said === undefined
    ? { status: "success" as const, content: value ?? "" }
    : { ...said, status: said["status"] as ToolResult["status"], content: said["content"] ?? "" };
  try {
    // As JSON has it: records and other things know how to be written.
    const json = JSON.stringify(result);
    if (Buffer.byteLength(json) <= RESULT_BYTES_MAX) return JSON.parse(json) as ToolResult;
  } catch {
    // Told below.
  }
  return { status: "error", content: `The tool has returned something that is no JSON of at most ${RESULT_BYTES_MAX} bytes.` };
}

/** Progress never fails a tool. */
function writerOf({ progress }: ToolCall): (chunk: unknown) => void {
  return (chunk) => {
    try {
      const text = typeof chunk === "string" ? chunk : (JSON.stringify(chunk) ?? "");
      for (const piece of piecesOf(text)) progress?.(piece);
    } catch {
      // What cannot be written is not told.
    }
  };
}

/** Pieces that fit into one message, cut between characters. */
function piecesOf(text: string): string[] {
  if (Buffer.byteLength(text) <= CHUNK_BYTES_MAX) return text === "" ? [] : [text];
  const pieces: string[] = [];
  let piece = "";
  let bytes = 0;
  for (const character of text) {
    const size = Buffer.byteLength(character);
    if (bytes + size > CHUNK_BYTES_MAX) {
      pieces.push(piece);
      piece = "";
      bytes = 0;
    }
    piece += character;
    bytes += size;
  }
  return [...pieces, piece];
}
