/** Background jobs. */
import type { HandlerContext } from "../context.js";
import { isPlainObject, frozenCopy } from "../json.js";
import type { EffectiveWorkspaceObjects } from "../records.js";
import { Config, handlerOf, KEY, KEY_PROBLEM } from "./config.js";
import { isTimeZone, normalCron } from "./cron.js";

/** When a job runs by itself. */
export interface JobSchedule {
  /** Five fields: minute, hour, day of the month, month, day of the week. */
  readonly cron: string;
  /** Name of an IANA time zone; `UTC` unless it is given. */
  readonly timezone?: string;
}

/** What is said about a job. */
export interface JobConfig {
  /** Names the job: a letter, then letters, digits and `_`, at most 100. Keep it from version to version. */
  readonly key: string;
  /** A name for people, at most 250 characters; the key unless it is given. */
  readonly name?: string;
  /** Time of one attempt: 1,000 to 60,000 milliseconds; 30,000 unless it is given. */
  readonly timeoutMs?: number;
  /** Attempts in all: 1 to 10; 5 unless it is given. */
  readonly maxAttempts?: number;
  /** When it runs by itself. */
  readonly schedule?: JobSchedule;
}

/** A job with every default filled in. */
export interface JobManifest {
  readonly key: string;
  readonly name: string;
  readonly timeoutMs: number;
  readonly maxAttempts: number;
  readonly schedule?: { readonly cron: string; readonly timezone: string };
}

/** The run of a job that a handler works for. */
export interface JobInfo {
  /** The run; the same in every attempt. */
  readonly id: string;
  /** Which job. */
  readonly key: string;
  /** Which attempt this is, from 1. */
  readonly attempt: number;
  /** Attempts in all. */
  readonly maxAttempts: number;
  /** What brought it. */
  readonly source: "enqueue" | "schedule";
  /** When it was due, in Unix milliseconds. */
  readonly runAt: number;
  /** When it was enqueued, in Unix milliseconds; absent for a schedule. */
  readonly enqueuedAt?: number;
}

/** What the handler of a job is given. */
export interface JobContext<Payload = unknown, Schema extends object = EffectiveWorkspaceObjects> extends HandlerContext<Schema> {
  /** The run. */
  readonly job: JobInfo;
  /** What was enqueued, or null. Nobody has checked it. */
  readonly payload: Payload | null;
}

/** Does the work of a job. May run more than once for one run. */
export type JobHandler<Payload = unknown, Schema extends object = EffectiveWorkspaceObjects> = (
  context: JobContext<Payload, Schema>,
) => void | Promise<void>;

/** A job of a project. */
export interface JobDefinition {
  readonly kind: "job";
  readonly key: string;
  readonly config: JobManifest;
  readonly handler: JobHandler<never>;
}

const OPTIONS = ["key", "name", "timeoutMs", "maxAttempts", "schedule"];

/**
 * Defines a background job. Export it as default, or in the list `jobs`.
 *
 * @throws ValidationError when an option is not known or out of its bounds.
 */
export function defineJob<Payload = unknown, Schema extends object = EffectiveWorkspaceObjects>(
  config: JobConfig,
  handler: JobHandler<Payload, Schema>,
): JobDefinition {
  const options = new Config("job", config, OPTIONS);
  const key = options.name("key", KEY, KEY_PROBLEM);
  const schedule = scheduleOf(options);
  const manifest: JobManifest = {
    key,
    name: options.text("name", 250, key),
    timeoutMs: options.integer("timeoutMs", 1_000, 60_000, 30_000),
    maxAttempts: options.integer("maxAttempts", 1, 10, 5),
    ...(schedule === undefined ? {} : { schedule }),
  };
  const work = handlerOf("job", handler) as unknown as JobHandler<never>;
  return Object.freeze({ kind: "job", key, config: frozenCopy(manifest), handler: work });
}

function scheduleOf(options: Config): JobManifest["schedule"] {
  const given = options.get("schedule");
  if (given === undefined) return undefined;
  if (!isPlainObject(given)) throw options.wrong("schedule", "must be an object");
  const schedule = new Config("job.schedule", given, ["cron", "timezone"]);
  const normal = normalCron(schedule.get("cron"));
  if ("problem" in normal) throw schedule.wrong("cron", normal.problem);
  const timezone = schedule.get("timezone") ?? "UTC";
  if (!isTimeZone(timezone)) throw schedule.wrong("timezone", "must be the name of an IANA time zone");
  return { cron: normal.cron, timezone };
}
