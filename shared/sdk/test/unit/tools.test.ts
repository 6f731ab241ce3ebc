import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { z } from "zod";
import { z as z3 } from "zod3";
import { defineTools, s, type ToolDefinition } from "../../src/index.js";
import { createApis, type Apis } from "../../src/runtime/index.js";
import { invokeTool, loadTools, prepareTool, type PreparedTool, type ToolProblem } from "../../src/tools/index.js";

/** A project in a folder of its own: texts by path. */
async function project<T>(files: Record<string, string>, use: (root: string) => Promise<T>): Promise<T> {
  const root = mkdtempSync(join(tmpdir(), "runfleet-tools-"));
  try {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    }
    return await use(root);
  } finally {
    rmSync(root, { recursive: true });
  }
}

const tool = (description: string, more = ""): string =>
  `export default { scope: "SPECIFIED", definition: { name: "other", description: "${description}" }, invoke: () => "${description}" ${more} };`;

function loaded(files: Record<string, string>): Promise<{ tools: readonly PreparedTool[]; problems: readonly ToolProblem[] }> {
  return project({ "package.json": '{"type":"module"}', ...files }, (root) => loadTools({ root }));
}

function apis(answers: Record<string, unknown> = {}, asked: [string, unknown][] = []): Apis {
  return createApis(async (operation, payload) => {
    asked.push([operation, payload]);
    return answers[operation];
  }, { source: "action", user: "U1", workspace: "W1" });
}

function prepared(options: ToolDefinition<any>): Promise<PreparedTool> {
  return prepareTool(options as ToolDefinition, { name: "t", file: "ai/tools/t.ts" });
}

/** NB-01 */
test("a file or its folder names a tool, whatever the tool says", async () => {
  const { tools, problems } = await loaded({
    "ai/tools/foo.js": tool("file"),
    "ai/group/tools/deep/bar/index.js": tool("folder"),
    "src/ai/tools/baz.js": tool("source"),
    "ai/tools/types.d.ts": "export default {};",
    "ai/skills/no.js": tool("no tool"),
    "ai/tools/.hidden.js": tool("hidden"),
  });
  assert.deepEqual(tools.map(({ name, file, definition }) => [name, file, definition.name]), [
    ["bar", "ai/group/tools/deep/bar/index.js", "bar"], ["foo", "ai/tools/foo.js", "foo"], ["baz", "src/ai/tools/baz.js", "baz"],
  ]);
  assert.deepEqual(problems, []);
});

/** NB-02 */
test("a description in a file replaces the description in full, unless it is empty", async () => {
  const { tools } = await loaded({
    "ai/tools/a/index.js": tool("short"), "ai/tools/a/description.md": "# Long\n\nWhen to use it.\n",
    "ai/tools/b/index.js": tool("short"), "ai/tools/b/description.md": " \n",
  });
  assert.deepEqual(tools.map(({ definition }) => definition.description), ["# Long\n\nWhen to use it.\n", "short"]);
});

/** NB-03 */
test("a broken tool is reported with its name and file, and the others stay", async () => {
  const { tools, problems } = await loaded({
    "ai/tools/good.js": tool("good"),
    "ai/tools/syntax.js": "export default {",
    "ai/tools/throws.js": 'throw new Error("at load");',
    "ai/tools/empty.js": "export default {};",
    "ai/tools/none.js": "export const x = 1;",
    "ai/tools/scope.js": 'export default { scope: "ALL", definition: { description: "d" }, invoke() {} };',
    "ai/tools/schema.js": 'export default { scope: "GENERAL", definition: { description: "d", schema: { type: "string" } }, invoke() {} };',
    "ai/tools/bad name.js": tool("bad"),
    "ai/tools/only/description.md": "text",
    "ai/tools/made.js": `export default () => ({ scope: "GENERAL", definition: { description: "made" }, invoke() {} });`,
  });
  assert.deepEqual(tools.map(({ name }) => name), ["good", "made"]);
  assert.deepEqual(problems.map(({ level, tool, file }) => [level, tool, file]).sort(), [
    ["error", "bad name", "ai/tools/bad name.js"], ["error", "only", "ai/tools/only/description.md"], ["error", "schema", "ai/tools/schema.js"],
    ["error", "scope", "ai/tools/scope.js"], ["error", "syntax", "ai/tools/syntax.js"], ["error", "throws", "ai/tools/throws.js"],
    ["warning", "empty", "ai/tools/empty.js"], ["warning", "none", "ai/tools/none.js"],
  ]);
});

/** NB-04 */
test("a second tool of a name is ignored with a warning, and the first stays", async () => {
  const { tools, problems } = await loaded({
    "ai/a/tools/x.js": tool("first"), "ai/b/tools/x.js": tool("second"), "src/ai/tools/x/index.js": tool("third"),
  });
  assert.deepEqual(tools.map(({ definition }) => definition.description), ["first"]);
  assert.deepEqual(problems.map(({ level, tool, file }) => [level, tool, file]), [
    ["warning", "x", "ai/b/tools/x.js"], ["warning", "x", "src/ai/tools/x/index.js"],
  ]);
});

test("links are not followed, and a project without tools has none", async () => {
  await project({ "outside/tools/x.js": tool("outside"), "ai/tools/real.js": tool("real"), "package.json": '{"type":"module"}' }, async (root) => {
    symlinkSync(join(root, "outside"), join(root, "ai/linked"));
    symlinkSync(join(root, "outside/tools/x.js"), join(root, "ai/tools/link.js"));
    assert.deepEqual((await loadTools({ root })).tools.map(({ name }) => name), ["real"]);
  });
  assert.deepEqual(await loaded({}), { tools: [], problems: [] });
});

/** NB-05 */
test("a tool asks, runs in the host, is shown and has its name as title unless it says otherwise", async () => {
  const [plain] = (await loaded({ "ai/tools/plain.js": tool("d", ", silence: 1") })).tools;
  assert.ok(plain !== undefined);
  const { defaultPermission, execution, silence, from, introduction, scope } = plain;
  assert.deepEqual({ defaultPermission, execution, silence, from, introduction, scope }, {
    defaultPermission: "ASK", execution: "backend", silence: false, from: "loader", introduction: { title: "plain" }, scope: "SPECIFIED",
  });
});

test("titles are resolved with the texts of the project", async () => {
  const introduction = `, introduction: { title: '{{t("tools.find.title", { ns: "@shop/tools" })}}', about: 'a {{t("Unknown \\\\"text\\\\"")}} b' }`;
  const files = { "ai/tools/find.js": tool("d", introduction), "src/locale/en-US.json": '{"tools": {"find.title": "Find orders"}}' };
  const [found] = (await loaded(files)).tools;
  assert.deepEqual(found?.introduction, { title: "Find orders", about: 'a Unknown "text" b' });
  const [other] = await project({ "package.json": '{"type":"module"}', ...files, "src/locale/vi.json": '{"tools.find.title": "Tìm"}' },
    async (root) => (await loadTools({ root, language: "vi-VN" })).tools);
  assert.equal(other?.introduction.title, "Tìm");
});

/** NB-13, NB-14, NB-17 */
test("schemas of zod 3 and 4, JSON Schemas and our own are all held to and bring their defaults", async () => {
  const json = { type: "object", properties: { word: { enum: ["a", "b"] }, limit: { type: "integer", minimum: 1, default: 5 } }, required: ["word"], additionalProperties: false };
  const schemas: [string, unknown, boolean][] = [
    ["zod 4", z.object({ word: z.enum(["a", "b"]), limit: z.number().int().min(1).default(5) }), true],
    ["zod 3", z3.object({ word: z3.enum(["a", "b"]), limit: z3.number().int().min(1).default(5) }), true],
    ["JSON Schema", json, true],
    ["builder", s.object({ word: s.enum(["a", "b"]), limit: s.integer({ minimum: 1 }).optional() }), false],
  ];
  for (const [kind, schema, defaults] of schemas) {
    const calls: unknown[][] = [];
    const made = await prepared({ scope: "GENERAL", definition: { description: "d", schema }, invoke: (...args: unknown[]) => void calls.push(args) });
    assert.equal(made.parameters["type"], "object", kind);
    const properties = made.parameters["properties"] as Record<string, unknown>;
    assert.deepEqual(Object.keys(properties), ["word", "limit"], kind);
    assert.deepEqual(made.parameters["required"], ["word"], kind);
    assert.equal(made.parameters["$schema"], undefined, kind);
    const good = await invokeTool(made, { args: { word: "a" }, toolCallId: "c1" }, apis());
    assert.equal(good.status, "success", kind);
    assert.deepEqual(calls[0]?.[1], defaults ? { word: "a", limit: 5 } : { word: "a" }, kind);
    assert.equal((calls[0]?.[2] as { toolCallId: string }).toolCallId, "c1", kind);
    const bad = await invokeTool(made, { args: { word: "s3cret", limit: 0 }, toolCallId: "c2" }, apis());
    assert.equal(bad.status, "error", kind);
    const { problems } = bad.content as { problems: { path: string; message: string }[] };
    assert.deepEqual(problems.map(({ path }) => path).sort(), ["/limit", "/word"], kind);
    assert.doesNotMatch(JSON.stringify(bad), /s3cret/, kind);
    assert.equal(calls.length, 1, kind);
  }
});

test("a transformation of a schema is applied before the work", async () => {
  const made = await prepared(defineTools({
    scope: "GENERAL",
    definition: { description: "d", schema: z.object({ n: z.string().transform(Number) }) },
    invoke: (_ctx, { n }) => n + 1,
  }));
  assert.deepEqual(await invokeTool(made, { args: { n: "41" }, toolCallId: "c" }, apis()), { status: "success", content: 42 });
});

/** NB-15, NB-16 */
test("every ending of a tool is a result", async () => {
  const table: [() => unknown, unknown][] = [
    [() => "text", { status: "success", content: "text" }],
    [() => [{ a: 1 }], { status: "success", content: [{ a: 1 }] }],
    [() => undefined, { status: "success", content: "" }],
    [() => ({ status: "error", content: "no stock" }), { status: "error", content: "no stock" }],
    [() => ({ status: "success", content: { n: 1 }, extra: 2 }), { status: "success", content: { n: 1 }, extra: 2 }],
    [() => ({ status: "open" }), { status: "success", content: { status: "open" } }],
    [() => { throw new Error("no such order"); }, { status: "error", content: "no such order" }],
    [() => Promise.reject("thrown text"), { status: "error", content: "The tool has failed." }],
  ];
  for (const [work, expected] of table) {
    const made = await prepared({ scope: "GENERAL", definition: { description: "d" }, invoke: work });
    assert.deepEqual(await invokeTool(made, { args: {}, toolCallId: "c" }, apis()), expected);
  }
  for (const value of ["x".repeat(200_000), 5n]) {
    const made = await prepared({ scope: "GENERAL", definition: { description: "d" }, invoke: () => value });
    assert.equal((await invokeTool(made, { args: {}, toolCallId: "c" }, apis())).status, "error");
  }
});

test("what a tool writes becomes texts that fit into a message, and a sink that fails does no harm", async () => {
  const made = await prepared({
    scope: "GENERAL",
    definition: { description: "d" },
    invoke: (_ctx: unknown, _args: unknown, { writer }: { writer: (chunk: unknown) => void }) => {
      writer("half way");
      writer({ step: 2 });
      writer(undefined);
      writer("é".repeat(10_000));
    },
  });
  const chunks: string[] = [];
  await invokeTool(made, { args: {}, toolCallId: "c", progress: (chunk) => void chunks.push(chunk) }, apis());
  assert.deepEqual(chunks.slice(0, 2), ["half way", '{"step":2}']);
  assert.deepEqual(chunks.slice(2).map((chunk) => Buffer.byteLength(chunk)), [16_384, 3_616]);
  const failing = await invokeTool(made, { args: {}, toolCallId: "c", progress: () => { throw new Error("closed"); } }, apis());
  assert.equal(failing.status, "success");
});

test("a tool reaches records, models and the request through its context", async () => {
  const record = { objectSlug: "posts", recordId: "R1", fields: { title: "t" } };
  const asked: [string, unknown][] = [];
  const answers = {
    "data.query": { records: [record] }, "data.get": { record }, "data.create": { record }, "data.update": { record },
    "models.invoke": { runId: "AR1" }, "agents.get": { status: "COMPLETED", text: "hello" },
  };
  const made = await prepared(defineTools({
    scope: "GENERAL",
    definition: { description: "d" },
    invoke: async (ctx) => {
      const posts = ctx.app.db.getRepository("posts");
      assert.equal(ctx.db, ctx.app.db);
      assert.equal(ctx.state.currentUser, ctx.auth.user);
      const found = await posts.findOne({ filter: { title: { $eq: "t" } } });
      const one = await posts.find({ filterByTk: "R1", fields: ["id", "title"] });
      const created = await posts.create({ values: { title: "t" } });
      const updated = await posts.update({ filterByTk: created.id, values: { title: "u" } });
      const { model } = ctx.action?.params?.values ?? {};
      const { provider } = await ctx.app.pm.get("ai").aiManager.getLLMService({ ...model, webSearch: true });
      const { text } = await provider.invoke([{ type: "human", content: [{ type: "text", text: "hi" }] }]);
      return { user: ctx.auth.user?.id, found, title: found?.get("title"), one: one.length, updated, text, none: ctx.app.pm.get("other") ?? null, t: ctx.t("key") };
    },
  }));
  const call = { args: {}, toolCallId: "c", user: "U1", values: { sessionId: "S1", model: { llmService: "x", model: "fast" } } };
  assert.deepEqual(await invokeTool(made, call, apis(answers, asked)), {
    status: "success",
    content: {
      user: "U1", found: { title: "t", id: "R1" }, title: "t", one: 1, updated: [{ title: "u", id: "R1" }], text: "hello", none: null, t: "key",
    },
  });
  assert.deepEqual(asked.map(([operation, payload]) => [operation, JSON.parse(JSON.stringify(payload))]), [
    ["data.query", { objectSlug: "posts", filter: { title: "t" }, limit: 1 }],
    ["data.get", { objectSlug: "posts", recordId: "R1" }],
    ["data.create", { objectSlug: "posts", fields: { title: "t" } }],
    ["data.get", { objectSlug: "posts", recordId: "R1" }],
    ["data.update", { objectSlug: "posts", recordId: "R1", fields: { title: "u" } }],
    ["models.invoke", { model: "fast", messages: [{ role: "user", content: "hi" }] }],
    ["agents.get", { runId: "AR1" }],
  ]);
});

test("records are never changed without a condition, and a condition that no source knows is refused", async () => {
  const use = async (work: (posts: any) => unknown): Promise<unknown> => {
    const made = await prepared({ scope: "GENERAL", definition: { description: "d" }, invoke: (ctx: any) => work(ctx.app.db.getRepository("posts")) });
    return (await invokeTool(made, { args: {}, toolCallId: "c" }, apis())).content;
  };
  assert.match(String(await use((posts) => posts.update({ values: { a: 1 } }))), /filter/);
  assert.match(String(await use((posts) => posts.find({ filter: { a: { $gt: 1 } } }))), /which fields equal/);
  assert.match(String(await use((posts) => posts.find({ sort: ["-a"] }))), /Records are found by/);
});

test("the model of a conversation is a wish, and one that a tool names is not", async () => {
  const asked: unknown[] = [];
  const fleet = createApis(async (operation, payload) => {
    if (operation === "agents.get") return { status: "COMPLETED", text: "hello" };
    asked.push((payload as { model?: string }).model ?? null);
    if ("model" in (payload as object)) throw { code: "NOT_FOUND", message: "m", details: { resource: "model" } };
    return { runId: "AR1" };
  }, { source: "action", user: "U1", workspace: "W1" });
  const use = async (options: object): Promise<unknown> => {
    const made = await prepared({
      scope: "GENERAL", definition: { description: "d" },
      invoke: async (ctx: any) => (await (await ctx.app.pm.get("ai").aiManager.getLLMService(options)).provider.invoke("hi")).text,
    });
    return (await invokeTool(made, { args: {}, toolCallId: "c", values: { model: { model: "fast" } } }, fleet)).content;
  };
  assert.equal(await use({ model: "fast" }), "hello");
  assert.equal(await use({}), "hello");
  assert.equal(await use({ model: "other" }), "m");
  assert.deepEqual(asked, ["fast", null, "fast", null, "other"]);
});
