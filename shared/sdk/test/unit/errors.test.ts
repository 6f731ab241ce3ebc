import assert from "node:assert/strict";
import { test } from "node:test";
import {
  CogoverApiError, httpStatusOf, LockUnavailableError, NotFoundError, PermissionDeniedError, RateLimitError, RetryableError, StateConflictError,
  ValidationError,
} from "../../src/index.js";
import { errorFrom, failureOf } from "../../src/runtime/index.js";

/** CG-026, CG-032, CG-126, CG-142 */
test("each code of an answer becomes its class, with its details", () => {
  const table: [string, new (...args: never[]) => CogoverApiError][] = [
    ["VALIDATION_ERROR", ValidationError], ["PERMISSION_DENIED", PermissionDeniedError], ["NOT_FOUND", NotFoundError],
    ["RATE_LIMITED", RateLimitError], ["RETRYABLE", RetryableError], ["STATE_CONFLICT", StateConflictError],
    ["LOCK_NOT_ACQUIRED", LockUnavailableError], ["INSUFFICIENT_CREDITS", CogoverApiError], ["A_NEWER_CODE", CogoverApiError],
  ];
  for (const [code, kind] of table) {
    const error = errorFrom({ code, message: "It is so.", details: { reason: "R" } });
    assert.equal(error.constructor, kind, code);
    assert.equal(error.code, code);
    assert.equal(error.message, "It is so.");
    assert.equal(error.details?.["reason"], "R");
    assert.ok(error instanceof CogoverApiError && error instanceof Error);
  }
  const missing = errorFrom({ code: "NOT_FOUND", message: "None.", details: { resource: "process_instance", resourceId: "PI1" } });
  assert.ok(missing instanceof NotFoundError);
  assert.deepEqual([missing.resource, missing.resourceId], ["process_instance", "PI1"]);
});

test("the message of a refused argument says which one and why", () => {
  const details = { field: "deliverTo.title", problem: "must be one line, not blank" };
  assert.equal(errorFrom({ code: "VALIDATION_ERROR", message: "The request is not valid.", details }).message,
    "The request is not valid. `deliverTo.title` must be one line, not blank.");
});

test("project code can throw every error, with the number of a service", () => {
  const error = new CogoverApiError("ERP_DOWN", "The ERP is down.", { r: 37 });
  assert.deepEqual([error.code, error.r, error.name], ["ERP_DOWN", 37, "CogoverApiError"]);
  assert.equal(new RetryableError("later").r, undefined);
  assert.equal(new NotFoundError("lead", "L1").details?.["resourceId"], "L1");
});

test("errors that escape from a route have the status of the contract", () => {
  const statuses: [string, number][] = [
    ["VALIDATION_ERROR", 400], ["PERMISSION_DENIED", 403], ["NOT_FOUND", 404], ["METHOD_NOT_ALLOWED", 405], ["STATE_CONFLICT", 409],
    ["LOCK_NOT_ACQUIRED", 409], ["LOCK_LOST", 409], ["IDEMPOTENCY_CONFLICT", 409], ["RATE_LIMITED", 429], ["DELIVERY_UNAVAILABLE", 503],
    ["PROCESSES_DISABLED", 503], ["AGENTS_DISABLED", 503], ["INSUFFICIENT_CREDITS", 422], ["RECIPIENT_NOT_FOUND", 422],
    ["MAX_HOP_EXCEEDED", 422], ["AGENT_DEPTH_EXCEEDED", 422], ["NOT_SUPPORTED", 422], ["RETRYABLE", 422], ["COGOVER_API_ERROR", 422],
  ];
  for (const [code, status] of statuses) assert.equal(httpStatusOf(errorFrom({ code, message: "" })), status, code);
  assert.equal(httpStatusOf(new Error("x")), 422);
});

/** CG-110 */
test("only passing faults are retryable, and no message leaves the handler", () => {
  assert.deepEqual(failureOf(new RetryableError("s3cret"), false), { code: "RETRYABLE", retryable: true });
  assert.deepEqual(failureOf(new Error("s3cret"), true), { code: "SCRIPT_ERROR", retryable: false, writesMayHaveCompleted: true });
  assert.deepEqual(failureOf(new CogoverApiError("ERP_DOWN", "s3cret"), false), { code: "SCRIPT_ERROR", scriptErrorCode: "ERP_DOWN", retryable: false });
  assert.deepEqual(failureOf(new RateLimitError("s3cret"), false), { code: "RATE_LIMITED", retryable: false });
  assert.deepEqual(failureOf(Object.assign(new Error("x"), { code: "ECONNREFUSED" }), false), { code: "SCRIPT_ERROR", retryable: false });
  assert.deepEqual(failureOf("s3cret", false), { code: "SCRIPT_ERROR", retryable: false });
  assert.deepEqual(failureOf(new CogoverApiError("s3cret value", "x"), false), { code: "SCRIPT_ERROR", retryable: false });
  // A copy of this SDK that a project has installed itself.
  const copy = Object.assign(new Error("x"), { name: "RetryableError", code: "RETRYABLE" });
  assert.equal(failureOf(copy, false).retryable, true);
});
