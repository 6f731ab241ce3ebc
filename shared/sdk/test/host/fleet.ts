/**
 * What a host meets of the fleet, on a real RabbitMQ in a virtual host of its own: start-intake's queue with answers from a table, the
 * queues of one project, and what the host tells.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { type Channel, type ConsumeMessage, connect } from "amqplib";

import { type Lines, project, until } from "./project.js";

/** A test that cleans up after itself. */
export interface Test {
  after(fn: () => unknown): void;
}

/** A message that a host has published as an answer. */
export interface Told {
  readonly kind: string;
  readonly id: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** A request that has come to start-intake. */
export interface Asked {
  readonly id: string;
  readonly operation: string;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly token: unknown;
}

/** Answers a request: data, or an error body as `{error}`; undefined gives no answer. */
export type Operation = (payload: Readonly<Record<string, unknown>>, asked: Asked) => unknown;

const ANSWERS = "test.answers";

function setting(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is missing: deploy/local/services start DIR, and load DIR/services.env`);
  return value;
}

/** The virtual host of one test. */
export class Fleet {
  readonly asked: Asked[] = [];
  readonly told: Told[] = [];
  readonly operations = new Map<string, Operation>();
  active: string | null = null;
  readonly url: string;
  readonly #channel: Channel;

  private constructor(url: string, channel: Channel) {
    this.url = url;
    this.#channel = channel;
    this.operations.set("projects.register", ({ version }) => ({ version, created: true }));
    this.operations.set("projects.activate", ({ version }) => {
      this.active = String(version);
      return { version, previous: null };
    });
    this.operations.set("projects.show", () => ({ active: this.active, versions: [], hosts: [] }));
  }

  static async start(test: Test): Promise<Fleet> {
    const name = `sdk-host-${randomBytes(6).toString("hex")}`;
    await manage("PUT", `vhosts/${name}`);
    const url = new URL(setting("RUNFLEET_AMQP_URL"));
    url.pathname = `/${name}`;
    await manage("PUT", `permissions/${name}/${url.username}`, { configure: ".*", write: ".*", read: ".*" });
    const connection = await connect(url.href);
    connection.on("error", () => undefined);
    test.after(async () => {
      await Promise.race([connection.close().catch(() => undefined), new Promise((resolve) => setTimeout(resolve, 2_000))]);
      await manage("DELETE", `vhosts/${name}`);
    });
    const channel = await connection.createChannel();
    const fleet = new Fleet(url.href, channel);
    await fleet.#declare();
    return fleet;
  }

  async #declare(): Promise<void> {
    const channel = this.#channel;
    for (const [exchange, queue] of [["x.start", "start-intake.interactive"], ["x.answers", ANSWERS]] as const) {
      await channel.assertExchange(exchange, "direct", { durable: true });
      await channel.assertQueue(queue, { durable: true, arguments: { "x-queue-type": "quorum" } });
      await channel.bindQueue(queue, exchange, queue);
    }
    for (const queue of ["jobs.acme.shop", "tasks.acme.shop"]) {
      await channel.assertQueue(queue, { durable: true, arguments: { "x-queue-type": "quorum" } });
    }
    await channel.consume("start-intake.interactive", (message) => void this.#answer(message), { noAck: true });
    await channel.consume(ANSWERS, (message) => this.#hear(message), { noAck: true });
  }

  async #answer(message: ConsumeMessage | null): Promise<void> {
    if (message === null) return;
    const { operation, payload } = JSON.parse(message.content.toString()) as { operation: string; payload: Asked["payload"] };
    const { messageId, replyTo, correlationId, headers } = message.properties;
    const asked = { id: String(messageId), operation, payload, token: headers?.["authorization"] };
    this.asked.push(asked);
    const data = await this.operations.get(operation)?.(payload, asked);
    if (data === undefined) return;
    const failed = typeof data === "object" && data !== null && "error" in data;
    const reply = failed ? { ok: false, error: data.error } : { ok: true, data };
    this.#channel.publish("", String(replyTo), Buffer.from(JSON.stringify(reply)), { correlationId: String(correlationId) });
  }

  #hear(message: ConsumeMessage | null): void {
    if (message === null) return;
    const body = JSON.parse(message.content.toString()) as Told["body"];
    this.told.push({ kind: String(message.properties.type), id: String(message.properties.messageId), body });
  }

  /** Takes the queue of requests away from where they are published. */
  async unbind(): Promise<void> {
    await this.#channel.unbindQueue("start-intake.interactive", "x.start", "start-intake.interactive");
  }

  /** Listens where results of jobs went before they had an address. */
  async older(): Promise<void> {
    await this.#channel.assertExchange("x.done", "direct", { durable: true });
    await this.#channel.bindQueue(ANSWERS, "x.done", "completion-dispatcher.interactive");
  }

  /** What was told of one kind. */
  of(kind: string): Told[] {
    return this.told.filter((told) => told.kind === kind);
  }

  /** Requests of one operation. */
  requests(operation: string): Asked[] {
    return this.asked.filter((asked) => asked.operation === operation);
  }

  /** Puts a message into a queue. */
  send(queue: string, kind: string, id: string, body: unknown, addressed = true, token = "execution-token"): void {
    this.#channel.sendToQueue(queue, Buffer.from(JSON.stringify(body)), {
      persistent: true,
      type: kind,
      messageId: id,
      ...(addressed ? { replyTo: ANSWERS } : {}),
      headers: { authorization: token },
    });
  }

  /** Puts a job into the queue of the project. */
  job(key: string, id: string, more: Readonly<Record<string, unknown>> = {}, addressed = true): void {
    const at = Date.now();
    const body = {
      jobId: id, job: key, project: "shop", workspace: "acme", attempt: 1, source: "enqueue", enqueuedBy: "rpc", enqueuedAt: at, user: null,
      hops: 9, depth: 0, chain: 1, payload: { a: 1 }, maxAttempts: 5, timeoutMs: 5_000, runAt: null, deadline: at + 60_000, version: "1", ...more,
    };
    this.send("jobs.acme.shop", "job.run.v1", `job:${id}:${String(body.attempt)}`, body, addressed);
  }

  /** Messages of a queue that nobody has taken, and those in somebody's hands. */
  async waiting(queue: string): Promise<number> {
    return (await this.#channel.checkQueue(queue)).messageCount;
  }

  /** Takes one message off a queue. */
  async take(queue: string): Promise<boolean> {
    return (await this.#channel.get(queue, { noAck: true })) !== false;
  }

  /** Cuts every connection of hosts. Returns how many there were. */
  async cut(): Promise<number> {
    const name = decodeURIComponent(new URL(this.url).pathname.slice(1));
    type Row = { name: string; client_properties?: { connection_name?: string } };
    const rows = (await (await manage("GET", `vhosts/${name}/connections`)).json()) as Row[];
    const hosts = rows.filter((row) => row.client_properties?.connection_name?.startsWith("runfleet-host") === true);
    for (const row of hosts) await manage("DELETE", `connections/${encodeURIComponent(row.name)}`);
    return hosts.length;
  }
}

async function manage(method: string, path: string, body?: unknown): Promise<Response> {
  const url = new URL(setting("RUNFLEET_AMQP_MANAGEMENT_URL"));
  const [user, password] = [decodeURIComponent(url.username), decodeURIComponent(url.password)];
  const response = await fetch(`${url.origin}/api/${path}`, {
    method,
    headers: { authorization: `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!response.ok && response.status !== 404) throw new Error(`${method} ${path}: ${response.status}`);
  return response;
}

/** A host in a process of its own. */
export class Host {
  readonly lines: Lines[] = [];
  readonly process: ChildProcess;
  readonly ended: Promise<number | null>;
  errors = "";

  private constructor(child: ChildProcess) {
    this.process = child;
    this.ended = once(child, "exit").then(([code]) => code as number | null);
    let rest = "";
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      const parts = (rest + text).split("\n");
      rest = parts.pop() ?? "";
      for (const line of parts) this.lines.push(JSON.parse(line) as Lines);
    });
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.errors += text;
    });
  }

  /** Starts a host of `acme/shop`. */
  static start(test: Test, fleet: { url: string }, root: string, args: readonly string[] = [], env: Readonly<Record<string, string>> = {}): Host {
    const keyFile = join(root, ".key");
    writeFileSync(keyFile, `${projectKey()}\n`);
    const program = fileURLToPath(new URL("./run-host.js", import.meta.url));
    const child = spawn(
      process.execPath,
      ["--enable-source-maps", program, "--project", root, "--key-file", keyFile, "--version-name", "1", "--activate", "--log", "debug", ...args],
      { env: { PATH: process.env["PATH"], RUNFLEET_AMQP_URL: fleet.url, ...env }, stdio: ["ignore", "pipe", "pipe"] },
    );
    test.after(() => child.kill("SIGKILL"));
    return new Host(child);
  }

  /** Waits until it takes jobs. */
  async taking(): Promise<void> {
    const taking = (): boolean => this.lines.filter((line) => line.message === "taking messages").length >= 3;
    await until("the host takes messages", () => taking() || this.process.exitCode !== null, 20_000);
    if (!taking()) throw new Error(`the host has ended: ${this.errors}${JSON.stringify(this.lines)}`);
  }
}

/** A test that never ends by itself: what tests of one file share is cleaned up when all of them have ended. */
export class File implements Test {
  readonly #last: (() => unknown)[] = [];

  after(fn: () => unknown): void {
    this.#last.unshift(fn);
  }

  async end(): Promise<void> {
    for (const fn of this.#last) await fn();
  }
}

/** A key that says whose it is; nobody verifies it here. */
export function projectKey(claims: Readonly<Record<string, unknown>> = {}): string {
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const exp = Math.floor(Date.now() / 1_000) + 3_600;
  return `${part({ alg: "EdDSA" })}.${part({ workspace: "acme", project: "shop", exp, ...claims })}.signature`;
}

/** A fleet, and a host of a project of one file that has begun to work. */
export async function working(test: Test, code: string, args: readonly string[] = [], env: Readonly<Record<string, string>> = {}) {
  const fleet = await Fleet.start(test);
  const root = project(test, { "src/main.ts": code });
  const host = Host.start(test, fleet, root, args, env);
  await host.taking();
  return { fleet, host, root };
}
