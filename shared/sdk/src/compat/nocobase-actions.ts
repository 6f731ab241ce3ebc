/** Stands in for `@nocobase/actions`: the context that tools were written for. Types only. */
import type { ToolContext } from "../tools/types.js";

/** What a tool is given. */
export type Context = ToolContext;
/** Continues with what comes after a handler. */
export type Next = () => Promise<unknown>;
