/** A tool as it is written for another package: it asks the model of its conversation, and reads a record. */
import type { Context } from "@nocobase/actions";
import { defineTools } from "@nocobase/ai";

export default defineTools({
  scope: "SPECIFIED",
  defaultPermission: "ALLOW",
  introduction: { title: '{{t("ai.tools.askModel.title", { ns: "shop" })}}' },
  definition: {
    name: "askModel",
    description: "Asks a model.",
    schema: { type: "object", properties: { query: { type: "string" } }, required: ["query"] },
  },
  invoke: async (ctx: Context, args: any, { writer }) => {
    const { sessionId, model, webSearch, messages } = ctx.action?.params?.values ?? {};
    const ai = ctx.app.pm.get("ai");
    const { provider } = await ai.aiManager.getLLMService({ ...model, webSearch: true, reasoning: { mode: "off" } });
    writer("asking");
    const answers = await Promise.all([args.query].map(async (query: string) => (await provider.invoke([{ role: "user", content: query }])).text));
    const deal = await ctx.app.db.getRepository("deal").findOne({ filterByTk: "7" });
    console.log(JSON.stringify({ sessionId, model, webSearch, messages, user: ctx.auth.user?.id, amount: deal?.get("amount") }));
    return { status: "success", content: answers };
  },
});
