import assert from "node:assert/strict";
import { test } from "node:test";
import { s, ValidationError } from "../../src/index.js";

const lead = s.object({
  name: s.string({ minLength: 2, maxLength: 5 }).describe("What people call it"),
  tier: s.enum(["A", "B"]),
  day: s.date().optional(),
  at: s.dateTime().optional(),
  count: s.integer({ minimum: 1 }).optional(),
  ratio: s.number({ maximum: 1.5 }).optional(),
  tags: s.array(s.string(), { maxItems: 2 }).optional(),
  lines: s.array(s.object({ qty: s.integer(), free: s.boolean().optional() })).optional(),
  owner: s.recordId("personnel").optional(),
});

function paths(value: unknown): string[] {
  const result = lead.safeParse(value);
  return result.ok ? [] : result.problems.map(({ path }) => path);
}

/** CG-057 */
test("a schema travels as the JSON Schema of the contract", () => {
  assert.deepEqual(s.object({ a: s.string().optional(), b: s.recordId("lead"), c: s.dateTime() }).toJSON(), {
    type: "object",
    properties: {
      a: { type: "string" },
      b: { type: "string", "x-cogover-object": "lead" },
      c: { type: "integer", format: "x-epoch-ms" },
    },
    required: ["b", "c"],
    additionalProperties: false,
  });
  assert.equal(JSON.stringify(s.array(s.enum(["x"]), { maxItems: 3 })), '{"type":"array","items":{"type":"string","enum":["x"]},"maxItems":3}');
});

test("an optional property that is null is dropped and a value that fits is kept", () => {
  const value = { name: "Anh", tier: "A", day: "2024-02-29", count: null, lines: [{ qty: 2, free: null }] };
  assert.deepEqual(lead.parse(value), { name: "Anh", tier: "A", day: "2024-02-29", lines: [{ qty: 2 }] });
});

test("each problem has a JSON Pointer and none repeats a value", () => {
  const value = {
    name: "x", tier: "s3cret", day: "2026-02-30", at: 1.5, count: 0, ratio: 2, tags: ["a", "b", "c"],
    lines: [{ qty: "s3cret" }, null, { qty: 1, extra: true }], owner: "  ", other: 1, "s3cret name": 1,
  };
  assert.deepEqual(paths(value).sort(), [
    "", "/at", "/count", "/day", "/lines/0/qty", "/lines/1", "/lines/2/extra", "/name", "/other", "/owner", "/ratio", "/tags", "/tier",
  ]);
  assert.throws(() => lead.parse(value), (error: unknown) => {
    assert.ok(error instanceof ValidationError);
    assert.doesNotMatch(error.message + JSON.stringify(error.details), /s3cret/);
    return true;
  });
});

test("a required property must be there, and characters are counted as people count them", () => {
  assert.deepEqual(paths({ tier: "A" }), ["/name"]);
  assert.deepEqual(paths({ name: null, tier: "A" }), ["/name"]);
  assert.deepEqual(paths({ name: "😀😀😀😀😀", tier: "A" }), []);
  assert.deepEqual(paths([]), [""]);
  assert.deepEqual(paths(null), [""]);
  assert.deepEqual(paths(new Date()), [""]);
});

test("at most 20 problems are listed and all are counted", () => {
  const result = s.object({ items: s.array(s.integer()) }).safeParse({ items: Array.from({ length: 25 }, () => "x") });
  assert.ok(!result.ok);
  assert.equal(result.problems.length, 20);
  assert.equal(result.errorCount, 25);
});

test("bounds without a number of their own are those of the contract", () => {
  const text = s.object({ text: s.string(), list: s.array(s.boolean()).optional() });
  assert.ok(text.safeParse({ text: "x".repeat(10_000) }).ok);
  assert.ok(!text.safeParse({ text: "x".repeat(10_001) }).ok);
  assert.ok(text.safeParse({ text: "", list: Array(1_000).fill(true) }).ok);
  assert.ok(!text.safeParse({ text: "", list: Array(1_001).fill(true) }).ok);
  assert.ok(!s.integer().safeParse(2 ** 53).ok);
  assert.ok(!s.number().safeParse(Number.NaN).ok);
});

test("a name from a prototype is no property", () => {
  const empty = s.object({});
  assert.ok(!empty.safeParse(JSON.parse('{"__proto__": 1}')).ok);
  assert.ok(!empty.safeParse({ constructor: 1 }).ok);
  assert.ok(!s.object({ toString: s.boolean() }).safeParse({}).ok);
});

test("mistakes in a schema are errors when it is built", () => {
  const wrong: (() => unknown)[] = [
    () => s.string({ minLength: 3, maxLength: 2 }),
    () => s.string({ maxLength: -1 }),
    () => s.string({ pattern: "x" } as never),
    () => s.number({ minimum: Number.NaN }),
    () => s.integer({ maximum: 1.5 }),
    () => s.enum([]),
    () => s.enum(["a", "a"]),
    () => s.recordId("no slug"),
    () => s.array(s.string().optional() as never),
    () => s.array(s.string(), { maxItems: 1.5 }),
    () => s.object({ "bad name": s.string() }),
    () => s.object({ a: {} as never }),
    () => s.string().describe(" "),
  ];
  for (const [place, build] of wrong.entries()) assert.throws(build, ValidationError, `case ${place}`);
});

test("a schema cannot be changed once it is built", () => {
  const schema = s.object({ a: s.string() });
  assert.throws(() => ((schema.toJSON() as { type: string }).type = "array"), TypeError);
  assert.equal(schema.describe("x").toJSON()["description"], "x");
  assert.equal(schema.toJSON()["description"], undefined);
  assert.ok(schema.optional().isOptional && !schema.isOptional);
});
