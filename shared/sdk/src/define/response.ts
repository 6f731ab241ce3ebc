/** Requests and answers of scripts and routes. */
import { badField, isPlainObject } from "../json.js";

/** Methods that a route can have. */
export type RequestMethod = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** What was asked. */
export interface ScriptRequest<Body = unknown> {
  readonly method: RequestMethod;
  /** Path below the project. */
  readonly path: string;
  /** Parts of the path that the route names. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string | readonly string[]>>;
  /** Names in small letters. */
  readonly headers: Readonly<Record<string, string>>;
  /** Nobody has checked it. */
  readonly body: Body;
}

/** Status and headers of an answer. */
export interface ResponseInit {
  /** 200 to 599. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
}

/** Status, headers and media type of an answer of bytes. */
export interface BinaryResponseInit extends ResponseInit {
  readonly contentType?: string;
}

declare const ANSWER: unique symbol;

/** An answer with a status and headers. Made by `response` only. */
export interface ScriptResponse<Body = unknown> {
  readonly [ANSWER]: Body;
}

/** Makes answers. */
export interface ResponseApi {
  json<Body>(body: Body, init?: ResponseInit): ScriptResponse<Body>;
  text(body: string, init?: ResponseInit): ScriptResponse<string>;
  bytes(body: Uint8Array, init?: BinaryResponseInit): ScriptResponse<Uint8Array>;
  /** Status 204 unless it is given. */
  empty(init?: ResponseInit): ScriptResponse<null>;
  /** Status 302 unless it is given. */
  redirect(location: string, status?: 301 | 302 | 303 | 307 | 308): ScriptResponse<null>;
}

/** An answer as it travels. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  /** A JSON value or a text; null when there is none. */
  readonly body: unknown;
  /** `base64` when the body is bytes, written so. */
  readonly encoding?: "base64";
}

class Response implements Answer {
  readonly status: number;
  readonly headers: Answer["headers"];
  readonly body: unknown;
  readonly encoding?: "base64";

  constructor(answer: Answer) {
    this.status = answer.status;
    this.headers = Object.freeze({ ...answer.headers });
    this.body = answer.body;
    if (answer.encoding !== undefined) this.encoding = answer.encoding;
    Object.freeze(this);
  }
}

/** The answer that a handler has made, or undefined when it returned a plain value. */
export function answerOf(value: unknown): Answer | undefined {
  return value instanceof Response ? { ...value } : undefined;
}

const HEADERS_MAX = 50;
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
const HEADER_CHARS_MAX = 8_192;
const LOCATION_CHARS_MAX = 4_096;
/** Headers that belong to the connection or set credentials. */
const RESERVED = new Set(["connection", "content-length", "keep-alive", "proxy-authenticate", "set-cookie", "te", "trailer", "transfer-encoding", "upgrade"]);

function make<Body>(body: unknown, init: ResponseInit | undefined, status: number, contentType?: string): ScriptResponse<Body> {
  const answer = {
    status: statusOf(init?.status ?? status),
    headers: { ...(contentType === undefined ? {} : { "content-type": contentType }), ...headersOf(init?.headers ?? {}) },
    body: body instanceof Uint8Array ? Buffer.from(body).toString("base64") : body,
    ...(body instanceof Uint8Array ? { encoding: "base64" as const } : {}),
  };
  return new Response(answer) as unknown as ScriptResponse<Body>;
}

function statusOf(status: unknown): number {
  const fits = typeof status === "number" && Number.isInteger(status) && status >= 200 && status <= 599;
  if (!fits) throw badField("response.status", "must be a whole number from 200 to 599");
  return status;
}

function headersOf(headers: unknown): Record<string, string | readonly string[]> {
  if (!isPlainObject(headers)) throw badField("response.headers", "must be an object");
  const entries = Object.entries(headers);
  if (entries.length > HEADERS_MAX) throw badField("response.headers", `must be at most ${HEADERS_MAX}`);
  return Object.fromEntries(entries.map(([name, value]) => {
    const lower = name.toLowerCase();
    if (!HEADER_NAME.test(name) || RESERVED.has(lower)) throw badField("response.headers", "has a name that cannot be set");
    const values: readonly unknown[] = Array.isArray(value) ? value : [value];
    if (!values.every(isHeaderValue)) throw badField("response.headers", `must hold texts of one line of at most ${HEADER_CHARS_MAX} characters`);
    return [lower, Array.isArray(value) ? [...(values as string[])] : (value as string)];
  }));
}

function isHeaderValue(value: unknown): value is string {
  return typeof value === "string" && value.length <= HEADER_CHARS_MAX && !/[\r\n\0]/.test(value);
}

/** Makes answers for handlers. */
export const response: ResponseApi = Object.freeze({
  json<Body>(body: Body, init?: ResponseInit) {
    if (body === undefined) throw badField("response.body", "must be a JSON value");
    return make<Body>(body, init, 200, "application/json; charset=utf-8");
  },
  text(body: string, init?: ResponseInit) {
    if (typeof body !== "string") throw badField("response.body", "must be a text");
    return make<string>(body, init, 200, "text/plain; charset=utf-8");
  },
  bytes(body: Uint8Array, init?: BinaryResponseInit) {
    if (!(body instanceof Uint8Array)) throw badField("response.body", "must be bytes");
    return make<Uint8Array>(body, init, 200, init?.contentType ?? "application/octet-stream");
  },
  empty: (init?: ResponseInit) => make<null>(null, init, 204),
  redirect(location: string, status: number = 302) {
    const fits = typeof location === "string" && location !== "" && location.length <= LOCATION_CHARS_MAX && isHeaderValue(location);
    if (!fits) throw badField("response.location", `must be one line of 1 to ${LOCATION_CHARS_MAX} characters`);
    if (![301, 302, 303, 307, 308].includes(status)) throw badField("response.status", "must be 301, 302, 303, 307 or 308");
    return make<null>(null, { headers: { location } }, status);
  },
});
