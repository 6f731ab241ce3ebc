/** What the schema builder infers and rejects. */
import type { CogoverRecordId, InferSchema, ObjectSchema, Schema } from "../../src/index.js";
import { s } from "../../src/index.js";
import { type Equal, holds } from "./equal.js";

const WORDS = ["x", "y"] as const;
const schema = s.object({
  text: s.string({ maxLength: 5 }).describe("d"),
  word: s.enum(["a", "b"]),
  listed: s.enum(WORDS).optional(),
  count: s.integer(),
  ratio: s.number({ minimum: 0 }).optional().describe("d"),
  flag: s.boolean(),
  day: s.date(),
  at: s.dateTime(),
  lead: s.recordId("lead"),
  tags: s.array(s.string(), { maxItems: 3 }),
  inner: s.object({ deep: s.array(s.object({ n: s.number() })) }).optional(),
});

holds<Equal<InferSchema<typeof schema>, {
  readonly text: string;
  readonly word: "a" | "b";
  readonly listed?: "x" | "y";
  readonly count: number;
  readonly ratio?: number;
  readonly flag: boolean;
  readonly day: string;
  readonly at: number;
  readonly lead: CogoverRecordId;
  readonly tags: readonly string[];
  readonly inner?: { readonly deep: readonly { readonly n: number }[] };
}>>();
holds<Equal<ReturnType<typeof schema.parse>, InferSchema<typeof schema>>>();
holds<Equal<(typeof schema)["isOptional"], false>>();

const optional = s.object({ a: s.string() }).optional();
holds<Equal<(typeof optional)["isOptional"], true>>();
const kept: ObjectSchema<{ readonly a: Schema<string, false> }, true> = optional.describe("d");

// @ts-expect-error there are no patterns
s.string({ pattern: "a" });
// @ts-expect-error a bound is a number
s.integer({ minimum: "1" });
// @ts-expect-error words are texts
s.enum([1, 2]);
// @ts-expect-error an item is not optional
s.array(s.string().optional());
// @ts-expect-error a property is a schema
s.object({ a: "string" });
// @ts-expect-error a record has a kind
s.recordId();
void kept;
