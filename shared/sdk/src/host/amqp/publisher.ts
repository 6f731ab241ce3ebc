/**
 * Publishing with confirms: a message is either known to be in a queue, or known or feared not to be.
 */

import type { ConfirmChannel, Message, Options } from "amqplib";

/** A message on its way out. */
export interface Outgoing {
  readonly exchange: string;
  readonly key: string;
  /** The kind with its major version. */
  readonly kind: string;
  /** The same for every repetition of this message. */
  readonly id: string;
  /** JSON. */
  readonly body: Buffer;
  readonly correlationId?: string;
  readonly replyTo?: string;
  readonly headers?: Readonly<Record<string, string | number>>;
}

/**
 * How a publication ended: `confirmed` by the broker; `unroutable`, no queue took it; `refused`, the queue is full; `lost`, it may or
 * may not have arrived; `absent`, there was no channel and nothing was sent.
 */
export type Published = "confirmed" | "unroutable" | "refused" | "lost" | "absent";

/** Longest time for one confirm. */
const CONFIRM_MS = 10_000;

/** Pauses before a message is published again. */
const AGAIN_MS = { least: 200, most: 3_000 } as const;

/** A channel with confirms, and what was returned on it. */
class Slot {
  readonly channel: ConfirmChannel;
  readonly #returned = new Set<string>();
  #next = 1;
  #open = true;
  readonly #lost = new Set<() => void>();

  constructor(channel: ConfirmChannel) {
    this.channel = channel;
    channel.on("return", (message: Message) => {
      const mark: unknown = message.properties.headers?.["x-publish"];
      if (typeof mark === "string") this.#returned.add(mark);
    });
    channel.on("close", () => this.#close());
    channel.on("error", () => this.#close());
  }

  #close(): void {
    this.#open = false;
    for (const lost of [...this.#lost]) lost();
    this.#lost.clear();
  }

  send(message: Outgoing): Promise<Published> {
    if (!this.#open) return Promise.resolve("absent");
    const mark = String(this.#next++);
    return new Promise((resolve) => {
      const end = (how: Published): void => {
        clearTimeout(timer);
        this.#lost.delete(lost);
        this.#returned.delete(mark);
        resolve(how);
      };
      const lost = (): void => end("lost");
      const timer = setTimeout(lost, CONFIRM_MS);
      this.#lost.add(lost);
      try {
        this.channel.publish(message.exchange, message.key, message.body, properties(message, mark), (error: unknown) => {
          // A return comes before the confirm of its message.
          if (this.#returned.has(mark)) end("unroutable");
          else if (error === null || error === undefined) end("confirmed");
          else end(this.#open ? "refused" : "lost");
        });
      } catch {
        end("absent");
      }
    });
  }
}

function properties(message: Outgoing, mark: string): Options.Publish {
  return {
    mandatory: true,
    persistent: true,
    contentType: "application/json",
    type: message.kind,
    messageId: message.id,
    appId: "runfleet-host",
    timestamp: Math.floor(Date.now() / 1_000),
    ...(message.correlationId === undefined ? {} : { correlationId: message.correlationId }),
    ...(message.replyTo === undefined ? {} : { replyTo: message.replyTo }),
    headers: { timestamp_in_ms: Date.now(), "x-publish": mark, ...message.headers },
  };
}

/** Publishes on whatever channel there is at the moment. */
export class Publisher {
  #slot: Slot | undefined;

  /** The channel to publish on from now on; none when the connection is lost. */
  use(channel: ConfirmChannel | undefined): void {
    this.#slot = channel === undefined ? undefined : new Slot(channel);
  }

  /** Whether there is a channel. */
  get ready(): boolean {
    return this.#slot !== undefined;
  }

  /** Publishes once. */
  async once(message: Outgoing): Promise<Published> {
    return (await this.#slot?.send(message)) ?? "absent";
  }

  /** Publishes until the message is confirmed, or until `until` (Unix milliseconds) or the end of `signal`; then how the last attempt ended. */
  async surely(message: Outgoing, until: number, signal?: AbortSignal): Promise<Published> {
    for (let pause: number = AGAIN_MS.least; ; pause = Math.min(pause * 2, AGAIN_MS.most)) {
      const how = await this.once(message);
      if (how === "confirmed" || signal?.aborted === true) return how;
      if (Date.now() + pause >= until) return how;
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }
}
