/**
 * Reading the bodies of messages to a host. What cannot be read is parked by whoever asks; nothing of it is repeated.
 */

/** Largest body that is read, in bytes: a job with a full outcome is larger than a request. */
const BYTES_MAX = 1_048_576;

/** A body as an object; none when it is not one. */
export function object(body: Buffer): Fields | undefined {
  if (body.length > BYTES_MAX) return undefined;
  try {
    const value: unknown = JSON.parse(body.toString("utf8"));
    return isObject(value) ? new Fields(value) : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a value is an object that is no list. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A field of a message is missing or of another type. */
export class BadField extends Error {}

/** Fields of a message. */
export class Fields {
  constructor(readonly raw: Readonly<Record<string, unknown>>) {}

  /** A text that is not empty. */
  text(name: string): string {
    const value = this.raw[name];
    if (typeof value !== "string" || value === "") throw new BadField(name);
    return value;
  }

  /** A text; null where there is none. */
  textOrNull(name: string): string | null {
    return this.raw[name] === undefined || this.raw[name] === null ? null : this.text(name);
  }

  /** A whole number that is not negative. */
  count(name: string): number {
    const value = this.raw[name];
    if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) throw new BadField(name);
    return value;
  }

  /** The same; `otherwise` where there is none. */
  countOr(name: string, otherwise: number): number {
    return this.raw[name] === undefined || this.raw[name] === null ? otherwise : this.count(name);
  }

  /** JSON text of a field; `null` where there is none. */
  json(name: string): string {
    return JSON.stringify(this.raw[name] ?? null);
  }
}
