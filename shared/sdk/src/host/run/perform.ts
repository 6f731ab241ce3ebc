/**
 * One execution on a thread: its handler or tool with everything it can do, and how it ended.
 */

import { errorFrom, failureOf, invoke, type Call, type Definition, type ExecutionInfo, createApis } from "../../runtime/index.js";
import { invokeTool, type PreparedTool } from "../../tools/index.js";
import type { Level } from "../logs.js";
import type { Catalog } from "./catalog.js";
import type { Ended, ExecutionFacts, ToThread, UnitKind } from "./protocol.js";

/** What a handler can ask of the host. */
export interface HostSide {
  /** Carries out an operation; returns the JSON text of its reply. */
  call(operation: string, payload: string): Promise<string>;
  /** Takes a part of a tool's answer. */
  chunk(chunk: string): void;
  /** Writes a log line; `fields` is JSON. */
  log(level: Level, message: string, fields: string): void;
}

/** Longest text of an error that is handed on, in characters. */
const TEXT_MAX = 2_000;

/** Places of an error that are logged. */
const FRAMES_MAX = 8;

/** Runs a handler or tool to its end. */
export async function perform(catalog: Catalog, run: Extract<ToThread, { type: "run" }>, signal: AbortSignal, host: HostSide): Promise<Ended> {
  const { kind, name, facts } = run;
  const input: unknown = JSON.parse(run.input);
  const thrown: { error?: unknown } = {};
  const [call, info] = [calling(host), infoOf(kind, facts, signal, host)];
  if (kind === "tool") {
    const tool = await catalog.tool(name);
    if (tool === undefined) return NOT_FOUND;
    return done(await tooled(watchedTool(tool, thrown), input, facts, host, call, info), thrown);
  }
  const definition = await catalog.definition(kind, name);
  if (definition === undefined) return NOT_FOUND;
  const { job, runId } = facts;
  const given = { ...(job === undefined ? {} : { job: jobOf(job) }), ...(runId === undefined ? {} : { runId }) };
  const ending = await invoke({ definition: watched(definition, thrown), input, ...given }, call, info);
  if ("ok" in ending) return done(ending.ok, {});
  return { how: "failed", ...ending.failed, ...traced(thrown) };
}

const NOT_FOUND: Ended = { how: "failed", code: "NOT_FOUND", retryable: false };

function done(value: unknown, thrown: { error?: unknown }): Ended {
  return { how: "done", result: JSON.stringify(value ?? null), ...traced(thrown) };
}

function tooled(tool: PreparedTool, args: unknown, facts: ExecutionFacts, host: HostSide, call: Call, info: ExecutionInfo): Promise<unknown> {
  const { user, toolCallId = facts.id, values } = facts;
  const asked = { args, user, toolCallId, progress: (chunk: string) => host.chunk(chunk), ...(values === undefined ? {} : { values }) };
  return invokeTool(tool, asked, createApis(call, info));
}

/** The data of a reply, or its error. */
function calling(host: HostSide): Call {
  return async (operation, payload) => {
    const reply = JSON.parse(await host.call(operation, JSON.stringify(payload))) as Reply;
    if (reply.ok) return reply.data;
    throw errorFrom(reply.error);
  };
}

type Reply = { readonly ok: true; readonly data: unknown } | { readonly ok: false; readonly error: Parameters<typeof errorFrom>[0] };

/** What each kind of code is to the fleet. */
const SOURCES = { job: "job", script: "script", route: "route", trigger: "trigger-after", action: "action", tool: "action" } as const;

function infoOf(kind: UnitKind, facts: ExecutionFacts, signal: AbortSignal, host: HostSide): ExecutionInfo {
  return {
    source: facts.local ? "development" : SOURCES[kind],
    readOnly: facts.readOnly,
    user: facts.user,
    workspace: facts.workspace,
    signal,
    log: (level, message, details) => host.log(level, message, fieldsOf(details)),
  };
}

/** What project code adds to a line of its log. */
function fieldsOf(details: unknown): string {
  if (details === undefined) return "";
  return (JSON.stringify(details instanceof Error ? traceOf(details) : details) ?? "").slice(0, TEXT_MAX);
}

function jobOf(job: NonNullable<ExecutionFacts["job"]>) {
  const { enqueuedAt, runAt, source, ...rest } = job;
  const scheduled = source === "schedule";
  const at = runAt ?? enqueuedAt;
  return scheduled ? { ...rest, source: "schedule" as const, runAt: at } : { ...rest, source: "enqueue" as const, runAt: at, enqueuedAt };
}

/** The same definition; what its handler throws is kept for the log. */
function watched(definition: Definition, thrown: { error?: unknown }): Definition {
  const work = definition.handler as (...args: unknown[]) => unknown;
  return { ...definition, handler: keeping(work, thrown) } as Definition;
}

function watchedTool(tool: PreparedTool, thrown: { error?: unknown }): PreparedTool {
  return { ...tool, invoke: keeping(tool.invoke as (...args: unknown[]) => unknown, thrown) as PreparedTool["invoke"] };
}

function keeping(work: (...args: unknown[]) => unknown, thrown: { error?: unknown }) {
  return async (...args: unknown[]): Promise<unknown> => {
    try {
      return await work(...args);
    } catch (error) {
      thrown.error = error;
      throw error;
    }
  };
}

/** How a handler ended that threw this beside its own promise. */
export function stray(error: unknown): Ended {
  return { how: "failed", ...failureOf(error, false), ...traced({ error }) };
}

function traced(thrown: { error?: unknown }): { trace?: string; text?: string } {
  return "error" in thrown ? { trace: traceOf(thrown.error), text: textOf(thrown.error) } : {};
}

/** Class and places of an error, without its message. */
export function traceOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const frames = (error.stack ?? "")
    .split("\n")
    .filter((line) => /^\s+at /.test(line) && !line.includes("node:internal"))
    .slice(0, FRAMES_MAX)
    .map((line) => line.trim());
  const name = /^[A-Za-z][A-Za-z0-9]{0,63}$/.test(error.name) ? error.name : "Error";
  return [name, ...frames].join(" | ");
}

function textOf(error: unknown): string {
  const message = error instanceof Error ? error.message : typeof error === "string" ? error : "";
  return message.slice(0, TEXT_MAX);
}
