/** Collects what does not fit: at most 20 problems are kept and all are counted. */
import { PROBLEMS_MAX } from "./names.js";
import type { SchemaProblem, SchemaResult } from "./types.js";

/** Problems of one value. */
export class Problems {
  readonly #kept: SchemaProblem[] = [];
  #count = 0;

  /** Notes a problem. The message must not hold a value. */
  add(path: string, message: string): void {
    this.#count += 1;
    if (this.#kept.length < PROBLEMS_MAX) this.#kept.push({ path, message });
  }

  /** How many there are. */
  get count(): number {
    return this.#count;
  }

  /** The value when there is no problem, otherwise the problems. */
  result<T>(value: T): SchemaResult<T> {
    if (this.#count === 0) return { ok: true, value };
    return { ok: false, problems: this.#kept, errorCount: this.#count };
  }
}

/** One more step of a JSON Pointer. */
export function pointer(path: string, step: string | number): string {
  return `${path}/${String(step).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}
