/** A tool that waits as long as there is a file of this name below the folder of the project. */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { defineTools } from "@nocobase/ai";

const HOLD = fileURLToPath(new URL("../../../hold", import.meta.url));

export default defineTools({
  scope: "SPECIFIED",
  defaultPermission: "ALLOW",
  definition: { name: "hold", description: "Waits.", schema: { type: "object", properties: {} } },
  invoke: async (ctx) => {
    ctx.log.info("begun", { by: "tool" });
    while (existsSync(HOLD)) await new Promise((resolve) => setTimeout(resolve, 50));
    return { status: "success", content: "held" };
  },
});
