/** One execution of project code: who it is for, what it may do, and its calls, one after another. */
import type { ScriptLogger } from "../context.js";
import { CogoverApiError, errorFrom, PermissionDeniedError, RetryableError } from "../errors.js";
import type { Source } from "../generated/contract.js";

/** Carries a call to the fleet: resolves with the data of the reply, rejects with a `CogoverApiError` or with an error body. */
export type Call = (operation: string, payload: unknown) => Promise<unknown>;

/** How loud a line of the log is. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** What is known about an execution. */
export interface ExecutionInfo {
  /** What kind of execution it is. */
  readonly source: Source;
  /** Whether it may only read. */
  readonly readOnly?: boolean;
  /** The person on whose behalf it runs, or null. */
  readonly user?: string | null;
  /** The workspace. */
  readonly workspace?: string;
  /** Aborted when its time is over or its host stops. */
  readonly signal?: AbortSignal;
  /** Takes lines of the log; without it they go nowhere. */
  readonly log?: (level: LogLevel, message: string, details?: unknown) => void;
}

/** The gate that all calls of one execution pass. */
export class Execution {
  readonly info: ExecutionInfo;
  readonly #call: Call;
  #last: Promise<unknown> = Promise.resolve();
  #wrote = false;

  constructor(call: Call, info: ExecutionInfo) {
    this.#call = call;
    this.info = info;
  }

  /** Whether something was sent that may have changed something. */
  get wrote(): boolean {
    return this.#wrote;
  }

  /** Sends a call that reads. */
  read(operation: string, payload: unknown): Promise<unknown> {
    return this.#send(operation, payload);
  }

  /** Sends a call that may change something. */
  write(operation: string, payload: unknown): Promise<unknown> {
    return this.#send(operation, payload, () => (this.#wrote = true));
  }

  /** Refuses a call where runs and jobs are out of reach altogether: before a change is stored. */
  mayCall(): void {
    if (this.info.source === "trigger-before") throw denied("TRIGGER_READ_ONLY");
  }

  /** Refuses a call that may change something where nothing may be changed. */
  mayWrite(): void {
    this.mayCall();
    if (this.info.readOnly !== true) return;
    throw denied(this.info.source === "development" ? "DEVELOPMENT_SESSION_READ_ONLY" : "READ_ONLY");
  }

  /** Calls started together run one after another; a failed one does not stop the next. */
  #send(operation: string, payload: unknown, sending: () => void = () => {}): Promise<unknown> {
    const sent = this.#last.then(() => {
      if (this.info.signal?.aborted === true) throw new RetryableError("The execution was ended.", { writesMayHaveCompleted: false });
      sending();
      return this.#call(operation, payload);
    });
    this.#last = sent.catch(() => undefined);
    return sent.catch((error: unknown) => {
      throw mapped(error);
    });
  }
}

function denied(reason: string): PermissionDeniedError {
  const may = reason === "TRIGGER_READ_ONLY" ? "Code that runs before a change" : "This execution";
  return new PermissionDeniedError(`${may} may only read.`, { reason });
}

/** The class of an error body; anything else as it is. */
function mapped(error: unknown): unknown {
  if (error instanceof Error || error === null || typeof error !== "object") return error;
  const { code, message, details } = error as Partial<Record<string, unknown>>;
  if (typeof code !== "string") return error;
  const facts = details !== null && typeof details === "object" ? { details: details as Record<string, unknown> } : {};
  return errorFrom({ code, message: typeof message === "string" ? message : code, ...facts });
}

/** The log of an execution. A line never fails the code that writes it. */
export function loggerOf(info: ExecutionInfo): ScriptLogger {
  const write = (level: LogLevel) => (message: string, details?: unknown): void => {
    try {
      info.log?.(level, String(message), details);
    } catch {
      // The sink has failed: the work goes on without the line.
    }
  };
  return Object.freeze({ debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") });
}

/** An operation that is not there for this kind of execution. */
export function notSupported(field: string, message: string): CogoverApiError {
  return new CogoverApiError("NOT_SUPPORTED", message, { field });
}
