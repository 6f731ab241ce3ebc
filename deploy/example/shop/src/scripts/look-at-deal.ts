import { defineScript, ValidationError } from "@cogover/sdk";
import { advice } from "../advice";

interface Deal {
  readonly id: string;
  readonly amount: number;
  readonly customerTier?: "gold" | "silver" | "none";
}

/** Nobody has checked what a script gets. */
function dealOf(input: unknown): Deal {
  const deal = (input ?? {}) as Partial<Deal>;
  if (typeof deal.id !== "string" || !/^[A-Za-z0-9]{1,32}$/.test(deal.id)) throw new ValidationError("`id` names no deal.", { field: "id" });
  if (typeof deal.amount !== "number") throw new ValidationError("`amount` is a number.", { field: "amount" });
  return { customerTier: "none", ...deal } as Deal;
}

/**
 * Starts the Process that decides about a discount, and an agent that says what to do next. Neither is waited for: what comes of
 * them goes to the jobs `discount_decided` and `deal_coached`. The keys make a second call for the same deal start nothing more.
 */
export default defineScript({ name: "look-at-deal" }, async ({ input, processes, agents, log }) => {
  const deal = dealOf(input);
  const decision = await processes.start("approve-discount", {
    input: { amount: deal.amount, customerTier: deal.customerTier },
    instanceName: `Discount for deal ${deal.id}`,
    idempotencyKey: `deal:${deal.id}:discount`,
    onComplete: { job: "discount_decided", payload: { deal: deal.id } },
  });
  const coach = await agents.start("deal-coach", {
    instruction: "Say what to do next about this deal, as advice. Ask for its margin first.",
    variables: { company: "Northwind", amount: deal.amount },
    records: [{ objectSlug: "deal", recordId: deal.id }],
    resultSchema: advice,
    idempotencyKey: `deal:${deal.id}:advice`,
    onResult: { job: "deal_coached", payload: { deal: deal.id } },
    deliverTo: { personnelId: "ada", conversation: "latest", title: "Your deals" },
  });
  log.info("looking at a deal", { decision: decision.instanceId, coach: coach.runId });
  return { decision: decision.instanceId, coach: coach.runId, again: decision.duplicate && coach.duplicate };
});
