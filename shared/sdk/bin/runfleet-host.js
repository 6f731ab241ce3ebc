#!/usr/bin/env node
import { main } from "../dist/host/main.js";

// What has been written is written before the process ends; nothing else is waited for.
const code = await main(process.argv.slice(2));
process.exitCode = code;
setTimeout(() => process.exit(code), 1_000).unref();
