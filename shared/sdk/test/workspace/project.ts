/** Code of a project that was written for other packages, with objects that the project has declared. */
import { and, defineScript, defineTrigger } from "@cogover/sdk";
import type { DataApi, WorkspaceObjects } from "@cogover/sdk";
import type { Context } from "@nocobase/actions";
import { defineTools } from "@nocobase/ai";
import { defineJob, type CogoverRecordId } from "@runfleet/sdk";

type Tier = NonNullable<WorkspaceObjects["lead"]["tier"]>;

async function read(data: DataApi, id: CogoverRecordId): Promise<Tier | null> {
  const leads = data.object("lead");
  const lead = await leads.records.get(id, { fields: ["tier", "score"] });
  const score: number | null | undefined = lead?.fields.score;
  await leads.records.update(id, { name: "n", tier: "gold", owner: "P1", tags: ["a"], score: null });
  await leads.records.query({ where: and(leads.fields.tier.eq("gold"), leads.fields.id.eq(id)), limit: 5 });
  await data.object("order").records.query({ filter: { status: "new" } });
  // @ts-expect-error there is no such word
  await data.object("order").records.query({ filter: { status: "open" } });
  // @ts-expect-error there is no such object
  data.object("leed");
  // @ts-expect-error there is no such field
  await leads.records.update(id, { nam: "n" });
  // @ts-expect-error there is no such word
  await leads.records.update(id, { tier: "bronze" });
  // @ts-expect-error there is no such field
  await leads.records.get(id, { fields: ["nam"] });
  // @ts-expect-error a score is a number
  leads.fields.score.eq("5");
  void score;
  return lead?.fields.tier ?? null;
}

export default defineScript<{ id: CogoverRecordId }, { tier: Tier | null }>(async ({ input, data }) => ({ tier: await read(data, input.id) }));

export const triggers = [
  defineTrigger({ key: "t", object: "order", timing: "afterChange", operations: ["update"], fields: ["status"] }, ({ records }) => {
    for (const record of records) {
      const status: "new" | "confirmed" | null | undefined = record.new.status;
      void [status, record.old.status];
    }
  }),
  // @ts-expect-error there is no such field
  defineTrigger({ key: "t", object: "order", timing: "afterChange", operations: ["update"], fields: ["stat"] }, () => {}),
];

export const jobs = [defineJob<{ id: CogoverRecordId }>({ key: "j" }, async ({ payload, data }) => {
  if (payload !== null) await read(data, payload.id);
})];

export const tool = defineTools({
  scope: "GENERAL",
  definition: { name: "t", description: "d" },
  invoke: async (ctx: Context) => ctx.action.params.values?.sessionId,
});
