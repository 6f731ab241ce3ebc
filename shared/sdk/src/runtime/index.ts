/** What a host of project code needs. Not for project code. */
export { errorFrom, httpStatusOf, type ErrorReply } from "../errors.js";
export { type Apis, createApis } from "./apis.js";
export { collect, type Definition, type LoadedModule, type Project, type ProjectProblem } from "./collect.js";
export type { Call, ExecutionInfo, LogLevel } from "./execution.js";
export { type Failure, failureOf } from "./failure.js";
export { type Ending, type Invocation, invoke, VALUE_BYTES_MAX } from "./invoke.js";
export { manifest, type ProjectManifest } from "./manifest.js";
export type { ModelMessage, ModelsApi } from "./models.js";
