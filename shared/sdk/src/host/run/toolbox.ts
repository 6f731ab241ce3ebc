import type { HostSide } from "./context.js";
import type { ExecutionFacts } from "./protocol.js";
import type { Gathering } from "./units.js";

export async function declareTools(_root: string, _files: readonly string[], _gathering: Gathering, _loading: (file: string) => void): Promise<void> {}
export async function runTool(_root: string, _files: readonly string[], _name: string, _args: unknown, _facts: ExecutionFacts, _signal: AbortSignal, _host: HostSide): Promise<unknown> { return null; }
