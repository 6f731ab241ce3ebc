/** A tool that waits as long as there is the file that HOLD names. */
import { existsSync } from "node:fs";

import { defineTools } from "@nocobase/ai";

export default defineTools({
  scope: "SPECIFIED",
  defaultPermission: "ALLOW",
  definition: { name: "hold", description: "Waits.", schema: { type: "object", properties: {} } },
  invoke: async (ctx) => {
    ctx.log.info("begun", { by: "tool" });
    while (existsSync(String(process.env["HOLD"]))) await new Promise((resolve) => setTimeout(resolve, 50));
    return { status: "success", content: "held" };
  },
});
