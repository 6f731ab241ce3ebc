// Writes API.md from the types. With --check it writes nothing and fails when the file is not what would be written.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const require = createRequire(import.meta.url);
const typedoc = join(dirname(require.resolve("typedoc/package.json")), "bin", "typedoc");
const NOTE = "<!-- Generated from the types by `npm run docs`. Do not edit. -->\n\n";

const { status, stderr, stdout } = spawnSync(process.execPath, [typedoc, "--logLevel", "Warn"], { cwd: root, encoding: "utf8", timeout: 120_000 });
if (status !== 0) {
  console.error(stdout + stderr);
  process.exit(1);
}
const text = NOTE + readFileSync(join(root, ".docs", "README.md"), "utf8").trimEnd().replace(/[ \t]+$/gm, "") + "\n";
rmSync(join(root, ".docs"), { recursive: true });
const path = join(root, "API.md");
const before = existsSync(path) ? readFileSync(path, "utf8") : "";
if (process.argv.includes("--check")) {
  if (before !== text) {
    console.error("API.md is not what the types say; run: npm run docs");
    process.exit(1);
  }
} else if (before !== text) {
  writeFileSync(path, text);
  console.log("wrote API.md");
}
