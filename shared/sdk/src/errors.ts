/**
 * The errors that project code meets and may throw. Each has a `code`; a class where code wants to catch one kind. Details hold
 * facts for programs and never a value that somebody sent.
 */
import type { ErrorBody } from "./generated/contract.js";

/** Facts about an error: field, limit, size, reason and the like. */
export type ErrorDetails = Readonly<Record<string, unknown>>;

/** Base of every error of the fleet. */
export class CogoverApiError extends Error {
  /** What kind of error it is. Code may compare it; the message is for people. */
  readonly code: string;
  /** Number that a service has answered with; undefined when none has. */
  readonly r: number | undefined;
  /** Facts for programs. */
  readonly details?: ErrorDetails;

  constructor(code: string, message: string, details?: unknown) {
    super(message);
    this.code = code;
    const facts = details as ErrorDetails | undefined;
    this.r = typeof facts?.["r"] === "number" ? facts["r"] : undefined;
    if (facts !== undefined) this.details = facts;
    this.name = new.target.name;
  }
}

/** There is no such thing, or none that this project may know of. */
export class NotFoundError extends CogoverApiError {
  /** The kind of thing, for example `process_instance`. */
  readonly resource: string;
  /** Which one was asked for. */
  readonly resourceId: string;

  constructor(resource: string, resourceId: string, message?: string, details?: unknown) {
    super("NOT_FOUND", message ?? `There is no ${resource} of that id.`, { resource, resourceId, ...(details as object) });
    this.resource = resource;
    this.resourceId = resourceId;
  }
}

/** Arguments that can never work. `details.field` and `details.problem` say what is wrong. */
export class ValidationError extends CogoverApiError {
  constructor(message: string, details?: unknown) {
    super("VALIDATION_ERROR", message, details);
  }
}

/** The policy, the kind of execution or the person's own rights say no; `details.reason` says which. */
export class PermissionDeniedError extends CogoverApiError {
  constructor(message: string, details?: unknown) {
    super("PERMISSION_DENIED", message, details);
  }
}

/** A count or a budget is used up. With `details.budget`, trying again in this execution gains nothing. */
export class RateLimitError extends CogoverApiError {
  constructor(message: string, details?: unknown) {
    super("RATE_LIMITED", message, details);
  }
}

/**
 * A passing fault. Project code may throw it, so that a job or an after-change trigger is tried again later. When the fleet throws
 * it, `details.writesMayHaveCompleted` says whether something may exist: if so, repeat the call with the same idempotency key.
 */
export class RetryableError extends CogoverApiError {
  constructor(message: string, details?: unknown) {
    super("RETRYABLE", message, details);
  }
}

/** Somebody else has changed the state in between. */
export class StateConflictError extends CogoverApiError {
  constructor(message: string, details?: unknown) {
    super("STATE_CONFLICT", message, details);
  }
}

/** A lock is held by somebody else. */
export class LockUnavailableError extends CogoverApiError {
  /** The lock. */
  readonly key: string;

  constructor(key: string, message?: string, details?: unknown) {
    super("LOCK_NOT_ACQUIRED", message ?? "The lock is held by another execution.", details);
    this.key = key;
  }
}

/** A lock was held and is held no longer. */
export class LockLostError extends CogoverApiError {
  constructor(message: string, details?: unknown) {
    super("LOCK_LOST", message, details);
  }
}

/** An error as it travels; codes that are newer than this SDK are kept as they are. */
export type ErrorReply = Omit<ErrorBody, "code"> & { readonly code: string };

/** The error that project code gets for an error body. */
export function errorFrom(body: ErrorReply): CogoverApiError {
  const { code, details } = body;
  const message = sentence(body);
  switch (code) {
    case "VALIDATION_ERROR":
      return new ValidationError(message, details);
    case "PERMISSION_DENIED":
      return new PermissionDeniedError(message, details);
    case "NOT_FOUND":
      return new NotFoundError(text(details, "resource"), text(details, "resourceId"), message, details);
    case "RATE_LIMITED":
      return new RateLimitError(message, details);
    case "RETRYABLE":
      return new RetryableError(message, details);
    case "STATE_CONFLICT":
      return new StateConflictError(message, details);
    case "LOCK_NOT_ACQUIRED":
      return new LockUnavailableError(text(details, "key"), message, details);
    case "LOCK_LOST":
      return new LockLostError(message, details);
    default:
      return new CogoverApiError(code, message, details);
  }
}

/** The sentence of the code, and what is wrong with which field where that is known. */
function sentence({ message, details }: ErrorReply): string {
  const field = text(details, "field");
  const problem = text(details, "problem");
  return problem === "" ? message : `${message} ${field === "" ? "The request" : `\`${field}\``} ${problem}.`;
}

function text(details: ErrorDetails | undefined, name: string): string {
  const value = details?.[name];
  return typeof value === "string" ? value : "";
}

const HTTP_STATUS: Readonly<Record<string, number>> = {
  VALIDATION_ERROR: 400,
  FETCH_BLOCKED: 400,
  PERMISSION_DENIED: 403,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  STATE_CONFLICT: 409,
  LOCK_NOT_ACQUIRED: 409,
  LOCK_LOST: 409,
  IDEMPOTENCY_CONFLICT: 409,
  FETCH_REQUEST_TOO_LARGE: 413,
  RATE_LIMITED: 429,
  FETCH_RESPONSE_TOO_LARGE: 502,
  FETCH_FAILED: 502,
  STATE_SERVICE_UNAVAILABLE: 503,
  LOCK_SERVICE_UNAVAILABLE: 503,
  ORGANIZATION_UNAVAILABLE: 503,
  FETCH_DISABLED: 503,
  PROCESSES_DISABLED: 503,
  AGENTS_DISABLED: 503,
  DELIVERY_UNAVAILABLE: 503,
  FETCH_TIMEOUT: 504,
};

/** The HTTP status of an error that escapes from a route: 422 for whatever has no status of its own. */
export function httpStatusOf(error: unknown): number {
  return error instanceof CogoverApiError ? (HTTP_STATUS[error.code] ?? 422) : 422;
}
