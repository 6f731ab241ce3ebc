/**
 * Taking messages off one queue, a bounded number at once. A message is acknowledged when its handler says so and not before, and
 * goes back to the queue when its channel is lost: handlers see some messages twice.
 */

import type { Channel, ChannelModel, ConsumeMessage } from "amqplib";

import type { Log } from "../logs.js";

/** What becomes of a message: `done`, it is off the queue; `parked`, it is put aside for an operator; `again`, it goes back. */
export type Verdict = "done" | "parked" | "again";

/** A message as a handler sees it. */
export interface Delivery {
  readonly kind: string;
  readonly body: Buffer;
  readonly replyTo: string | undefined;
  readonly headers: Readonly<Record<string, unknown>>;
  /** Ends when the message can no longer be acknowledged: somebody else will get it. */
  readonly lost: AbortSignal;
  /** How often the queue has got it back. */
  readonly returns: number;
}

/** Handles a message. What it throws counts as `again`. */
export type Handler = (delivery: Delivery) => Promise<Verdict>;

/** Pause before a message goes back to its queue, so that it does not come round at once. */
const AGAIN_MS = 1_000;

/** Pause before a queue that was not there, or was taken away, is tried again. */
const MISSING_MS = 2_000;

/** Takes messages off one queue while it is wanted and connected. */
export class Consumer {
  readonly queue: string;
  readonly #declare: boolean;
  readonly #prefetch: number;
  readonly #handler: Handler;
  readonly #log: Log;
  #connection: ChannelModel | undefined;
  #wanted = false;
  #busy = false;
  #channel: Channel | undefined;
  #tag: string | undefined;
  readonly #inHand = new Set<Promise<void>>();
  readonly #closing = new Set<Promise<void>>();
  #missingSaid = false;

  /** `declare` makes the queue: classic, and gone with its last consumer. All others belong to the fleet and are there or missing. */
  constructor(from: { queue: string; declare?: boolean }, prefetch: number, handler: Handler, log: Log) {
    this.queue = from.queue;
    this.#declare = from.declare === true;
    this.#prefetch = prefetch;
    this.#handler = handler;
    this.#log = log;
  }

  /** Uses a connection from now on. */
  use(connection: ChannelModel): void {
    this.#connection = connection;
    this.#channel = undefined;
    this.#tag = undefined;
    connection.on("close", () => {
      if (this.#connection === connection) this.#connection = undefined;
    });
    void this.#settle();
  }

  /** Begins to take messages, or stops; those in hand are finished either way. */
  async want(wanted: boolean): Promise<void> {
    this.#wanted = wanted;
    await this.#settle();
  }

  /** Whether messages are taken at the moment. */
  get taking(): boolean {
    return this.#tag !== undefined;
  }

  /**
   * Waits until no message is in hand and the broker has read every acknowledgement. A connection that is closed earlier may forget some:
   * the library writes the frames of different channels in an order of its own.
   */
  async over(): Promise<void> {
    await this.#idle();
    await Promise.all(this.#closing);
  }

  async #idle(): Promise<void> {
    while (this.#inHand.size > 0) await Promise.all(this.#inHand);
  }

  /** Brings what is and what is wanted together, one step at a time. */
  async #settle(): Promise<void> {
    if (this.#busy) return;
    this.#busy = true;
    try {
      while (this.#connection !== undefined && this.#wanted !== (this.#tag !== undefined)) {
        if (this.#wanted) await this.#begin(this.#connection);
        else await this.#end();
      }
    } catch {
      // The link is being renewed or the queue is missing; the close handler or the timer below comes back here.
      this.#tag = undefined;
      this.#channel = undefined;
      this.#later();
    } finally {
      this.#busy = false;
    }
  }

  #later(): void {
    setTimeout(() => void this.#settle(), MISSING_MS).unref();
  }

  async #begin(connection: ChannelModel): Promise<void> {
    const channel = await connection.createChannel();
    const lost = new AbortController();
    channel.on("error", (error: Error & { code?: unknown }) => {
      if (error.code !== 404 || this.#missingSaid) return;
      this.#missingSaid = true;
      this.#log("warn", "a queue is missing; has the project been applied?", { queue: this.queue });
    });
    channel.on("close", () => {
      lost.abort();
      if (this.#channel !== channel) return;
      this.#channel = undefined;
      this.#tag = undefined;
      this.#later();
    });
    this.#channel = channel;
    if (this.#declare) {
      const options = { durable: true, autoDelete: true, exclusive: false, arguments: { "x-queue-type": "classic" } };
      await channel.assertQueue(this.queue, options);
    }
    await channel.prefetch(this.#prefetch);
    const { consumerTag } = await channel.consume(this.queue, (message) => {
      if (message === null) {
        // The queue was deleted or has moved. A new channel finds it where it is now.
        void channel.close().catch(() => undefined);
        return;
      }
      const work = this.#take(channel, message, lost.signal).finally(() => this.#inHand.delete(work));
      this.#inHand.add(work);
    });
    this.#tag = consumerTag;
    this.#missingSaid = false;
    this.#log("info", "taking messages", { queue: this.queue });
  }

  async #end(): Promise<void> {
    const [channel, tag] = [this.#channel, this.#tag];
    if (channel !== undefined && tag !== undefined) await channel.cancel(tag);
    this.#channel = undefined;
    this.#tag = undefined;
    this.#log("info", "taking no more messages", { queue: this.queue });
    if (channel === undefined) return;
    // The channel stays open for the acknowledgements of what is in hand, and closes after the last of them.
    const closing = this.#idle()
      .then(() => closed(channel))
      .finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }

  async #take(channel: Channel, message: ConsumeMessage, lost: AbortSignal): Promise<void> {
    let verdict: Verdict;
    try {
      verdict = await this.#handler(delivery(message, lost));
    } catch {
      this.#log("error", "a message could not be handled; it goes back", { queue: this.queue });
      verdict = "again";
    }
    if (verdict === "again" && !lost.aborted) await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    if (lost.aborted) return;
    try {
      if (verdict === "done") channel.ack(message);
      else channel.nack(message, false, verdict === "again");
    } catch {
      // The channel went meanwhile, and the message with it.
    }
  }
}

/** Closes a channel. Over when the broker has confirmed it, or when the channel has gone with its connection. */
async function closed(channel: Channel): Promise<void> {
  const gone = new Promise((resolve) => channel.once("close", resolve));
  await Promise.race([Promise.resolve().then(() => channel.close()).catch(() => undefined), gone]);
}

function delivery(message: ConsumeMessage, lost: AbortSignal): Delivery {
  const { type, replyTo } = message.properties as { type?: unknown; replyTo?: unknown };
  const headers: Readonly<Record<string, unknown>> = message.properties.headers ?? {};
  const returns = headers["x-delivery-count"];
  return {
    kind: typeof type === "string" ? type : "",
    body: message.content,
    replyTo: typeof replyTo === "string" ? replyTo : undefined,
    headers,
    lost,
    returns: typeof returns === "number" ? returns : 0,
  };
}
