/**
 * Logging in with the project key: registering this version, and finding out again and again whether it is the active one. That
 * question is also the host's sign of life.
 */

import { type ErrorBody, type Reply, type Requester, passing } from "../amqp/requester.js";
import type { Log } from "../logs.js";
import type { Manifest } from "../run/protocol.js";

/** Pause between two looks at which version is active. */
const LOOK_MS = 2_000;

/** Time for one request. */
const REQUEST_MS = 10_000;

/** The fleet has refused the key, the version or what it declares. Trying again does not help. */
export class Refused extends Error {}

/** Who asks. */
export interface Login {
  readonly requester: Requester;
  readonly key: string;
  readonly log: Log;
  readonly hostId: string;
  readonly version: string;
}

/** One request with the project key; a passing fault when `signal` ends the waiting. */
function ask(login: Login, operation: string, payload: unknown, signal: AbortSignal): Promise<Reply> {
  if (signal.aborted) return Promise.resolve(passing(false));
  return new Promise((resolve) => {
    const stop = (): void => resolve(passing(true));
    signal.addEventListener("abort", stop, { once: true });
    const asked = { operation, payload: JSON.stringify(payload), token: login.key, deadline: Date.now() + REQUEST_MS };
    void login.requester.ask(asked).then((reply) => {
      signal.removeEventListener("abort", stop);
      resolve(reply);
    });
  });
}

/** The same until it is answered, or `signal` ends it: a fleet that is away is waited for. Throws {@link Refused}. */
async function insist(login: Login, operation: string, payload: unknown, signal: AbortSignal): Promise<unknown> {
  for (;;) {
    const reply = await ask(login, operation, payload, signal);
    if (reply.ok) return reply.data;
    if (reply.error.code !== "RETRYABLE") throw new Refused(`${operation} is refused: ${told(reply.error)}`);
    if (signal.aborted) throw new Refused(`${operation} was not answered`);
    login.log("warn", "the fleet does not answer yet; trying again", { operation });
    await wait(LOOK_MS, signal);
  }
}

/** What an error says about the request: its code, its sentence, and which fields are wrong. */
function told({ code, message, details }: ErrorBody): string {
  const listed = details?.["problems"];
  const problems = (Array.isArray(listed) ? listed : [details]) as (Readonly<Record<string, unknown>> | undefined)[];
  const lines = problems
    .filter((problem) => typeof problem?.["problem"] === "string")
    .map((problem) => `${String(problem?.["field"])} ${String(problem?.["problem"])}`);
  const reason = details?.["reason"];
  return [code, message, ...(typeof reason === "string" ? [reason] : []), ...lines].join("; ");
}

/** Registers the version. Throws {@link Refused}. */
export async function register(login: Login, manifest: Manifest, signal: AbortSignal): Promise<void> {
  const payload = { version: login.version, ...manifest };
  const data = await insist(login, "projects.register", payload, signal);
  const created = (data as { created?: unknown } | null)?.created === true;
  login.log("info", created ? "registered a new version" : "the version was registered before", { version: login.version });
}

/** Makes the version the active one. Throws {@link Refused}. */
export async function activate(login: Login, signal: AbortSignal): Promise<void> {
  await insist(login, "projects.activate", { version: login.version }, signal);
  login.log("info", "made the version the active one", { version: login.version });
}

/** A token for code that a developer runs on their own machine. Throws {@link Refused}. */
export async function session(login: Login, readOnly: boolean, signal: AbortSignal): Promise<string> {
  const data = await insist(login, "projects.session", { readOnly }, signal);
  const token = (data as { token?: unknown } | null)?.token;
  if (typeof token !== "string") throw new Refused("projects.session gave no token");
  return token;
}

/** Looks until `signal` ends whether the version is active, and tells each change. While nobody answers nothing changes. */
export async function watch(login: Login, tell: (active: boolean) => void, signal: AbortSignal): Promise<void> {
  const host = { id: login.hostId, version: login.version };
  let before: boolean | undefined;
  let refusals = 0;
  while (!signal.aborted) {
    const reply = await ask(login, "projects.show", { host }, signal);
    if (signal.aborted) return;
    if (reply.ok) {
      refusals = 0;
      const active = (reply.data as { active?: unknown } | null)?.active === login.version;
      if (active !== before) {
        login.log("info", active ? "this version is active" : "this version is not active; waiting", { version: login.version });
        tell(active);
      }
      before = active;
    } else if (reply.error.code !== "RETRYABLE") {
      refusals += 1;
      login.log("error", "the fleet refuses to say which version is active", { code: reply.error.code });
      // A key that has expired or was revoked: nothing of this project is this host's business any more.
      if (refusals >= 5) throw new Refused(`projects.show is refused: ${told(reply.error)}`);
    }
    await wait(LOOK_MS, signal);
  }
}

function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end, { once: true });
  });
}
