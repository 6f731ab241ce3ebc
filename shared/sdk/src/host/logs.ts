/**
 * Log lines of a host: one JSON object each, on standard output, in the form of the workers.
 *
 * Nothing of a payload, a result, an argument or a secret goes into a line: callers give fixed texts, names and ids.
 */

/** How much a line matters. */
export type Level = "debug" | "info" | "warn" | "error";

/** Facts of a line: names, ids, counts. */
export type Facts = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** Writes log lines. */
export interface Log {
  /** Writes a line, if its level is wanted. */
  (level: Level, message: string, facts?: Facts): void;
}

const RANK: Readonly<Record<Level, number>> = { debug: 0, info: 1, warn: 2, error: 3 };

/** Longest text of a fact, in characters: what project code writes has no bound of its own. */
const TEXT_MAX = 4_096;

/** Whether a text names a level. */
export function isLevel(text: string): text is Level {
  return Object.hasOwn(RANK, text);
}

/** Log lines from a level on, written by `write`. */
export function logTo(write: (line: string) => void, least: Level): Log {
  return (level, message, facts = {}) => {
    if (RANK[level] < RANK[least]) return;
    const line: Record<string, unknown> = {
      worker: "host",
      timestamp: new Date().toISOString(),
      level: level.toUpperCase(),
      message: cut(message),
    };
    for (const [name, fact] of Object.entries(facts)) {
      if (fact !== undefined) line[name] = typeof fact === "string" ? cut(fact) : fact;
    }
    write(`${JSON.stringify(line)}\n`);
  };
}

function cut(text: string): string {
  return text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}…` : text;
}
