/**
 * What the host and its threads say to each other. Only data that can be cloned; payloads and results travel as JSON texts, so that
 * their size is known before they are read.
 */

import type { ProjectManifest } from "../../runtime/index.js";
import type { ConversationValues } from "../../tools/types.js";
import type { Level } from "../logs.js";
import type { HookData } from "../project/hooks.js";
import type { Problem } from "../project/snapshot.js";

/** Everything that a version declares, apart from its name. */
export type Manifest = Omit<ProjectManifest, "version">;

/** What kind of code a handler is. */
export type UnitKind = "job" | "script" | "route" | "trigger" | "action" | "tool";

/** Where a unit is declared: its kind and name, joined by `:`, to the path of its file in the project. */
export type Index = ReadonlyMap<string, string>;

/** What a thread is started with. */
export interface ThreadData {
  readonly root: string;
  readonly hooks: HookData;
  /** Files that may declare something. */
  readonly entries: readonly string[];
  /** Files and descriptions of tools. */
  readonly tools: readonly string[];
  /** Files that have killed a thread while they were loaded. */
  readonly excluded: readonly string[];
  /** What is declared where; absent for the thread that finds out. */
  readonly index?: Index;
}

/** What an execution is, apart from its input. Becomes `job`, `action` and the like of the handler. */
export interface ExecutionFacts {
  /** Names the execution; ids that project code derives keys from. */
  readonly id: string;
  readonly workspace: string;
  readonly project: string;
  readonly version: string;
  readonly user: string | null;
  readonly readOnly: boolean;
  /** Whether it runs on a developer's machine, where outcome jobs are refused. */
  readonly local: boolean;
  /** Unix milliseconds by which it has to be done. */
  readonly deadline: number;
  /** The job run, for jobs. */
  readonly job?: {
    readonly id: string;
    readonly key: string;
    readonly attempt: number;
    readonly maxAttempts: number;
    readonly source: string;
    readonly runAt: number | null;
    readonly enqueuedAt: number;
  };
  /** The run of the action, for actions. */
  readonly runId?: string;
  /** The call, for tools. */
  readonly toolCallId?: string;
  /** What the agent of a tool is working on: `sessionId`, `model`, `webSearch` and `messages`. */
  readonly values?: ConversationValues;
}

/** To a thread. */
export type ToThread =
  | { readonly type: "run"; readonly id: number; readonly kind: UnitKind; readonly name: string; readonly input: string; readonly facts: ExecutionFacts }
  | { readonly type: "reply"; readonly call: number; readonly reply: string }
  | { readonly type: "cancel"; readonly id: number };

/** How a handler ended. */
export type Ended =
  | {
      readonly how: "done";
      readonly result: string;
      /** Of a tool whose error has become a result. */
      readonly trace?: string;
      readonly text?: string;
    }
  | {
      readonly how: "failed";
      /** The word of the error: one that callers are told as it is, or `SCRIPT_ERROR`. */
      readonly code: string;
      /** With `SCRIPT_ERROR`: the error's own code. */
      readonly scriptErrorCode?: string;
      readonly writesMayHaveCompleted?: true;
      /** Whether the handler has said that another attempt can help. */
      readonly retryable: boolean;
      /** What is wrong with input or output; never values. */
      readonly problems?: readonly { readonly path: string; readonly message: string }[];
      /** For the host's log only: class and places of the error. */
      readonly trace?: string;
      /** For the log of a developer's own host only. */
      readonly text?: string;
    };

/** From a thread. */
export type FromThread =
  | { readonly type: "loading"; readonly file: string }
  | { readonly type: "surveyed"; readonly manifest: Manifest; readonly index: Index; readonly problems: readonly Problem[] }
  | { readonly type: "ready" }
  | { readonly type: "call"; readonly id: number; readonly call: number; readonly operation: string; readonly payload: string }
  | { readonly type: "chunk"; readonly id: number; readonly chunk: string }
  | { readonly type: "log"; readonly id: number; readonly level: Level; readonly message: string; readonly fields: string }
  | { readonly type: "late"; readonly trace: string }
  /** `remains`: the handler may still be running, and its thread is of no more use. */
  | { readonly type: "ended"; readonly id: number; readonly ended: Ended; readonly remains: boolean };
