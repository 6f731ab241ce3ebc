/**
 * What project keys and execution tokens say. The fleet verifies them; here they are only read, to know whose queues to take and on
 * whose behalf code runs.
 */

/** Whose key it is. */
export interface KeyClaims {
  readonly workspace: string;
  readonly project: string;
  /** Unix seconds after which it is refused. */
  readonly expiresAt: number;
}

const NAME = /^[A-Za-z0-9_-]{1,64}$/;

/** Reads the claims of a key; none when it is not one. */
export function readKey(key: string): KeyClaims | undefined {
  const { workspace, project, exp } = claimsOf(key);
  if (typeof workspace !== "string" || typeof project !== "string" || typeof exp !== "number") return undefined;
  if (!NAME.test(workspace) || !NAME.test(project)) return undefined;
  return { workspace, project, expiresAt: exp };
}

/** The person on whose behalf the holder of an execution token runs, or null. */
export function userOf(token: string | undefined): string | null {
  const { user } = token === undefined ? {} : claimsOf(token);
  return typeof user === "string" && NAME.test(user) ? user : null;
}

/** What a token says; nothing when it is none. */
function claimsOf(token: string): Partial<Record<string, unknown>> {
  const [, body, signature, ...more] = token.split(".");
  if (body === undefined || signature === undefined || more.length > 0) return {};
  try {
    const claims: unknown = JSON.parse(Buffer.from(body, "base64url").toString("utf8"));
    return typeof claims === "object" && claims !== null ? claims : {};
  } catch {
    return {};
  }
}
