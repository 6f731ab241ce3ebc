/**
 * One connection to the broker that is opened again whenever it is lost. Knows nothing of what is done with it.
 */

import { connect, type ChannelModel } from "amqplib";

import type { Log } from "../logs.js";

/** Longest time for opening a connection. */
const CONNECT_MS = 10_000;

/** Seconds between heartbeats: two that are missing end the connection. */
const HEARTBEAT_S = 10;

/** First and longest pause between attempts. */
const PAUSE_MS = { first: 250, longest: 15_000 } as const;

/** Time after which a connection counts as good: before that the pauses go on growing. */
const STANDS_MS = 5_000;

/** What a link does with each connection. Throws when it cannot be used; then another one is opened after a pause. */
export type Setup = (connection: ChannelModel) => Promise<void>;

/** A connection that comes back. */
export class Link {
  readonly #url: string;
  readonly #name: string;
  readonly #log: Log;
  readonly #setup: Setup;
  #connection: ChannelModel | undefined;
  #stopped = false;
  #wake: (() => void) | undefined;
  #running: Promise<void> | undefined;
  /** Unix milliseconds since when there is no connection; none while there is one. */
  downSince: number | undefined = Date.now();

  constructor(url: string, name: string, log: Log, setup: Setup) {
    this.#url = url;
    this.#name = name;
    this.#log = log;
    this.#setup = setup;
  }

  /** Begins to connect, and goes on until {@link stop}. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** Closes the connection and opens no other. Bounded. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#wake?.();
    await closed(this.#connection);
    await this.#running;
  }

  async #run(): Promise<void> {
    let pause: number = PAUSE_MS.first;
    while (!this.#stopped) {
      try {
        await this.#once(() => {
          pause = PAUSE_MS.first;
        });
      } catch (error) {
        this.#log("warn", "the broker cannot be used; trying again", { link: this.#name, cause: cause(error) });
      }
      this.#connection = undefined;
      this.downSince ??= Date.now();
      if (!this.#stopped) await this.#sleep(pause * (0.75 + Math.random() / 2));
      pause = Math.min(pause * 2, PAUSE_MS.longest);
    }
  }

  /** One connection, from its opening to its end. */
  async #once(good: () => void): Promise<void> {
    const connection = await connect(options(this.#url), {
      timeout: CONNECT_MS,
      noDelay: true,
      clientProperties: { connection_name: `runfleet-host ${this.#name}` },
    });
    const ended = new Promise<Error | undefined>((resolve) => {
      connection.on("error", resolve);
      connection.on("close", resolve);
    });
    connection.on("blocked", () => this.#log("warn", "the broker takes no messages at the moment", { link: this.#name }));
    this.#connection = connection;
    if (this.#stopped) return closed(connection);
    try {
      await this.#setup(connection);
    } catch (error) {
      await closed(connection);
      throw error;
    }
    this.downSince = undefined;
    const standing = setTimeout(good, STANDS_MS);
    this.#log("debug", "connected to the broker", { link: this.#name });
    const error = await ended;
    clearTimeout(standing);
    if (!this.#stopped) {
      this.#log("warn", "the connection to the broker was lost", { link: this.#name, cause: cause(error) });
    }
    await closed(connection);
  }

  /** Gives the present connection up, so that another one is opened. */
  renew(): void {
    void closed(this.#connection);
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** Closes a connection, in whatever state it is; gives up waiting after two seconds. */
async function closed(connection: ChannelModel | undefined): Promise<void> {
  if (connection === undefined) return;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, 2_000);
  });
  await Promise.race([Promise.resolve().then(() => connection.close()).catch(() => undefined), late]);
  clearTimeout(timer);
}

/** Parts of the address as the library wants them. A name that is absent is the library's default. */
function options(address: string) {
  const url = new URL(address);
  const path = url.pathname.replace(/^\//, "");
  return {
    protocol: url.protocol.replace(":", ""),
    hostname: url.hostname.replace(/^\[|\]$/g, ""),
    ...(url.port === "" ? {} : { port: Number(url.port) }),
    username: url.username === "" ? "guest" : decodeURIComponent(url.username),
    password: url.username === "" ? "guest" : decodeURIComponent(url.password),
    vhost: path === "" ? "/" : decodeURIComponent(path),
    heartbeat: HEARTBEAT_S,
  };
}

/** A short word for what went wrong; the text of an error could hold an address with its password. */
export function cause(error: unknown): string {
  if (!(error instanceof Error)) return "closed";
  const { code } = error as { code?: unknown };
  if (typeof code === "string" || typeof code === "number") return String(code);
  return error.name;
}
