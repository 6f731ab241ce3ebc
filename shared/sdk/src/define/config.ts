/** Checks that definitions have in common: known names, texts, whole numbers, handlers. Mistakes are `ValidationError`s. */
import type { ValidationError } from "../errors.js";
import { badField, isPlainObject } from "../json.js";

/** What is wrong with a definition of a kind. */
export class Config {
  readonly #kind: string;
  readonly #config: Readonly<Record<string, unknown>>;

  /** Takes an object with no other names than `known`. */
  constructor(kind: string, config: unknown, known: readonly string[]) {
    if (!isPlainObject(config)) throw badField(kind, "needs an object of options");
    this.#kind = kind;
    this.#config = config;
    for (const name of Object.keys(config)) {
      if (!known.includes(name)) throw badField(kind, `has an option that is not known; known are ${known.join(", ")}`);
    }
  }

  /** An option as it was given. */
  get(name: string): unknown {
    return this.#config[name];
  }

  /** The error that an option has this problem. */
  wrong(name: string, problem: string): ValidationError {
    return badField(`${this.#kind}.${name}`, problem);
  }

  /** A text that must be there and fit. */
  name(name: string, pattern: RegExp, problem: string): string {
    const value = this.get(name);
    if (typeof value !== "string" || !pattern.test(value)) throw this.wrong(name, problem);
    return value;
  }

  /** A text of 1 to `most` characters, not blank; the default when it is not given. */
  text(name: string, most: number, otherwise: string): string {
    const value = this.get(name) ?? otherwise;
    const fits = typeof value === "string" && value.length <= most && (value.trim() !== "" || value === otherwise);
    if (!fits) throw this.wrong(name, `must be a text of 1 to ${most} characters`);
    return value;
  }

  /** A whole number between two bounds; the default when it is not given. */
  integer(name: string, least: number, most: number, otherwise: number): number {
    const value = this.get(name) ?? otherwise;
    const fits = typeof value === "number" && Number.isSafeInteger(value) && value >= least && value <= most;
    if (!fits) throw this.wrong(name, `must be a whole number from ${least} to ${most}`);
    return value;
  }

  /** One of some words; the default when it is not given and there is one. */
  word<Word extends string>(name: string, words: readonly Word[], otherwise?: Word): Word {
    const value = this.get(name) ?? otherwise;
    if (!words.includes(value as Word)) throw this.wrong(name, `must be ${words.join(" or ")}`);
    return value as Word;
  }

  /** A list of different texts that fit; the default when it is not given and there is one. */
  list(name: string, bounds: { least: number; most: number }, fits: (value: string) => boolean, otherwise?: readonly string[]): readonly string[] {
    const value = this.get(name) ?? otherwise;
    const good = Array.isArray(value) && value.every((item) => typeof item === "string" && fits(item));
    if (!good || value.length < bounds.least || value.length > bounds.most || new Set(value).size !== value.length) {
      throw this.wrong(name, `must be a list of ${bounds.least} to ${bounds.most} different names`);
    }
    return [...(value as readonly string[])];
  }
}

/** A handler that can be called. */
export function handlerOf<Handler>(kind: string, handler: Handler): Handler {
  if (typeof handler !== "function") throw badField(`${kind}.handler`, "must be a function");
  return handler;
}

/** Key of a job or trigger: starts with a letter, then letters, digits and `_`. */
export const KEY = /^[A-Za-z][A-Za-z0-9_]{0,99}$/;
/** What is wrong with a key. */
export const KEY_PROBLEM = "must be a letter followed by at most 99 letters, digits and `_`";
/** Name of a script or route as it travels. */
export const CALL_NAME = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$/;
/** What is wrong with a name of a script or route. */
export const CALL_NAME_PROBLEM = "must be a letter or digit followed by at most 127 letters, digits, `.`, `_`, `/` and `-`";
