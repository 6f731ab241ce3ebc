/**
 * Finding out what a project declares, by loading its files one after another on a thread. A file that ends or blocks the thread while
 * it is loaded is left out from then on and reported, like one that cannot be loaded.
 */

import type { Log } from "../logs.js";
import type { Problem } from "../project/snapshot.js";
import type { FromThread, Index, Manifest, ThreadData } from "./protocol.js";
import { Thread } from "./thread.js";

/** Time for one file to be loaded. */
const FILE_MS = 10_000;

/** Files that may kill a thread before the project is refused. */
const KILLERS_MAX = 20;

/** What a project declares, and a thread that has loaded it. */
export interface Survey {
  readonly manifest: Manifest;
  readonly index: Index;
  readonly problems: readonly Problem[];
  readonly data: ThreadData;
  readonly thread: Thread;
}

/** Loads a project. Throws when it cannot be loaded at all. */
export async function survey(data: ThreadData, memoryMb: number, log: Log): Promise<Survey> {
  const killers: Problem[] = [];
  for (;;) {
    const excluded = killers.map((killer) => killer.file);
    const thread = new Thread({ ...data, excluded }, memoryMb, log);
    const found = await once(thread);
    if ("manifest" in found) {
      const problems = [...found.problems, ...killers];
      return { ...found, problems, thread, data: { ...data, excluded, index: found.index } };
    }
    await thread.stop();
    if (found.file === undefined || killers.length >= KILLERS_MAX) throw new Error("the project cannot be loaded");
    killers.push({ file: found.file, problem: found.problem });
  }
}

type Found = Omit<Extract<FromThread, { type: "surveyed" }>, "type">;

/** What one thread finds, or which file was its last. */
function once(thread: Thread): Promise<Found | { file: string | undefined; problem: string }> {
  return new Promise((resolve) => {
    let file: string | undefined;
    let timer: NodeJS.Timeout | undefined;
    const end = (found: Found | { file: string | undefined; problem: string }): void => {
      clearTimeout(timer);
      thread.onSurvey = undefined;
      resolve(found);
    };
    thread.onSurvey = (message) => {
      clearTimeout(timer);
      if (message.type === "surveyed") {
        end({ manifest: message.manifest, index: message.index, problems: message.problems });
        return;
      }
      file = message.file;
      timer = setTimeout(() => end({ file, problem: `was not loaded within ${FILE_MS / 1_000} s` }), FILE_MS);
    };
    thread.ready().catch(() => end({ file, problem: "ended its thread while it was loaded" }));
  });
}
