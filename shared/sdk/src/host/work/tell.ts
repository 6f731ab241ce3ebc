/**
 * Telling the fleet what has become of a message: with a confirm before the message is acknowledged, and again whenever the message
 * comes again.
 */

import type { Delivery, Handler, Verdict } from "../amqp/consumer.js";
import type { Publisher } from "../amqp/publisher.js";
import { point } from "../faults.js";
import type { Log } from "../logs.js";
import { Once } from "./once.js";
import { BadField, type Fields, object } from "./read.js";

/** Exchange of answers. */
export const ANSWERS = "x.answers";

/** Longest time for an answer to be confirmed, over lost connections too. After that the message goes back. */
const TELL_MS = 60_000;

/** Deliveries after which a message is taken to kill its hosts. Restarts of hosts count too, so this is far above what they cause. */
export const RETURNS_MAX = 20;

/** An answer that is ready to be told. */
export interface Answer {
  readonly kind: string;
  readonly id: string;
  /** JSON. */
  readonly body: Buffer;
}

/** What one kind of message asks for. */
export interface Asked {
  /** Names the attempt: the same for each repetition of the message. */
  readonly id: string;
  /** Unix milliseconds after which nobody waits any more. */
  readonly deadline: number;
  readonly answerKind: string;
  readonly answerId: string;
  /** Does it; returns the body of the answer. None when it was not done and the message should go back. What it tells meanwhile may be lost. */
  readonly work: (tell: (answer: Answer) => void) => Promise<Buffer | undefined>;
}

/** Where answers go. */
export interface Address {
  readonly exchange: string;
  readonly key: string;
}

/**
 * A handler of messages of one queue. `ask` reads a message; none parks it. `otherwise` is the address for a message that names none; without
 * one it is parked.
 */
export function telling(
  publisher: Publisher,
  log: Log,
  ask: (kind: string, fields: Fields, delivery: Delivery) => Asked | undefined,
  otherwise: (delivery: Delivery) => Address | undefined = () => undefined,
): Handler {
  const once = new Once();
  return async (delivery): Promise<Verdict> => {
    const asked = read(delivery, ask);
    const { replyTo } = delivery;
    const to = replyTo === undefined ? otherwise(delivery) : { exchange: ANSWERS, key: replyTo };
    if (asked === undefined || to === undefined) {
      log("error", "a message cannot be read and is parked", { kind: delivery.kind });
      return "parked";
    }
    if (Date.now() >= asked.deadline) {
      log("warn", "a message came too late and is dropped", { id: asked.id });
      return "done";
    }
    const tell = (answer: Answer): void => {
      if (replyTo !== undefined) void publisher.once({ ...to, ...answer });
    };
    point("taken");
    const body = await once.run(asked.id, () => asked.work(tell));
    if (body === undefined) return "again";
    point("executed");
    const answer = { ...to, kind: asked.answerKind, id: asked.answerId, body };
    const how = await publisher.surely(answer, Date.now() + TELL_MS);
    point("told");
    if (how === "confirmed") return "done";
    log("error", "an answer could not be told; its message goes back", { id: asked.id, how });
    return "again";
  };
}

function read(delivery: Delivery, ask: (kind: string, fields: Fields, delivery: Delivery) => Asked | undefined): Asked | undefined {
  const fields = object(delivery.body);
  if (fields === undefined) return undefined;
  try {
    return ask(delivery.kind, fields, delivery);
  } catch (error) {
    if (error instanceof BadField) return undefined;
    throw error;
  }
}

/** JSON as it travels. */
export function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}
