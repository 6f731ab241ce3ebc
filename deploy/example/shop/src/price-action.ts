import { defineAction, s } from "@cogover/sdk";

/** An action that only reads: Processes and agents may call it without asking anybody. */
export default defineAction({
  key: "discounted_price",
  label: "Price after discount",
  effect: "read",
  input: s.object({ amount: s.number({ minimum: 0 }), discount: s.number({ minimum: 0, maximum: 100 }) }),
  output: s.object({ price: s.number() }),
  handler: (_, { amount, discount }) => ({ price: Math.round(amount * (100 - discount)) / 100 }),
});
