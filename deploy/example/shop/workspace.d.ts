/** What the objects of this workspace hold: with it, `data.object("deal")` knows its fields. */
import type {} from "@cogover/sdk";

declare module "@cogover/sdk" {
  interface WorkspaceObjects {
    deal: { customer: string; amount: number; stage: string };
  }
}
