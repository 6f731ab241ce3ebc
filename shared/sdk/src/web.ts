/**
 * `fetch` for project code: HTTPS to public names, bounded in time and size, redirects are answers. A host does not keep project code
 * from other ways to the network; this one exists so that a mistake stays small.
 */
import { isIP } from "node:net";
import { CogoverApiError } from "./errors.js";
import { badField, isPlainObject } from "./json.js";

/** What is sent. */
export interface CogoverFetchInit {
  readonly method?: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly headers?: Readonly<Record<string, string>>;
  /** At most 1 MiB. */
  readonly body?: string;
  /** 1 to 60,000 milliseconds; 10,000 unless it is given. */
  readonly timeoutMs?: number;
}

/** Headers of an answer, whatever the case of their letters. */
export interface CogoverFetchHeaders {
  get(name: string): string | null;
  has(name: string): boolean;
  entries(): IterableIterator<[string, string]>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
}

/** An answer, read to its end: at most 5 MiB. */
export interface CogoverFetchResponse {
  readonly ok: boolean;
  readonly status: number;
  readonly statusText: string;
  readonly url: string;
  readonly redirected: false;
  readonly headers: CogoverFetchHeaders;
  readonly bodyUsed: boolean;
  text(): Promise<string>;
  json<T = unknown>(): Promise<T>;
}

const METHODS: readonly unknown[] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
const OPTIONS = ["method", "headers", "body", "timeoutMs"];
const BODY_BYTES_MAX = 1_048_576;
const ANSWER_BYTES_MAX = 5_242_880;
const TIMEOUT_MS = { default: 10_000, max: 60_000 };

/** Makes an HTTPS request. What may have been done by the other side when it fails is not known here. */
export async function fetch(input: string, init: CogoverFetchInit = {}): Promise<CogoverFetchResponse> {
  const url = addressOf(input);
  const { timeoutMs, ...request } = requestOf(init);
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const answer = await globalThis.fetch(url, { ...request, redirect: "manual", signal });
    return new Answer(url.href, answer, await bodyOf(answer));
  } catch (error) {
    if (error instanceof CogoverApiError) throw error;
    if (signal.aborted) throw new CogoverApiError("FETCH_TIMEOUT", "The other side has not answered in time.", { timeoutMs });
    throw new CogoverApiError("FETCH_FAILED", "The other side could not be reached.");
  }
}

function addressOf(input: unknown): URL {
  const url = typeof input === "string" && URL.canParse(input) ? new URL(input) : undefined;
  const name = url?.hostname.replace(/^\[|\]$/g, "") ?? "";
  const fits = url?.protocol === "https:" && url.port === "" && url.username === "" && url.password === "" && url.hash === ""
    && isIP(name) === 0 && name.includes(".");
  if (url === undefined || !fits) throw new CogoverApiError("FETCH_BLOCKED", "Only https addresses of public names, on port 443, can be called.");
  return url;
}

function requestOf(init: unknown): { method: string; headers: Record<string, string>; body?: string; timeoutMs: number } {
  if (!isPlainObject(init)) throw badField("init", "must be an object");
  if (Object.keys(init).some((name) => !OPTIONS.includes(name))) throw badField("init", `must hold nothing but ${OPTIONS.join(", ")}`);
  const { method = "GET", headers = {}, body, timeoutMs = TIMEOUT_MS.default } = init;
  if (!METHODS.includes(method)) throw badField("method", `must be ${METHODS.join(" or ")}`);
  if (!isPlainObject(headers) || !Object.values(headers).every((value) => typeof value === "string")) throw badField("headers", "must be an object of texts");
  if (body !== undefined && typeof body !== "string") throw badField("body", "must be a text");
  const large = body !== undefined && Buffer.byteLength(body) > BODY_BYTES_MAX;
  if (large) throw new CogoverApiError("FETCH_REQUEST_TOO_LARGE", "The request is too large.", { limit: BODY_BYTES_MAX });
  const fits = typeof timeoutMs === "number" && Number.isInteger(timeoutMs) && timeoutMs > 0;
  if (!fits) throw badField("timeoutMs", "must be a whole number from 1");
  const sent = { method: method as string, headers: headers as Record<string, string>, timeoutMs: Math.min(timeoutMs, TIMEOUT_MS.max) };
  return body === undefined ? sent : { ...sent, body };
}

async function bodyOf(answer: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of answer.body ?? []) {
    size += chunk.byteLength;
    if (size > ANSWER_BYTES_MAX) throw new CogoverApiError("FETCH_RESPONSE_TOO_LARGE", "The answer is too large.", { limit: ANSWER_BYTES_MAX });
    chunks.push(chunk);
  }
  return new TextDecoder().decode(Buffer.concat(chunks));
}

class Answer implements CogoverFetchResponse {
  readonly ok: boolean;
  readonly status: number;
  readonly statusText: string;
  readonly url: string;
  readonly redirected = false;
  readonly headers: CogoverFetchHeaders;
  readonly #body: string;
  #used = false;

  constructor(url: string, answer: Response, body: string) {
    this.ok = answer.ok;
    this.status = answer.status;
    this.statusText = answer.statusText;
    this.url = url;
    this.headers = answer.headers as unknown as CogoverFetchHeaders;
    this.#body = body;
  }

  get bodyUsed(): boolean {
    return this.#used;
  }

  async text(): Promise<string> {
    if (this.#used) throw new CogoverApiError("FETCH_FAILED", "The body of an answer is read once.");
    this.#used = true;
    return this.#body;
  }

  async json<T>(): Promise<T> {
    const text = await this.text();
    try {
      return JSON.parse(text) as T;
    } catch {
      throw new CogoverApiError("FETCH_FAILED", "The answer is no JSON.");
    }
  }
}
