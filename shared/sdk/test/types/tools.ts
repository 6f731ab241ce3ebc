/** Tools that were written for other packages compile, and arguments are what schemas give. */
import { z } from "zod";
import { z as z3 } from "zod3";
import { defineTools, s, type Context } from "../../src/index.js";
import { definedTools } from "../../src/compat/nocobase-ai.js";
import type { Context as ActionsContext } from "../../src/compat/nocobase-actions.js";
import { type Equal, holds } from "./equal.js";

export const four = defineTools({
  scope: "SPECIFIED",
  defaultPermission: "ALLOW",
  introduction: { title: '{{t("tools.search.title", { ns: "shop" })}}' },
  definition: {
    name: "search",
    description: "Searches.",
    schema: z.object({ query: z.array(z.string()), limit: z.number().int().default(5), word: z.enum(["a", "b"]).optional() }),
  },
  invoke: async (ctx, args, runtime) => {
    holds<Equal<typeof args, { query: string[]; limit: number; word?: "a" | "b" | undefined }>>();
    runtime.writer({ step: 1 });
    const ai = ctx.app.pm.get("ai");
    const { model } = ctx.action?.params?.values ?? {};
    const { provider } = await ai.aiManager.getLLMService({ ...model, webSearch: true, reasoning: { mode: "off" } });
    const content = await Promise.all(args.query.map(async (query) => ({ query, result: (await provider.invoke([{ role: "user", content: query }])).text })));
    return { status: "success", content, id: runtime.toolCallId };
  },
});

export const three = defineTools({
  scope: "GENERAL",
  definition: { description: "d", schema: z3.object({ name: z3.string().min(1), limit: z3.number().default(5) }) },
  invoke(_ctx: ActionsContext, args) {
    holds<Equal<typeof args, { name: string; limit: number }>>();
    return args.name;
  },
});

export const annotated = defineTools({
  scope: "SPECIFIED",
  definition: { name: "greet", description: "d", schema: z.object({ name: z.string() }) },
  invoke: async (_ctx: Context, args: { name: string }) => ({ status: "success", content: `Hello ${args.name}` }),
});

export const json = defineTools({
  scope: "CUSTOM",
  definition: { name: "send", description: "d", schema: { type: "object", required: ["to"], properties: { to: { type: "string" } } } },
  invoke: async (ctx: Context, args: any) => {
    const repository = ctx.app.db.getRepository("posts");
    const post = await repository.findOne({ filter: { id: args.to } });
    const made = await repository.create({ values: { title: "t", by: ctx.auth.user?.id } });
    await repository.update({ filterByTk: made.id, values: { title: "u" } });
    return post?.get("title");
  },
});

export const built = defineTools({
  scope: "SPECIFIED",
  definition: { description: "d", schema: s.object({ word: s.enum(["a", "b"]) }) },
  invoke(_, args) {
    holds<Equal<typeof args, { readonly word: "a" | "b" }>>();
  },
});

export const old = definedTools({
  scope: "SPECIFIED",
  execution: "frontend",
  definition: { name: "env", description: "d", schema: z.object({}) },
  invoke: async (ctx) => {
    const { toolCallResults } = ctx.action.params.values || {};
    return { status: "success", content: JSON.stringify(toolCallResults) };
  },
});

export const bare = defineTools({ scope: "GENERAL", definition: { name: "x", description: "d", schema: null }, invoke: async () => ({ status: "success" }) });

export const transformed = defineTools({
  scope: "SPECIFIED",
  definition: { description: "d", schema: z.object({ day: z.string().transform((text) => new Date(text)), tags: z.array(z.string()).default([]) }) },
  invoke(_ctx, args) {
    // The output of the schema, not what the model has sent.
    holds<Equal<typeof args, { day: Date; tags: string[] }>>();
  },
});

// @ts-expect-error a tool has a scope
defineTools({ definition: { description: "d" }, invoke: () => 1 });
// @ts-expect-error there are three scopes
defineTools({ scope: "ALL", definition: { description: "d" }, invoke: () => 1 });
// @ts-expect-error the model is told when to use it
defineTools({ scope: "GENERAL", definition: { name: "x" }, invoke: () => 1 });
// @ts-expect-error arguments are what the schema gives
defineTools({ scope: "GENERAL", definition: { description: "d", schema: z.object({ a: z.string() }) }, invoke: (_ctx, args) => args.b });
export function values(ctx: Context): unknown {
  // @ts-expect-error a run that nobody watches has no conversation
  return ctx.action.params.values.sessionId;
}
