import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import type TypeScript from "typescript";

const root = join(import.meta.dirname, "..", "..", "..");
const ts = createRequire(import.meta.url)("typescript") as typeof TypeScript;

/** Code of a page, as files that exist in memory only. */
function examples(page: string): Map<string, string> {
  const text = readFileSync(join(root, page), "utf8");
  const blocks = [...text.matchAll(/^```ts\n([\s\S]*?)^```/gm)].map(([, code]) => code ?? "");
  return new Map(blocks.map((code, place) => [join(root, "test", `example-${place}.ts`), `${code}\nexport {};\n`]));
}

test("every example of the guide compiles, with the strictest settings", () => {
  const files = examples("README.md");
  assert.ok(files.size >= 5);
  const { config } = ts.readConfigFile(join(root, "tsconfig.base.json"), ts.sys.readFile);
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, root);
  Object.assign(options, { noEmit: true, noUnusedLocals: false, paths: { "@runfleet/sdk": [join(root, "src/index.ts")] } });
  const host = ts.createCompilerHost(options);
  const { readFile, fileExists, getSourceFile } = host;
  host.readFile = (file) => files.get(file) ?? readFile(file);
  host.fileExists = (file) => files.has(file) || fileExists(file);
  host.getSourceFile = (file, target, ...rest) => {
    const code = files.get(file);
    return code === undefined ? getSourceFile(file, target, ...rest) : ts.createSourceFile(file, code, target);
  };
  const problems = ts.getPreEmitDiagnostics(ts.createProgram([...files.keys()], options, host));
  assert.deepEqual(problems.map(({ file, messageText }) => `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, " ")}`), []);
});
