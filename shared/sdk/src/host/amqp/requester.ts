/**
 * Asking the fleet and waiting for the answer, over the broker's direct reply-to.
 *
 * A request under way when its connection was lost is sent again with the same message id while its time lasts: whoever answers does
 * a message id once, the answers of both are the same, and the first one counts.
 */

import { randomUUID } from "node:crypto";

import type { ChannelModel, ConsumeMessage } from "amqplib";

import { Publisher, type Published } from "./publisher.js";

const DIRECT_REPLY = "amq.rabbitmq.reply-to";
const START = { exchange: "x.start", interactive: "start-intake.interactive" } as const;

/** Largest request, in bytes of its JSON. */
export const REQUEST_BYTES_MAX = 262_144;

/** Largest answer that is taken, in bytes. */
const ANSWER_BYTES_MAX = 1_048_576;

/** Requests that wait at once; more are refused as passing faults. */
const WAITING_MAX = 1_000;

/** An error as it travels. */
export interface ErrorBody {
  readonly code: string;
  readonly message: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** What the fleet answered. */
export type Reply = { readonly ok: true; readonly data: unknown } | { readonly ok: false; readonly error: ErrorBody };

/** A request for one operation. */
export interface Ask {
  readonly operation: string;
  /** JSON text of the options. */
  readonly payload: string;
  /** Execution token or project key. */
  readonly token: string;
  /** Unix milliseconds after which the answer is of no use. */
  readonly deadline: number;
  readonly traceparent?: string;
}

/** Asks. */
export class Requester {
  readonly #publisher = new Publisher();
  readonly #waiting = new Map<string, (reply: Reply) => void>();
  #opened: (() => void)[] = [];

  /** Uses a connection from now on. Throws when it cannot. */
  async use(connection: ChannelModel): Promise<void> {
    const channel = await connection.createConfirmChannel();
    channel.on("error", () => undefined);
    channel.on("close", () => {
      this.#publisher.use(undefined);
      // A channel that the broker closes alone would leave the link without one.
      void connection.close().catch(() => undefined);
    });
    await channel.consume(DIRECT_REPLY, (message) => this.#take(message), { noAck: true });
    this.#publisher.use(channel);
    for (const opened of this.#opened.splice(0)) opened();
  }

  /** The answer, or why there is none as an error of the contract. Never throws. */
  async ask(ask: Ask): Promise<Reply> {
    const body = Buffer.from(`{"operation":${JSON.stringify(ask.operation)},"payload":${ask.payload}}`);
    if (body.length > REQUEST_BYTES_MAX) return tooLarge(body.length);
    if (this.#waiting.size >= WAITING_MAX) return passing(false);
    const [id, correlationId] = [randomUUID(), randomUUID()];
    let end: (reply: Reply | undefined) => void = () => undefined;
    const answered = new Promise<Reply | undefined>((resolve) => {
      end = resolve;
    });
    this.#waiting.set(correlationId, end);
    const timer = setTimeout(() => end(undefined), Math.max(0, ask.deadline - Date.now()));
    const flight = { over: false, sent: false };
    void this.#send(ask, { id, correlationId, body }, flight, answered);
    const reply = await answered;
    flight.over = true;
    clearTimeout(timer);
    this.#waiting.delete(correlationId);
    // Not answered in time is not known, unless nothing was ever handed to the broker.
    return reply ?? passing(flight.sent);
  }

  /** Sends until somebody has answered: again after each loss of the channel, and after a pause where the queue is full. */
  async #send(
    ask: Ask,
    message: { id: string; correlationId: string; body: Buffer },
    flight: { over: boolean; sent: boolean },
    answered: Promise<unknown>,
  ): Promise<void> {
    while (!flight.over) {
      const [before, reopened] = [flight.sent, this.#reopened()];
      flight.sent = true;
      const how: Published = await this.#publisher.once({
        exchange: START.exchange,
        key: START.interactive,
        kind: "request.v1",
        replyTo: DIRECT_REPLY,
        ...message,
        headers: {
          authorization: ask.token,
          "expires-at": ask.deadline,
          ...(ask.traceparent === undefined ? {} : { traceparent: ask.traceparent }),
        },
      });
      // What the broker has certainly not taken has certainly not been done.
      if (how === "absent" || how === "refused" || how === "unroutable") flight.sent = before;
      if (how === "refused" || how === "unroutable") await pause(500);
      // Confirmed: wait for the answer, or for a new channel, on which the answer to the old one cannot come.
      else await Promise.race([answered, reopened.opened, ...(how === "lost" ? [pause(1_000)] : [])]);
      reopened.forget();
    }
  }

  #reopened(): { opened: Promise<void>; forget: () => void } {
    let open: () => void = () => undefined;
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    this.#opened.push(open);
    return {
      opened,
      forget: () => {
        this.#opened = this.#opened.filter((other) => other !== open);
      },
    };
  }

  #take(message: ConsumeMessage | null): void {
    if (message === null) return;
    const id: unknown = message.properties.correlationId;
    const end = typeof id === "string" ? this.#waiting.get(id) : undefined;
    end?.(readReply(message.content));
  }
}

function readReply(content: Buffer): Reply {
  if (content.length > ANSWER_BYTES_MAX) return passing(true);
  try {
    const reply: unknown = JSON.parse(content.toString("utf8"));
    if (typeof reply === "object" && reply !== null && "ok" in reply) {
      const { ok, data, error } = reply as { ok: unknown; data?: unknown; error?: unknown };
      if (ok === true) return { ok: true, data: data ?? null };
      if (isErrorBody(error)) return { ok: false, error };
    }
  } catch {
    // Handled below: an answer that cannot be read leaves open what was done.
  }
  return passing(true);
}

function isErrorBody(error: unknown): error is ErrorBody {
  if (typeof error !== "object" || error === null) return false;
  const { code, message } = error as Record<string, unknown>;
  return typeof code === "string" && typeof message === "string";
}

/** A passing fault, and whether something may have been done. */
export function passing(writesMayHaveCompleted: boolean): Reply {
  const message =
    "The request could not be completed for a passing reason. Try again later with the same idempotency key.";
  return { ok: false, error: { code: "RETRYABLE", message, details: { writesMayHaveCompleted } } };
}

function tooLarge(size: number): Reply {
  const problem = `is too large: ${size} bytes, at most ${REQUEST_BYTES_MAX} are allowed`;
  const details = { field: "", problem, limit: REQUEST_BYTES_MAX, size };
  return { ok: false, error: { code: "VALIDATION_ERROR", message: "The request is not valid.", details } };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
