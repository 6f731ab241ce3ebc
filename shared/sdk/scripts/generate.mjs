// Writes the types and the argument schemas of src/generated from the JSON Schemas of the contract. With --check it writes
// nothing and fails when a file differs from what would be written.
import { readFileSync, writeFileSync, mkdirSync, existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { compile } from "json-schema-to-typescript";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const contract = join(root, "..", "contracts", "schema");
const check = process.argv.includes("--check");

/** Bodies that project code or its host sends or reads. */
const BODIES = [
  "processes.start", "processes.start.reply", "processes.get", "processes.get.reply",
  "agents.start", "agents.start.reply", "agents.get", "agents.get.reply",
  "jobs.enqueue", "jobs.enqueue.reply", "data.get", "data.get.reply", "data.query", "data.query.reply",
  "data.create", "data.create.reply", "data.update", "data.update.reply", "models.invoke", "models.invoke.reply",
  "projects.register", "projects.register.reply", "projects.show", "projects.show.reply", "projects.session", "projects.session.reply",
  "error", "execution-token", "process-completion", "agent-result",
  "job.run", "job.accepted", "job.result", "host.request", "host.accepted", "host.answer", "host.progress", "host.call", "host.callanswer",
].filter((body) => existsSync(join(contract, `${body}.json`)));

/** Arguments that are checked before they are sent. */
const CHECKED = { processStart: "processes.start", agentStart: "agents.start" };

const NOTE = "// Generated from the contract of the fleet by `npm run generate`. Do not edit.\n";

function read(name) {
  return JSON.parse(readFileSync(join(contract, `${name}.json`), "utf8"));
}

/** A value that the contract leaves open is `unknown`, not an object. */
function opened(schema) {
  if (Array.isArray(schema)) return schema.map(opened);
  if (schema === null || typeof schema !== "object") return schema;
  // What stands beside a reference is prose; the type has its own.
  if (schema.$ref !== undefined) return { $ref: schema.$ref };
  const words = Object.keys(schema).filter((word) => word !== "description");
  if (words.length === 0) return { ...schema, tsType: "unknown" };
  const inner = ([name, value]) => [name, name === "properties" || name === "$defs" ? each(value) : opened(value)];
  return Object.fromEntries(Object.entries(schema).map(inner));
}

function each(schemas) {
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, opened(schema)]));
}

/** All bodies as definitions of one schema. Two definitions of one name must be the same. */
function merged() {
  const definitions = {};
  const add = (name, schema) => {
    if (definitions[name] !== undefined && !isDeepStrictEqual(definitions[name], schema)) {
      throw new Error(`two different definitions are named ${name}`);
    }
    definitions[name] = schema;
  };
  for (const body of BODIES) {
    const { $schema: _, $defs: inner = {}, title, ...schema } = opened(read(body));
    for (const [name, definition] of Object.entries(inner)) add(name, definition);
    add(title, schema);
  }
  return { $id: "Contract", type: "object", additionalProperties: false, $defs: definitions };
}

async function types() {
  const text = await compile(merged(), "Contract", {
    additionalProperties: false,
    bannerComment: NOTE,
    declareExternallyReferenced: true,
    unreachableDefinitions: true,
    strictIndexSignatures: false,
    ignoreMinAndMaxItems: true,
    format: true,
    style: { printWidth: 120 },
  });
  return text
    .replace(/export interface Contract \{\}\n+/, "")
    .replace(/ \*\n \* This interface was referenced by [^\n]*\n \* via the `definition` [^\n]*\n/g, "")
    .replace(/\/\*\*\n \* This interface was referenced by [^\n]*\n \* via the `definition` [^\n]*\n \*\/\n/g, "");
}

/** Descriptions are for readers; the check needs the rest. */
function withoutProse(schema) {
  if (Array.isArray(schema)) return schema.map(withoutProse);
  if (schema === null || typeof schema !== "object") return schema;
  const entries = Object.entries(schema).filter(([name, value]) => !(name === "description" && typeof value === "string"));
  return Object.fromEntries(entries.map(([name, value]) => [name, withoutProse(value)]));
}

function schemas() {
  const parts = Object.entries(CHECKED).map(([name, body]) => {
    const { $schema: _, title: __, ...schema } = withoutProse(read(body));
    return `/** Arguments of \`${body}\`. */\nexport const ${name} = ${JSON.stringify(schema, null, 2)} as const;\n`;
  });
  return `${NOTE}\n${parts.join("\n")}`;
}

const files = { "contract.ts": await types(), "schemas.ts": schemas() };
mkdirSync(join(root, "src", "generated"), { recursive: true });
for (const [name, text] of Object.entries(files)) {
  const path = join(root, "src", "generated", name);
  const before = existsSync(path) ? readFileSync(path, "utf8") : "";
  if (before === text) continue;
  if (check) {
    console.error(`src/generated/${name} is not what the contract says; run: npm run generate`);
    process.exitCode = 1;
  } else {
    writeFileSync(path, text);
    console.log(`wrote src/generated/${name}`);
  }
}
