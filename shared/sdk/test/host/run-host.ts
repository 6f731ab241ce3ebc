/** Runs a host as its program does; a test may name a place at which it dies. */
import { onPoint } from "../../src/host/faults.js";
import { main } from "../../src/host/main.js";

const dies = process.env["TEST_DIES_AT"];
if (dies !== undefined) {
  onPoint((name) => {
    if (name === dies) process.kill(process.pid, "SIGKILL");
  });
}
const code = await main(process.argv.slice(2));
process.exitCode = code;
setTimeout(() => process.exit(code), 1_000).unref();
