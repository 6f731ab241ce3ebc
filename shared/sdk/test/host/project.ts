/** Projects for tests, in folders of their own. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** Writes files below a new folder; the folder goes when the test ends. */
export function project(test: { after(fn: () => void): void }, files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), "runfleet-host-"));
  test.after(() => rmSync(root, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  return root;
}

/** Waits until something holds, for a bounded time. */
export async function until(what: string, holds: () => boolean | Promise<boolean>, ms = 10_000): Promise<void> {
  for (const end = Date.now() + ms; ; ) {
    if (await holds()) return;
    if (Date.now() > end) throw new Error(`not within ${ms} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Log lines, as they were written. */
export interface Lines {
  readonly level: string;
  readonly message: string;
  readonly [fact: string]: unknown;
}
