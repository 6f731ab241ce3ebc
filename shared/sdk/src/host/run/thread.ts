/**
 * One thread of a host, as the host sees it: it runs one handler at a time, and whatever a handler does to it (end it, block it, fill
 * its memory), the host finds out in bounded time and the thread is replaced.
 */

import { Worker } from "node:worker_threads";

import type { Log } from "../logs.js";
import type { Ended, FromThread, ThreadData, ToThread } from "./protocol.js";

/** Time for a thread to begin. */
const START_MS = 30_000;

/** Time that a cancelled handler gets to end by itself before its thread is ended. */
const GRACE_MS = 500;

/** Longest line of project code that is logged, in characters. */
const LINE_MAX = 4_096;

/** What a handler asks the host for while it runs. */
export interface Listener {
  /** Carries out an operation; returns the JSON text of its reply. */
  call(operation: string, payload: string): Promise<string>;
  /** Takes a part of a tool's answer. */
  chunk(text: string): void;
}

/** What is to be run. */
export type Run = Omit<Extract<ToThread, { type: "run" }>, "type" | "id">;

/** A thread has ended, or was too slow to begin. */
export class ThreadEnded extends Error {
  constructor(readonly code: "HANDLER_EXITED" | "OUT_OF_MEMORY" | "THREAD_FAILED") {
    super(code);
  }
}

/** A thread. */
export class Thread {
  readonly #worker: Worker;
  readonly #log: Log;
  #next = 1;
  #running: { id: number; listener: Listener; settle: (ended: Ended) => void; fail: (error: ThreadEnded) => void } | undefined;
  #name = "";
  /** Calls of one execution run one after another. */
  #calls: Promise<void> = Promise.resolve();
  #ended: ThreadEnded | undefined;
  #spent = false;
  readonly #onEnd = new Set<(error: ThreadEnded) => void>();
  /** Gets what a surveying thread finds. */
  onSurvey: ((message: Extract<FromThread, { type: "loading" | "surveyed" }>) => void) | undefined;

  constructor(data: ThreadData, memoryMb: number, log: Log) {
    this.#log = log;
    this.#worker = new Worker(new URL("./program.js", import.meta.url), {
      workerData: data,
      resourceLimits: { maxOldGenerationSizeMb: memoryMb, stackSizeMb: 4 },
      stdout: true,
      stderr: true,
      // Handlers see no secrets of the host, and nothing of what it was started with.
      env: environment(),
      argv: [],
      execArgv: ["--enable-source-maps"],
    });
    this.#worker.on("message", (message: FromThread) => this.#take(message));
    this.#worker.on("messageerror", () => this.#over(new ThreadEnded("THREAD_FAILED")));
    this.#worker.on("error", (error: Error & { code?: string }) => {
      this.#over(new ThreadEnded(error.code === "ERR_WORKER_OUT_OF_MEMORY" ? "OUT_OF_MEMORY" : "THREAD_FAILED"));
    });
    this.#worker.on("exit", () => this.#over(new ThreadEnded("HANDLER_EXITED")));
    lines(this.#worker.stdout, (line) => this.#line("info", line));
    lines(this.#worker.stderr, (line) => this.#line("warn", line));
  }

  /** Resolves when the thread can run handlers. */
  ready(): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (error?: ThreadEnded): void => {
        clearTimeout(timer);
        this.#worker.off("message", listen);
        this.#onEnd.delete(end);
        if (error === undefined) resolve();
        else reject(error);
      };
      const listen = (message: FromThread): void => {
        if (message.type === "ready") end();
      };
      const timer = setTimeout(() => {
        end(new ThreadEnded("THREAD_FAILED"));
        void this.stop();
      }, START_MS);
      this.#worker.on("message", listen);
      if (this.#ended === undefined) this.#onEnd.add(end);
      else end(this.#ended);
    });
  }

  /** Whether it can run another handler. */
  get alive(): boolean {
    return this.#ended === undefined && !this.#spent;
  }

  /** Runs a handler to its end. Rejects with {@link ThreadEnded} when the thread ends under it. */
  run(run: Run, listener: Listener): Promise<Ended> {
    const id = this.#next++;
    this.#name = `${run.kind}:${run.name}`;
    this.#calls = Promise.resolve();
    return new Promise((resolve, reject) => {
      if (this.#ended !== undefined) {
        reject(this.#ended);
        return;
      }
      const over = (): void => {
        this.#running = undefined;
      };
      this.#running = {
        id,
        listener,
        settle: (ended) => {
          over();
          resolve(ended);
        },
        fail: (error) => {
          over();
          reject(error);
        },
      };
      this.#post({ ...run, type: "run", id });
    });
  }

  /** Tells the handler to end, and ends the thread if it does not. */
  async cancel(): Promise<void> {
    const running = this.#running;
    if (running === undefined) return;
    this.#post({ type: "cancel", id: running.id });
    for (let waited = 0; waited < GRACE_MS && this.#running === running; waited += 25) {
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    if (this.#running === running) await this.stop();
  }

  /** Ends the thread, whatever it does at the moment. */
  async stop(): Promise<void> {
    await this.#worker.terminate();
    this.#over(new ThreadEnded("HANDLER_EXITED"));
  }

  #post(message: ToThread): void {
    this.#worker.postMessage(message);
  }

  #over(error: ThreadEnded): void {
    if (this.#ended !== undefined) return;
    this.#ended = error;
    void this.#worker.terminate();
    this.#running?.fail(error);
    for (const end of [...this.#onEnd]) end(error);
    this.#onEnd.clear();
  }

  #take(message: FromThread): void {
    switch (message.type) {
      case "loading":
      case "surveyed":
        this.onSurvey?.(message);
        return;
      case "ended":
        if (message.remains) this.#spent = true;
        if (this.#running?.id === message.id) this.#running.settle(message.ended);
        return;
      case "call":
        if (this.#running?.id === message.id) this.#call(this.#running.listener, message);
        return;
      case "chunk":
        if (this.#running?.id === message.id) this.#running.listener.chunk(message.chunk);
        return;
      case "log":
        this.#log(message.level, message.message, { from: "handler", unit: this.#name, fields: message.fields });
        return;
      case "late":
        this.#log("warn", "code of a handler that had ended has failed", { trace: message.trace });
        return;
      case "ready":
    }
  }

  #call(listener: Listener, message: Extract<FromThread, { type: "call" }>): void {
    this.#calls = this.#calls.then(async () => {
      const reply = await listener.call(message.operation, message.payload);
      if (this.#ended === undefined) this.#post({ type: "reply", call: message.call, reply });
    });
  }

  /** What project code has printed is its own business; it is passed on, cut to a bound. */
  #line(level: "info" | "warn", line: string): void {
    this.#log(level, line, { from: "console", unit: this.#name });
  }
}

function lines(stream: NodeJS.ReadableStream, take: (line: string) => void): void {
  let rest = "";
  stream.setEncoding("utf8");
  stream.on("data", (text: string) => {
    const parts = (rest + text).split("\n");
    rest = (parts.pop() ?? "").slice(0, LINE_MAX);
    for (const line of parts) if (line.trim() !== "") take(line.slice(0, LINE_MAX));
  });
  stream.on("end", () => {
    if (rest.trim() !== "") take(rest);
  });
}

/** What handlers see of the environment: everything but what configures the host. */
function environment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("RUNFLEET_")));
}
