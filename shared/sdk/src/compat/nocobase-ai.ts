/** Stands in for `@nocobase/ai`: tools that were written for it are loaded unchanged. */
export { defineTools, defineTools as definedTools, type ToolDefinition, type ToolsOptions, type ToolRuntime } from "../define/tool.js";
