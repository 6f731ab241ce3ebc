// Compiles what has changed of sources and tests to .build, and runs the tests of the folders that are named. Stops at the first
// build error.
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const folders = process.argv.slice(2);
const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");

function run(args) {
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}

// By their sources: what was compiled from a source that is gone is still there.
function testFiles(folder) {
  return readdirSync(join(root, folder), { recursive: true })
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => join(".build", folder, name.replace(/\.ts$/, ".js")))
    .sort();
}

run([tsc, "-p", "tsconfig.test.json"]);
const files = folders.flatMap(testFiles);
if (files.length === 0) {
  console.error(`no tests below ${folders.join(", ")}`);
  process.exit(1);
}
// The files wait more than they compute; older releases of Node run them one after the other on a small machine.
const [major, minor] = process.versions.node.split(".").map(Number);
const together = major > 20 || minor >= 10 ? ["--test-concurrency=4"] : [];
// Every test waits with a bound of its own; this one ends a file that does not.
run(["--enable-source-maps", "--test", "--test-timeout=120000", ...together, ...files]);
