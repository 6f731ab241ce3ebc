/**
 * Running one piece of a project on a developer's own machine: its calls are real and made as the user behind the project key; jobs
 * that get outcomes are refused, because no version that declares them is registered.
 */

import { Lines, EXIT, hostId } from "./host.js";
import type { KeyClaims } from "./key.js";
import type { Log } from "./logs.js";
import { load } from "./project/load.js";
import { Pool } from "./run/pool.js";
import type { UnitKind } from "./run/protocol.js";
import { type Settings, SettingsError } from "./settings.js";
import { Refused, session } from "./work/activation.js";
import { type Shop, execute } from "./work/execute.js";

/** Time of one run, in milliseconds. */
const RUN_MS = 60_000;

/** Runs it, prints its result as JSON, and returns the exit code. */
export async function dev(settings: Settings, claims: KeyClaims, log: Log, stop: AbortSignal): Promise<number> {
  const wanted = settings.dev;
  if (wanted === undefined) throw new SettingsError("dev needs what to run: dev KIND NAME");
  const loaded = await load(settings, log);
  const pool = new Pool(1, settings.memoryMb, loaded.data, log);
  pool.adopt(loaded.thread);
  const lines = new Lines(settings, log);
  try {
    if (!loaded.index.has(`${wanted.kind}:${wanted.name}`)) {
      log("error", "the project declares nothing of that name", { kind: wanted.kind, name: wanted.name });
      return EXIT.failed;
    }
    lines.start();
    const version = settings.version ?? loaded.version;
    const id = hostId();
    const token = await session({ requester: lines.requester, key: settings.key, log, hostId: id, version }, wanted.readOnly, stop);
    const { workspace, project } = claims;
    const shop: Shop = { workspace, project, version, index: loaded.index, pool, requester: lines.requester, log, showErrors: true };
    return await run(shop, wanted, id, token);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    log("error", error.message);
    return EXIT.refused;
  } finally {
    await pool.stop(0);
    await lines.stop();
  }
}

async function run(shop: Shop, wanted: NonNullable<Settings["dev"]>, id: string, token: string): Promise<number> {
  const now = Date.now();
  const kind = wanted.kind as UnitKind;
  const job = { id, key: wanted.name, attempt: 1, maxAttempts: 1, source: "enqueue", runAt: now, enqueuedAt: now };
  const outcome = await execute(shop, {
    kind,
    name: wanted.name,
    urgency: "call",
    input: wanted.input,
    facts: {
      id,
      user: null,
      readOnly: wanted.readOnly,
      local: true,
      ...(kind === "job" ? { job } : {}),
      ...(kind === "action" ? { runId: id } : {}),
      ...(kind === "tool" ? { toolCallId: id } : {}),
    },
    timeoutMs: RUN_MS,
    beginBy: now + RUN_MS,
    token,
    chunk: (text) => void process.stderr.write(text),
  });
  if (outcome.how !== "done") return EXIT.failed;
  process.stdout.write(`${outcome.result}\n`);
  return 0;
}
