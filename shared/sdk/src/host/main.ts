/**
 * `runfleet-host`: reads the command line, listens to signals, and ends with a code that says how it went.
 */

import { EXIT, host } from "./host.js";
import { type KeyClaims, readKey } from "./key.js";
import { type Log, logTo } from "./logs.js";
import { load } from "./project/load.js";
import { ProjectError } from "./project/snapshot.js";
import { dev } from "./dev.js";
import { HELP, type Settings, SettingsError, readSettings } from "./settings.js";

/** The whole program; returns its exit code. */
export async function main(args: readonly string[]): Promise<number> {
  let settings: Settings | "help";
  try {
    settings = readSettings(args, process.env);
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    process.stderr.write(`runfleet-host: ${error.message}\ntry runfleet-host --help\n`);
    return EXIT.refused;
  }
  if (settings === "help") {
    process.stdout.write(HELP);
    return 0;
  }
  // A command that prints its result keeps standard output for it.
  const lines = settings.command === "run" ? process.stdout : process.stderr;
  const log = logTo((line) => lines.write(line), settings.level);
  try {
    return await commanded(settings, log);
  } catch (error) {
    if (error instanceof ProjectError || error instanceof SettingsError) {
      log("error", error.message);
      return EXIT.refused;
    }
    log("error", "the host has failed", { cause: error instanceof Error ? error.message : "unknown" });
    return EXIT.failed;
  }
}

async function commanded(settings: Settings, log: Log): Promise<number> {
  if (settings.command === "check") return await check(settings, log);
  const claims = readKey(settings.key);
  if (claims === undefined) throw new SettingsError("the project key is none");
  const stop = signals(log);
  if (settings.command === "dev") return await dev(settings, claims, log, stop);
  return await host(settings, checked(claims), log, stop);
}

function checked(claims: KeyClaims): KeyClaims {
  if (claims.expiresAt * 1_000 <= Date.now()) throw new SettingsError("the project key has expired");
  return claims;
}

/** Loads the project and prints what it declares. */
async function check(settings: Settings, log: Log): Promise<number> {
  const loaded = await load(settings, log);
  await loaded.thread.stop();
  const { version, manifest, problems } = loaded;
  process.stdout.write(`${JSON.stringify({ version, ...manifest, problems }, null, 2)}\n`);
  return problems.length === 0 ? 0 : EXIT.refused;
}

/** Ends at the first SIGTERM or SIGINT; the second one ends the process. */
function signals(log: Log): AbortSignal {
  const stop = new AbortController();
  const take = (signal: NodeJS.Signals): void => {
    if (stop.signal.aborted) process.exit(EXIT.killed);
    log("info", "told to stop", { signal });
    stop.abort();
  };
  process.on("SIGTERM", take);
  process.on("SIGINT", take);
  return stop.signal;
}
