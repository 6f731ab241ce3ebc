/** When a consumer is over: only then may its connection be closed. The broker is a fake one that answers when it is told to. */
import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { test } from "node:test";

import type { ChannelModel, ConsumeMessage } from "amqplib";

import { Consumer, type Handler } from "../../../src/host/amqp/consumer.js";
import { until } from "../project.js";

/** A channel that notes what is done with it, and confirms its closing only when it is told to. */
class Channel extends EventEmitter {
  readonly done: string[] = [];
  deliver: (message: ConsumeMessage | null) => void = () => undefined;
  confirm: () => void = () => undefined;

  async prefetch(): Promise<void> {}

  async consume(_queue: string, deliver: (message: ConsumeMessage | null) => void): Promise<{ consumerTag: string }> {
    this.deliver = deliver;
    return { consumerTag: "tag" };
  }

  async cancel(): Promise<void> {
    this.done.push("cancel");
  }

  ack(): void {
    this.done.push("ack");
  }

  close(): Promise<void> {
    this.done.push("close");
    return new Promise((resolve) => (this.confirm = resolve));
  }
}

/** A consumer that has one message in hand and was told to take no more, and whether it is over. */
async function draining(handler: Handler) {
  const channel = new Channel();
  const connection = Object.assign(new EventEmitter(), { createChannel: async () => channel }) as unknown as ChannelModel;
  const consumer = new Consumer({ queue: "jobs" }, 1, handler, () => undefined);
  consumer.use(connection);
  await consumer.want(true);
  await until("it takes messages", () => consumer.taking);
  channel.deliver({ content: Buffer.alloc(0), fields: {}, properties: {} } as unknown as ConsumeMessage);
  await consumer.want(false);
  const state = { over: false };
  void consumer.over().then(() => (state.over = true));
  return { channel, state };
}

const moment = (): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, 20));

test("a consumer is over when its last message is acknowledged and the broker has confirmed that the channel is closed", async () => {
  let end = (): void => undefined;
  const { channel, state } = await draining(() => new Promise((resolve) => (end = () => resolve("done"))));
  await moment();
  assert.deepEqual([channel.done, state.over], [["cancel"], false]);
  end();
  await until("the channel is being closed", () => channel.done.includes("close"));
  await moment();
  assert.deepEqual([channel.done, state.over], [["cancel", "ack", "close"], false]);
  channel.confirm();
  await until("it is over", () => state.over);
});

test("a consumer whose channel goes with its connection is over without a confirmation", async () => {
  const { channel, state } = await draining(async () => "done");
  await until("the channel is being closed", () => channel.done.includes("close"));
  channel.emit("close");
  await until("it is over", () => state.over);
});
