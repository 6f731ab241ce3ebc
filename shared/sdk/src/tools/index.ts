/** What a host of tools needs. Not for project code. */
export { toolContext, type ToolCallInfo } from "./context.js";
export { invokeTool, type ToolCall, type ToolResult } from "./invoke.js";
export { type LoadOptions, loadTools, type ToolProblem } from "./load.js";
export { type PreparedTool, prepareTool, TOOL_NAME, type ToolFile } from "./prepare.js";
export { type Texts, textsOf, translated } from "./texts.js";
