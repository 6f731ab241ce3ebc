/** What the classes of errors say about themselves. */
import {
  CogoverApiError, type ErrorDetails, LockLostError, LockUnavailableError, NotFoundError, PermissionDeniedError, RateLimitError,
  RetryableError, StateConflictError, ValidationError,
} from "../../src/index.js";
import { type Equal, holds } from "./equal.js";

export const all: readonly CogoverApiError[] = [
  new CogoverApiError("IDEMPOTENCY_CONFLICT", "m", { upstreamCode: "x" }), new NotFoundError("process_instance", "PI1"),
  new ValidationError("m"), new PermissionDeniedError("m", { reason: "PROCESSES_NOT_ALLOWED" }), new RateLimitError("m"),
  new RetryableError("m", { writesMayHaveCompleted: true }), new StateConflictError("m"), new LockUnavailableError("lock"), new LockLostError("m"),
];

export function caught(error: unknown): string | undefined {
  if (!(error instanceof CogoverApiError)) return undefined;
  holds<Equal<typeof error.code, string>>();
  holds<Equal<typeof error.r, number | undefined>>();
  holds<Equal<typeof error.details, ErrorDetails | undefined>>();
  const started: unknown = error.details?.["writesMayHaveCompleted"];
  // @ts-expect-error facts are of any kind until they were looked at
  const certain: boolean = error.details?.["writesMayHaveCompleted"];
  // @ts-expect-error an error is not changed
  error.code = "OTHER";
  if (error instanceof NotFoundError) return `${error.resource} ${error.resourceId}`;
  if (error instanceof LockUnavailableError) return error.key;
  void [started, certain];
  return error.message;
}

// @ts-expect-error an error has a message
new RetryableError();
// @ts-expect-error a code is a text
new CogoverApiError(422, "m");
// @ts-expect-error what is not found has an id
new NotFoundError("process_instance");
