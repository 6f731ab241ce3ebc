import type { Level } from "../logs.js";
import type { ExecutionFacts, UnitKind } from "./protocol.js";

/** What a handler can ask of the host. */
export interface HostSide {
  /** Carries out an operation; returns the JSON text of its reply. */
  call(operation: string, payload: string): Promise<string>;
  /** Takes a part of a tool's answer. */
  chunk(chunk: string): void;
  /** Writes a log line; `fields` is JSON. */
  log(level: Level, message: string, fields: string): void;
}

export function contextOf(kind: UnitKind, input: unknown, facts: ExecutionFacts, signal: AbortSignal, host: HostSide): unknown {
  const call = async (operation: string, payload: unknown) => JSON.parse(await host.call(operation, JSON.stringify(payload)));
  return { [kind === "job" ? "payload" : "input"]: input, job: facts.job, signal, call };
}
