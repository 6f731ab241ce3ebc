/**
 * The threads of a host, and who gets them: calls that somebody waits for first, then tools, then jobs and tasks. Jobs and tasks never
 * hold all threads, so that a call finds one.
 */

import type { Log } from "../logs.js";
import type { Ended, ThreadData } from "./protocol.js";
import { type Listener, type Run, Thread, ThreadEnded } from "./thread.js";

/** Who goes first. */
export type Urgency = "call" | "tool" | "job";

const ORDER: readonly Urgency[] = ["call", "tool", "job"];

/** How an execution ended: as its handler said, or because it was over before. */
export type Result =
  | Ended
  | { readonly how: "late" }
  | { readonly how: "crashed"; readonly code: ThreadEnded["code"] }
  | { readonly how: "stopped" };

/** What to run, and until when. */
export interface Work {
  readonly run: Run;
  readonly urgency: Urgency;
  readonly listener: Listener;
  /** Milliseconds from the moment when a thread takes it. */
  readonly timeoutMs: number;
  /** Unix milliseconds after which it is not begun any more. */
  readonly beginBy: number;
  /** Called when a thread has taken it. */
  readonly began?: () => void;
  /** Ends what waits or runs, when nobody is left to tell. */
  readonly signal?: AbortSignal;
}

interface Waiting {
  readonly work: Work;
  readonly take: (thread: Thread) => void;
  readonly leave: (result: Result) => void;
}

/** Pause after a thread could not be started. */
const RESTART_MS = 1_000;

/** Threads that run handlers. */
export class Pool {
  readonly #size: number;
  readonly #memoryMb: number;
  readonly #log: Log;
  #data: ThreadData;
  readonly #idle: Thread[] = [];
  #threads = 0;
  #background = 0;
  #waiting: Waiting[] = [];
  #stopped = false;
  /** Whether what still runs is being ended, because the time for draining is over. */
  #cut = false;
  readonly #running = new Set<Thread>();

  constructor(size: number, memoryMb: number, data: ThreadData, log: Log) {
    this.#size = size;
    this.#memoryMb = memoryMb;
    this.#data = data;
    this.#log = log;
  }

  /** Most jobs and tasks at once. */
  get backgroundMax(): number {
    return Math.max(1, this.#size - 1);
  }

  /** Takes a thread that is ready and runs nothing. */
  adopt(thread: Thread): void {
    this.#threads += 1;
    this.#idle.push(thread);
  }

  /** Runs something to its end. Never rejects. */
  run(work: Work): Promise<Result> {
    if (this.#stopped) return Promise.resolve({ how: "stopped" });
    return new Promise((resolve) => {
      const clear = (): void => {
        clearTimeout(timer);
        work.signal?.removeEventListener("abort", gone);
        this.#waiting = this.#waiting.filter((other) => other !== waiting);
      };
      const waiting: Waiting = {
        work,
        take: (thread) => {
          clear();
          void this.#execute(work, thread).then(resolve);
        },
        leave: (result) => {
          clear();
          resolve(result);
        },
      };
      const gone = (): void => waiting.leave({ how: "stopped" });
      const timer = setTimeout(() => waiting.leave({ how: "late" }), bounded(work.beginBy - Date.now()));
      if (work.signal?.aborted === true) {
        waiting.leave({ how: "stopped" });
        return;
      }
      work.signal?.addEventListener("abort", gone, { once: true });
      this.#waiting.push(waiting);
      this.#assign();
    });
  }

  /** Gives back what waits, waits at most `ms` for what runs, and ends all threads. Whether everything that ran has ended by itself. */
  async stop(ms: number): Promise<boolean> {
    this.#stopped = true;
    for (const waiting of [...this.#waiting]) waiting.leave({ how: "stopped" });
    for (const until = Date.now() + ms; this.#running.size > 0 && Date.now() < until; ) {
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    const all = this.#running.size === 0;
    this.#cut = true;
    await Promise.all([...this.#idle, ...this.#running].map((thread) => thread.stop()));
    return all;
  }

  /** Gives threads to whoever waits, the most urgent first. */
  #assign(): void {
    for (;;) {
      const next = this.#next();
      if (next === undefined) return;
      const thread = this.#idle.pop();
      if (thread === undefined) {
        if (this.#threads < this.#size) void this.#grow();
        return;
      }
      if (!thread.alive) {
        this.#threads -= 1;
        continue;
      }
      next.take(thread);
    }
  }

  #next(): Waiting | undefined {
    for (const urgency of ORDER) {
      if (urgency === "job" && this.#background >= this.backgroundMax) return undefined;
      const found = this.#waiting.find((waiting) => waiting.work.urgency === urgency);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  async #grow(): Promise<void> {
    this.#threads += 1;
    const thread = new Thread(this.#data, this.#memoryMb, this.#log);
    try {
      await thread.ready();
      if (this.#stopped) return await thread.stop();
      this.#idle.push(thread);
    } catch {
      this.#threads -= 1;
      this.#log("error", "a thread for handlers could not be started; trying again");
      await new Promise((resolve) => setTimeout(resolve, RESTART_MS));
    }
    this.#assign();
  }

  async #execute(work: Work, thread: Thread): Promise<Result> {
    const background = work.urgency === "job" ? 1 : 0;
    this.#background += background;
    this.#running.add(thread);
    work.began?.();
    let result: Result;
    try {
      result = await this.#bounded(work, thread);
    } finally {
      this.#running.delete(thread);
      this.#background -= background;
    }
    // A thread whose handler was cancelled may hold remains of it.
    if ((result.how === "done" || result.how === "failed") && thread.alive) this.#idle.push(thread);
    else {
      this.#threads -= 1;
      void thread.stop();
    }
    this.#assign();
    return result;
  }

  async #bounded(work: Work, thread: Thread): Promise<Result> {
    let cut: Result | undefined;
    const end = (why: Result): void => {
      cut ??= why;
      // The handler ends by itself, or its thread is ended: either way the run below comes to its end.
      void thread.cancel();
    };
    const timer = setTimeout(end, bounded(work.timeoutMs), { how: "late" });
    const gone = (): void => end({ how: "stopped" });
    work.signal?.addEventListener("abort", gone, { once: true });
    try {
      const ended = await thread.run(work.run, work.listener);
      return cut ?? ended;
    } catch (error) {
      if (this.#cut) return { how: "stopped" };
      return cut ?? { how: "crashed", code: error instanceof ThreadEnded ? error.code : "THREAD_FAILED" };
    } finally {
      clearTimeout(timer);
      work.signal?.removeEventListener("abort", gone);
    }
  }
}

/** A time that timers take: at most 24 days. */
function bounded(ms: number): number {
  return Math.min(Math.max(0, ms), 2_000_000_000);
}
