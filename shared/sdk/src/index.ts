/** What project code imports. */
export type {
  CurrentUser, CurrentWorkspace, HandlerContext, InvocationContext, ScriptLogger,
} from "./context.js";
export {
  type ActionCaller, type ActionConfig, type ActionContext, type ActionDefinition, type ActionEffect, type ActionHandler,
  type ActionInfo, type ActionManifest, type ActionOptions, defineAction,
} from "./define/action.js";
export {
  defineJob, type JobConfig, type JobContext, type JobDefinition, type JobHandler, type JobInfo, type JobManifest, type JobSchedule,
} from "./define/job.js";
export type {
  BinaryResponseInit, RequestMethod, ResponseApi, ResponseInit, ScriptRequest, ScriptResponse,
} from "./define/response.js";
export {
  createRouter, defineRoute, type RouteConfig, type RouteDefinition, type RouterDefinition, type SandboxHandler,
  type ScriptRouter,
} from "./define/route.js";
export { defineScript, type ScriptConfig, type ScriptContext, type ScriptDefinition, type ScriptHandler } from "./define/script.js";
export {
  defineTools, type ToolArguments, type ToolDefinition, type ToolIntroduction, type ToolModelDefinition, type ToolPermission,
  type ToolRuntime, type ToolSchema, type ToolScope, type ToolsOptions,
} from "./define/tool.js";
export {
  defineTrigger, type TriggerConfig, type TriggerContext, type TriggerDefinition, type TriggerFilter, type TriggerFilterCondition,
  type TriggerFilterGroup, type TriggerHandler, type TriggerInfo, type TriggerManifest, type TriggerNewValues, type TriggerOldValues,
  type TriggerOperation, type TriggerRecord, type TriggerRunWhen, type TriggerTiming,
} from "./define/trigger.js";
export {
  CogoverApiError, type ErrorDetails, httpStatusOf, LockLostError, LockUnavailableError, NotFoundError, PermissionDeniedError,
  RateLimitError, RetryableError, StateConflictError, ValidationError,
} from "./errors.js";
export { crypto, type CryptoApi } from "./digest.js";
export { and, or } from "./filters.js";
export type { ErrorCode } from "./generated/contract.js";
export type * from "./records.js";
export type * from "./runs.js";
export { s } from "./schema/builder.js";
export type {
  ArrayOptions, InferSchema, InferShape, JsonSchema, NumberOptions, ObjectSchema, ObjectShape, Schema, SchemaProblem, SchemaResult,
  StringOptions,
} from "./schema/types.js";
export type {
  AiPlugin, ConversationValues, FindOptions, ModelProvider, Repository, RepositoryRecord, ToolContext as Context, ToolContext, ToolUser,
} from "./tools/types.js";
export { fetch, type CogoverFetchHeaders, type CogoverFetchInit, type CogoverFetchResponse } from "./web.js";
