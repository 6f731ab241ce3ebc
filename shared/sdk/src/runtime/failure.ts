/** How an execution has failed, as those are told who wait for it. Holds no message and no stack: they may hold what somebody sent. */
import { CogoverApiError, LockLostError, LockUnavailableError, RetryableError } from "../errors.js";
import type { SchemaProblem } from "../schema/types.js";

/** How an execution has failed. */
export interface Failure {
  /** A fixed word: capital letters, digits and `_`, at most 64. */
  readonly code: string;
  /** With `SCRIPT_ERROR`: the code of the error that the handler has thrown, if it has one. */
  readonly scriptErrorCode?: string;
  /** What does not fit, at most 20. */
  readonly problems?: readonly SchemaProblem[];
  /** Whether another attempt can help. */
  readonly retryable: boolean;
  /** Whether a call was sent that may have changed something. Present only if so. */
  readonly writesMayHaveCompleted?: true;
}

/** Codes that callers of scripts, routes, triggers and actions are told as they are. */
const PASSED = new Set(["PERMISSION_DENIED", "RATE_LIMITED", "MAX_HOP_EXCEEDED", "RETRYABLE", "NOT_FOUND", "VALIDATION_ERROR", "STATE_CONFLICT"]);
const CODE = /^[A-Z][A-Z0-9_]{0,63}$/;
const CLASSES = new Set([
  "CogoverApiError", "NotFoundError", "ValidationError", "PermissionDeniedError", "RateLimitError", "RetryableError", "StateConflictError",
  LockUnavailableError.name, LockLostError.name,
]);

/** What became of a handler that has thrown. */
export function failureOf(thrown: unknown, wrote: boolean): Failure {
  const code = codeOf(thrown);
  const rest = wrote ? { writesMayHaveCompleted: true as const } : {};
  if (code === undefined) return { code: "SCRIPT_ERROR", retryable: false, ...rest };
  const retryable = thrown instanceof RetryableError || code === "RETRYABLE";
  if (PASSED.has(code)) return { code, retryable, ...rest };
  return { code: "SCRIPT_ERROR", scriptErrorCode: code, retryable, ...rest };
}

/** The code of an error of this SDK; a copy of it in the project makes such errors too. */
function codeOf(thrown: unknown): string | undefined {
  const ours = thrown instanceof CogoverApiError || (thrown instanceof Error && CLASSES.has(thrown.name));
  const code = ours ? (thrown as { code?: unknown }).code : undefined;
  return typeof code === "string" && CODE.test(code) ? code : undefined;
}
