/** Checks cron expressions of five fields: numbers, `*`, ranges, lists and steps. When they match is decided by the fleet. */

/** Longest expression, in characters, with single spaces. */
export const CRON_CHARS_MAX = 128;
/** Longest name of a time zone, in characters. */
export const TIME_ZONE_CHARS_MAX = 64;

/** Least and greatest number of each field; 0 and 7 are both Sunday. */
const FIELDS: readonly (readonly [string, number, number])[] = [
  ["minute", 0, 59],
  ["hour", 0, 23],
  ["day of the month", 1, 31],
  ["month", 1, 12],
  ["day of the week", 0, 7],
];

/** The expression with single spaces, or what is wrong with it. */
export function normalCron(text: unknown): { readonly cron: string } | { readonly problem: string } {
  if (typeof text !== "string") return { problem: "must be a text" };
  const parts = text.trim().split(/\s+/);
  const cron = parts.join(" ");
  if (cron.length > CRON_CHARS_MAX) return { problem: `must have at most ${CRON_CHARS_MAX} characters` };
  if (parts.length !== FIELDS.length) return { problem: "must have five fields" };
  for (const [place, [name, least, most]] of FIELDS.entries()) {
    const items = (parts[place] ?? "").split(",");
    if (!items.every((item) => isItem(item, least, most))) return { problem: `has a ${name} that is not from ${least} to ${most}` };
  }
  return { cron };
}

function isItem(item: string, least: number, most: number): boolean {
  const [, from, to, step] = /^(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:\/(\d{1,2}))?$/.exec(item) ?? [];
  const starts = item.startsWith("*") || from !== undefined;
  if (!starts) return false;
  const inside = (text: string | undefined): boolean => text === undefined || (Number(text) >= least && Number(text) <= most);
  if (!inside(from) || !inside(to) || (to !== undefined && Number(to) < Number(from))) return false;
  // A step needs something to step through.
  return step === undefined || (Number(step) >= 1 && Number(step) <= most && (from === undefined || to !== undefined));
}

/** Whether this is the name of a time zone. */
export function isTimeZone(name: unknown): name is string {
  if (typeof name !== "string" || name.length > TIME_ZONE_CHARS_MAX || !/^[A-Za-z][A-Za-z0-9_+/-]*$/.test(name)) return false;
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}
