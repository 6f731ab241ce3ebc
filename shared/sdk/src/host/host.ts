/**
 * A host from its start to its end: load the project, log in, take messages while the version is active, and drain when told to stop.
 */

import { randomBytes } from "node:crypto";
import { hostname } from "node:os";

import type { ChannelModel } from "amqplib";

import { Consumer } from "./amqp/consumer.js";
import { Link } from "./amqp/link.js";
import { Publisher } from "./amqp/publisher.js";
import { Requester } from "./amqp/requester.js";
import type { KeyClaims } from "./key.js";
import type { Log } from "./logs.js";
import { type Loaded, load } from "./project/load.js";
import { Pool } from "./run/pool.js";
import type { Settings } from "./settings.js";
import { type Login, Refused, activate, register, watch } from "./work/activation.js";
import { calls } from "./work/calls.js";
import type { Shop } from "./work/execute.js";
import { jobs } from "./work/jobs.js";
import { requests } from "./work/requests.js";

/** What the exit code says; the same numbers as those of the workers. */
export const EXIT = { stopped: 0, failed: 1, lost: 70, refused: 78, killed: 130 } as const;

/** How long the broker may stay away before the host gives up, in milliseconds. */
const LOST_MS = 10 * 60_000;

/** Longest name of a host. */
const ID_MAX = 64;

/** Runs a host until `stop` ends it; returns the exit code. */
export async function host(settings: Settings, claims: KeyClaims, log: Log, stop: AbortSignal): Promise<number> {
  const loaded = await load(settings, log);
  const version = settings.version ?? loaded.version;
  const { workspace, project } = claims;
  const pool = new Pool(settings.concurrency, settings.memoryMb, loaded.data, log);
  pool.adopt(loaded.thread);
  const lines = new Lines(settings, log);
  const login: Login = { requester: lines.requester, key: settings.key, log, hostId: hostId(), version };
  const index = loaded.index;
  const shop: Shop = { workspace, project, version, index, pool, requester: lines.requester, log, showErrors: settings.showErrors };
  const consumers = take(shop, settings, lines, pool);
  lines.start();
  try {
    return await serve(login, settings, loaded, consumers, lines, stop);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    log("error", error.message);
    return EXIT.refused;
  } finally {
    await drain(consumers, pool, lines, settings, log);
  }
}

async function serve(
  login: Login,
  settings: Settings,
  loaded: Loaded,
  consumers: readonly Consumer[],
  lines: Lines,
  stop: AbortSignal,
): Promise<number> {
  const ended = new AbortController();
  const end = (): void => ended.abort();
  stop.addEventListener("abort", end, { once: true });
  if (stop.aborted) end();
  const timer = setInterval(() => {
    if (lines.awayMs() > LOST_MS) end();
  }, 1_000);
  try {
    await register(login, loaded.manifest, ended.signal);
    if (settings.activate) await activate(login, ended.signal);
    const tell = (active: boolean): void => {
      for (const consumer of consumers) void consumer.want(active);
    };
    await watch(login, tell, ended.signal);
  } catch (error) {
    if (!ended.signal.aborted) throw error;
  } finally {
    clearInterval(timer);
    stop.removeEventListener("abort", end);
  }
  if (stop.aborted) return EXIT.stopped;
  login.log("error", "the broker stayed away");
  return EXIT.lost;
}

/** Takes no more, lets what runs end, gives back the rest. */
async function drain(consumers: readonly Consumer[], pool: Pool, lines: Lines, settings: Settings, log: Log): Promise<void> {
  log("info", "draining");
  await bounded(Promise.all(consumers.map((consumer) => consumer.want(false))), 5_000);
  const all = await pool.stop(settings.drainMs);
  if (!all) log("warn", "handlers that were still running were ended; their messages go back");
  await bounded(Promise.all(consumers.map((consumer) => consumer.over())), 5_000);
  await lines.stop();
  log("info", "stopped");
}

/** The consumers of a host. None takes anything yet. */
function take(shop: Shop, settings: Settings, lines: Lines, pool: Pool): Consumer[] {
  const { workspace, project, version, log } = shop;
  const call = `calls.${workspace}.${project}.${version}`;
  const consumers = [
    new Consumer({ queue: `jobs.${workspace}.${project}` }, pool.backgroundMax, jobs(shop, lines.publisher), log),
    new Consumer({ queue: `tasks.${workspace}.${project}` }, settings.concurrency, requests(shop, lines.publisher), log),
    // The queue of calls lives as long as hosts of the version do.
    new Consumer({ queue: call, declare: true }, settings.concurrency, calls(shop, lines.publisher), log),
  ];
  lines.onConsume = (connection) => {
    for (const consumer of consumers) consumer.use(connection);
  };
  return consumers;
}

/** The two connections of a host: what is published must not hold up acknowledgements. */
export class Lines {
  readonly publisher = new Publisher();
  readonly requester = new Requester();
  readonly #out: Link;
  readonly #in: Link;
  /** Gets each connection for consumers. */
  onConsume: ((connection: ChannelModel) => void) | undefined;

  constructor(settings: Pick<Settings, "amqp">, log: Log) {
    this.#out = new Link(settings.amqp, "publishing", log, async (connection) => {
      const channel = await connection.createConfirmChannel();
      channel.on("close", () => {
        this.publisher.use(undefined);
        this.#out.renew();
      });
      this.publisher.use(channel);
      await this.requester.use(connection);
    });
    this.#in = new Link(settings.amqp, "consuming", log, async (connection) => this.onConsume?.(connection));
  }

  start(): void {
    this.#out.start();
    this.#in.start();
  }

  /** How long the broker has been away, in milliseconds. */
  awayMs(): number {
    const since = Math.min(this.#out.downSince ?? Infinity, this.#in.downSince ?? Infinity);
    return since === Infinity ? 0 : Date.now() - since;
  }

  async stop(): Promise<void> {
    await Promise.all([this.#out.stop(), this.#in.stop()]);
  }
}

/** A name for this host among all hosts of the project. */
export function hostId(): string {
  const end = `-${process.pid}-${randomBytes(4).toString("hex")}`;
  return hostname().replace(/[^A-Za-z0-9_-]/g, "-").slice(0, ID_MAX - end.length) + end;
}

async function bounded(work: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([work, late]);
  clearTimeout(timer);
}
