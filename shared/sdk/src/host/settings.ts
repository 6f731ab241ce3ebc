/**
 * What a host is told on its command line and by its environment. Reads files only for the project key, and never repeats a
 * secret in a mistake.
 */

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";

import { type Level, isLevel } from "./logs.js";

/** Everything a host needs to know before it begins. */
export interface Settings {
  /** `run`; `check` for loading the project and nothing else; `dev` for running one piece of it here. */
  readonly command: "run" | "check" | "dev";
  /** The folder of the project. */
  readonly project: string;
  /** Address of the broker. A secret. */
  readonly amqp: string;
  /** The project key. A secret. */
  readonly key: string;
  /** Handlers that run at once. */
  readonly concurrency: number;
  /** Milliseconds that running handlers get to finish after a signal. */
  readonly drainMs: number;
  /** Largest heap of one handler, in MiB. */
  readonly memoryMb: number;
  /** Whether the version is made the active one once it is registered. */
  readonly activate: boolean;
  /** The word for this version; the digest of the project's files when absent. */
  readonly version: string | undefined;
  /** Whether log lines hold the texts of errors, which may hold data: on a developer's machine only. */
  readonly showErrors: boolean;
  /** What a developer wants to run, for `dev`. */
  readonly dev: { readonly kind: string; readonly name: string; readonly input: string; readonly readOnly: boolean } | undefined;
  /** Least level of log lines. */
  readonly level: Level;
}

/** The command line or the environment is wrong. Its message is for the person who starts the host. */
export class SettingsError extends Error {}

/** What `--help` prints. */
export const HELP = `runfleet-host runs the code of a project: its jobs, scripts, routes, triggers, actions and tools.

usage: runfleet-host [run] [options]
       runfleet-host dev KIND NAME [--input JSON] [--read-only] [options]
       runfleet-host check [--project DIR]

  run                 register the version, and work while it is the active one
  dev                 run one script, job, route, trigger, action or tool here, once, and print its result: what it starts is real
  check               load the project, print what it declares as JSON, and end

  --project DIR       folder of the project: src/**, ai/tools/** (default: the current folder)
  --amqp URL          address of the broker; better RUNFLEET_AMQP_URL, which no process list shows
  --key-file FILE     file with the project key; or RUNFLEET_PROJECT_KEY_FILE
  --concurrency N     handlers that run at once, 1 to 64 (default 4; or RUNFLEET_HOST_CONCURRENCY)
  --drain-seconds N   time for running handlers after SIGTERM, 0 to 600 (default 30)
  --memory-mb N       largest heap of one handler, 32 to 4096 (default 256)
  --version-name V    name of this version: 1 to 64 letters, digits, . _ + - (default: made of the project's files)
  --activate          make this version the active one after it is registered
  --show-errors       put the texts of errors into log lines; they may hold data
  --input JSON        for dev: what the handler gets (default null)
  --read-only         for dev: refuse everything that changes something
  --log LEVEL         debug, info, warn or error (default info; or RUNFLEET_HOST_LOG)
  -h, --help          print this

exit codes: 0 stopped after a signal, everything in hand finished or given back; 1 failed; 70 the broker stayed away;
78 the settings, the key or the project are refused; 130 a second signal ended it at once.
`;

const OPTIONS = {
  project: { type: "string" },
  amqp: { type: "string" },
  "key-file": { type: "string" },
  concurrency: { type: "string" },
  "drain-seconds": { type: "string" },
  "memory-mb": { type: "string" },
  "version-name": { type: "string" },
  activate: { type: "boolean" },
  "show-errors": { type: "boolean" },
  input: { type: "string" },
  "read-only": { type: "boolean" },
  log: { type: "string" },
  help: { type: "boolean", short: "h" },
} as const;

/** Largest key file that is read, in bytes. */
const KEY_BYTES_MAX = 16_384;

/** Reads the settings; `help` when they are asked for. */
export function readSettings(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Settings | "help" {
  const { values, positionals } = parsed(args);
  if (values.help === true) return "help";
  const [word = "run", ...more] = positionals;
  if (word !== "run" && word !== "dev" && word !== "check") {
    throw new SettingsError("the command is run, dev or check");
  }
  if (word !== "dev" && more.length > 0) throw new SettingsError(`${word} takes options only`);
  const level = values.log ?? env["RUNFLEET_HOST_LOG"] ?? "info";
  if (!isLevel(level)) throw new SettingsError("--log is debug, info, warn or error");
  const version = values["version-name"];
  if (version !== undefined && !/^[A-Za-z0-9._+-]{1,64}$/.test(version)) {
    throw new SettingsError("--version-name is 1 to 64 letters, digits, . _ + -");
  }
  const online = word !== "check";
  return {
    command: word,
    project: resolve(values.project ?? "."),
    amqp: online ? broker(values.amqp ?? env["RUNFLEET_AMQP_URL"]) : "",
    key: online ? key(values["key-file"] ?? env["RUNFLEET_PROJECT_KEY_FILE"]) : "",
    concurrency: whole("--concurrency", values.concurrency ?? env["RUNFLEET_HOST_CONCURRENCY"], 4, 1, 64),
    drainMs: whole("--drain-seconds", values["drain-seconds"], 30, 0, 600) * 1_000,
    memoryMb: whole("--memory-mb", values["memory-mb"], 256, 32, 4_096),
    activate: values.activate === true,
    version,
    showErrors: values["show-errors"] === true,
    dev: word === "dev" ? wanted(more, values.input ?? "null", values["read-only"] === true) : undefined,
    level,
  };
}

const KINDS: ReadonlySet<string> = new Set(["script", "job", "route", "trigger", "action", "tool"]);

function wanted(more: readonly string[], input: string, readOnly: boolean): Settings["dev"] {
  const [kind, name, ...rest] = more;
  if (kind === undefined || !KINDS.has(kind) || name === undefined || rest.length > 0) {
    throw new SettingsError("dev needs a kind (script, job, route, trigger, action or tool) and a name");
  }
  try {
    JSON.parse(input);
  } catch {
    throw new SettingsError("--input is no JSON");
  }
  return { kind, name, input, readOnly };
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true, strict: true });
  } catch (error) {
    // The text names an option and may repeat it; an unknown option is no secret, a stray value could be one.
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    const unknown = code === "ERR_PARSE_ARGS_UNKNOWN_OPTION";
    throw new SettingsError(unknown ? "there is an option that is not known" : "an option has no value, or one too many");
  }
}

function broker(url: string | undefined): string {
  if (url === undefined || url === "") throw new SettingsError("--amqp or RUNFLEET_AMQP_URL is missing");
  let scheme: string;
  try {
    scheme = new URL(url).protocol;
  } catch {
    throw new SettingsError("the address of the broker is no URL");
  }
  if (scheme !== "amqp:" && scheme !== "amqps:") {
    throw new SettingsError("the address of the broker begins with amqp:// or amqps://");
  }
  return url;
}

function key(file: string | undefined): string {
  if (file === undefined || file === "") {
    throw new SettingsError("--key-file or RUNFLEET_PROJECT_KEY_FILE is missing");
  }
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch {
    throw new SettingsError("the file of the project key cannot be read");
  }
  if (text.length > KEY_BYTES_MAX) throw new SettingsError("the file of the project key is too large");
  return text.trim();
}

function whole(name: string, text: string | undefined, otherwise: number, least: number, most: number): number {
  if (text === undefined) return otherwise;
  const number = Number(text);
  if (!Number.isInteger(number) || number < least || number > most || text.trim() === "") {
    throw new SettingsError(`${name} is a whole number from ${least} to ${most}`);
  }
  return number;
}
