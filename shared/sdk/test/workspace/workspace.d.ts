/** What a project says about its objects. */
import type { RecordReference } from "@cogover/sdk";

declare module "@cogover/sdk" {
  interface WorkspaceObjects {
    lead: {
      name: string;
      score: number | null;
      tier: "gold" | "silver" | null;
      owner: RecordReference<"personnel"> | null;
      tags: readonly string[] | null;
    };
    order: { status: "new" | "confirmed" };
  }
}
