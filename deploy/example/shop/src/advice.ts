import { s } from "@cogover/sdk";

/** What the agent has to say about a deal. Its answer has to fit, or its run ends with RESULT_SCHEMA_MISMATCH. */
export const advice = s.object({
  nextStep: s.string({ maxLength: 500 }),
  urgency: s.enum(["now", "this week", "later"]),
  discount: s.number({ minimum: 0, maximum: 100 }).optional(),
});
