/**
 * What a version of a project declares, as it is registered.
 */

/** A job. */
export interface ManifestJob {
  readonly key: string;
  readonly name?: string;
  readonly timeoutMs?: number;
  readonly maxAttempts?: number;
  readonly schedule?: { readonly cron: string; readonly timeZone: string };
}

/** A trigger that runs after a change. */
export interface ManifestTrigger {
  readonly key: string;
  readonly timeoutMs?: number;
}

/** A Custom Module Action. */
export interface ManifestAction {
  readonly key: string;
  readonly access: "read" | "write";
  readonly timeoutMs?: number;
}

/** A tool of agents. */
export interface ManifestTool {
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  readonly schema?: unknown;
  readonly permission?: "ALLOW" | "ASK";
  readonly scope?: "GENERAL" | "SPECIFIED" | "CUSTOM";
}

/** Everything that a version declares, apart from its name. */
export interface Manifest {
  readonly jobs: readonly ManifestJob[];
  readonly scripts: readonly string[];
  readonly routes: readonly string[];
  readonly triggers: readonly ManifestTrigger[];
  readonly actions: readonly ManifestAction[];
  readonly tools: readonly ManifestTool[];
}

/** Most of each: what the fleet takes. */
export const MANIFEST_MAX = { jobs: 50, scripts: 200, routes: 200, triggers: 200, actions: 50, tools: 64 } as const;
