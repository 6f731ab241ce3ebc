/**
 * What a project key says. The fleet verifies it; here it is only read, to know whose queues to take.
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
  const [, body, , ...more] = key.split(".");
  if (body === undefined || more.length > 0) return undefined;
  let claims: unknown;
  try {
    claims = JSON.parse(Buffer.from(body, "base64url").toString("utf8"));
  } catch {
    return undefined;
  }
  if (typeof claims !== "object" || claims === null) return undefined;
  const { workspace, project, exp } = claims as Record<string, unknown>;
  if (typeof workspace !== "string" || typeof project !== "string" || typeof exp !== "number") return undefined;
  if (!NAME.test(workspace) || !NAME.test(project)) return undefined;
  return { workspace, project, expiresAt: exp };
}
