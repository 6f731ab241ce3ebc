/**
 * What is told about an error that a handler has thrown: a code, and whether another attempt can help. Its message stays with the
 * project's own people: it may hold data.
 */

import { CogoverApiError } from "../../errors.js";
import type { Ended } from "./protocol.js";

/** Longest text of an error that is handed on, in characters. */
const TEXT_MAX = 2_000;

/** Places of an error that are logged. */
const FRAMES_MAX = 8;

/** How a handler that threw this has ended. */
export function failure(error: unknown): Extract<Ended, { how: "failed" }> {
  const known = error instanceof CogoverApiError && /^[A-Z][A-Z0-9_]{0,63}$/.test(error.code);
  const code = known ? error.code : "SCRIPT_ERROR";
  return { how: "failed", code, retryable: code === "RETRYABLE", trace: trace(error), text: text(error) };
}

/** Class and places of an error, without its message. */
export function trace(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const frames = (error.stack ?? "")
    .split("\n")
    .filter((line) => /^\s+at /.test(line) && !line.includes("node:internal"))
    .slice(0, FRAMES_MAX)
    .map((line) => line.trim());
  const name = /^[A-Za-z][A-Za-z0-9]{0,63}$/.test(error.name) ? error.name : "Error";
  return [name, ...frames].join(" | ");
}

/** The message of an error. */
export function text(error: unknown): string {
  const message = error instanceof Error ? error.message : typeof error === "string" ? error : "";
  return message.slice(0, TEXT_MAX);
}
