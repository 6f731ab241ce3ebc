import { defineTools } from "@nocobase/ai";

/** Every agent has it, and it asks nobody: it only calculates. Its name is that of this folder, its description the text beside it. */
export default defineTools({
  scope: "GENERAL",
  defaultPermission: "ALLOW",
  introduction: { title: "Margin of a deal" },
  definition: {
    name: "deal-margin",
    description: "",
    schema: {
      type: "object",
      properties: { amount: { type: "number", minimum: 0 }, cost: { type: "number", minimum: 0, default: 0 } },
      required: ["amount"],
      additionalProperties: false,
    },
  },
  invoke: (_ctx, args, { writer }) => {
    const { amount, cost = amount * 0.8 } = args as { amount: number; cost?: number };
    writer("calculating the margin");
    if (amount === 0) return { status: "error", content: "A deal without an amount has no margin." };
    return { status: "success", content: { margin: Math.round(((amount - cost) / amount) * 1_000) / 10, unit: "percent" } };
  },
});
