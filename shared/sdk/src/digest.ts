/** `crypto` for project code: digests, random values, and comparisons that tell nothing by their time. */
import { createHash, createHmac, randomBytes, randomUUID, timingSafeEqual } from "node:crypto";
import { badField } from "./json.js";

/** Digests and random values. */
export interface CryptoApi {
  /** SHA-256 of a text in UTF-8, or of bytes. */
  sha256(data: string | Uint8Array, encoding?: "hex" | "base64"): Promise<string>;
  /** HMAC-SHA256. */
  hmacSha256(key: string | Uint8Array, data: string | Uint8Array, encoding?: "hex" | "base64"): Promise<string>;
  /** 1 to 1,024 random bytes. */
  randomBytes(length: number): Promise<Uint8Array>;
  /** A random UUID. */
  randomUUID(): Promise<string>;
  /** Whether two texts or byte strings are the same, in a time that depends on their length only. */
  timingSafeEqual(a: string | Uint8Array, b: string | Uint8Array): boolean;
}

const DATA_BYTES_MAX = 262_144;
const RANDOM_BYTES_MAX = 1_024;

function bytesOf(field: string, data: unknown): Uint8Array {
  const bytes = typeof data === "string" ? Buffer.from(data) : data;
  if (!(bytes instanceof Uint8Array)) throw badField(field, "must be a text or bytes");
  if (bytes.byteLength > DATA_BYTES_MAX) throw badField(field, `must have at most ${DATA_BYTES_MAX} bytes`);
  return bytes;
}

function encodingOf(encoding: unknown): "hex" | "base64" {
  if (encoding !== "hex" && encoding !== "base64") throw badField("encoding", "must be hex or base64");
  return encoding;
}

/** Digests, random values, comparisons. */
export const crypto: CryptoApi = Object.freeze({
  async sha256(data: string | Uint8Array, encoding: "hex" | "base64" = "hex") {
    return createHash("sha256").update(bytesOf("data", data)).digest(encodingOf(encoding));
  },
  async hmacSha256(key: string | Uint8Array, data: string | Uint8Array, encoding: "hex" | "base64" = "hex") {
    const secret = bytesOf("key", key);
    if (secret.byteLength === 0) throw badField("key", "must not be empty");
    return createHmac("sha256", secret).update(bytesOf("data", data)).digest(encodingOf(encoding));
  },
  async randomBytes(length: number) {
    const fits = Number.isInteger(length) && length >= 1 && length <= RANDOM_BYTES_MAX;
    if (!fits) throw badField("length", `must be a whole number from 1 to ${RANDOM_BYTES_MAX}`);
    return new Uint8Array(randomBytes(length));
  },
  randomUUID: async () => randomUUID(),
  timingSafeEqual(a: string | Uint8Array, b: string | Uint8Array) {
    const [left, right] = [bytesOf("a", a), bytesOf("b", b)];
    return left.byteLength === right.byteLength && timingSafeEqual(left, right);
  },
});
