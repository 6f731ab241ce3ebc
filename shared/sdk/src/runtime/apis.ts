/** What handlers call: checks arguments, asks the fleet, and gives answers the shape that the contract says. */
import type { InvocationContext, ScriptLogger } from "../context.js";
import type { AgentRunState as WireAgentRun, ProcessState as WireProcess } from "../generated/contract.js";
import type { DataApi } from "../records.js";
import type {
  AgentDelivery, AgentRunState, AgentsApi, AgentStartOptions, AgentStartResult, EnqueueOptions, EnqueueResult, JobsApi, ProcessesApi,
  ProcessInstanceState, ProcessStartOptions, ProcessStartResult,
} from "../runs.js";
import { agentStartPayload, enqueuePayload, processStartPayload, runId } from "./arguments.js";
import { dataOf } from "./data.js";
import { type Call, Execution, type ExecutionInfo, loggerOf, notSupported } from "./execution.js";
import { type ModelsApi, modelsOf } from "./models.js";

/** What an execution can do. */
export interface Apis {
  readonly processes: ProcessesApi;
  readonly agents: AgentsApi;
  readonly jobs: JobsApi;
  readonly data: DataApi;
  readonly models: ModelsApi;
  readonly log: ScriptLogger;
  readonly invocation: InvocationContext;
  /** Aborted when the time of the execution is over or its host stops. */
  readonly signal: AbortSignal;
  /** Whether a call was sent that may have changed something. */
  writesSent(): boolean;
}

/** What an execution can do, over a connection that `call` stands for. Sends nothing by itself. */
export function createApis(call: Call, info: ExecutionInfo): Apis {
  const execution = new Execution(call, info);
  return Object.freeze({
    processes: processesOf(execution),
    agents: agentsOf(execution),
    jobs: jobsOf(execution),
    data: dataOf(execution),
    models: modelsOf(execution),
    log: loggerOf(info),
    invocation: invocationOf(info),
    signal: info.signal ?? new AbortController().signal,
    writesSent: () => execution.wrote,
  });
}

function processesOf(execution: Execution): ProcessesApi {
  return Object.freeze({
    async start(processInfoId: string, options?: ProcessStartOptions): Promise<ProcessStartResult> {
      execution.mayWrite();
      const payload = processStartPayload(processInfoId, options);
      outcomeAllowed(execution, "onComplete", options?.onComplete);
      const { instanceId, duplicate } = (await execution.write("processes.start", payload)) as ProcessStartResult;
      return { instanceId, duplicate };
    },
    async get(instanceId: string): Promise<ProcessInstanceState> {
      execution.mayCall();
      return processState((await execution.read("processes.get", { instanceId: runId("instanceId", instanceId) })) as WireProcess);
    },
  });
}

function agentsOf(execution: Execution): AgentsApi {
  return Object.freeze({
    async start(agentId: string, options: AgentStartOptions): Promise<AgentStartResult> {
      execution.mayWrite();
      const payload = agentStartPayload(agentId, options);
      outcomeAllowed(execution, "onResult", options.onResult);
      const started = (await execution.write("agents.start", payload)) as AgentStartResult;
      return { runId: started.runId, duplicate: started.duplicate };
    },
    async get<R>(id: string): Promise<AgentRunState<R>> {
      execution.mayCall();
      return agentState<R>((await execution.read("agents.get", { runId: runId("runId", id) })) as WireAgentRun);
    },
  });
}

function jobsOf(execution: Execution): JobsApi {
  return Object.freeze({
    async enqueue(jobKey: string, payload?: unknown, options?: EnqueueOptions): Promise<EnqueueResult> {
      execution.mayWrite();
      const request = enqueuePayload(jobKey, payload, options);
      const { runId, duplicate } = (await execution.write("jobs.enqueue", request)) as EnqueueResult;
      return { runId, duplicate };
    },
  });
}

/** Jobs of a project run where the project is active: a session of local development has none of its own. */
function outcomeAllowed(execution: Execution, field: string, outcome: unknown): void {
  if (execution.info.source !== "development" || outcome === undefined) return;
  throw notSupported(field, `\`${field}\` is not available in local development.`);
}

/** Null where the fleet says nothing. */
function processState(state: WireProcess): ProcessInstanceState {
  const { instanceId, processId, processInfoId, startedAt = null, finishedAt = null } = state;
  return { instanceId, processId, processInfoId, state: state.state, startedAt, finishedAt };
}

function agentState<R>(run: WireAgentRun): AgentRunState<R> {
  const { runId, status, text = null, error = null, delivery = null } = run;
  return { runId, status, text, result: (run.result ?? null) as R | null, error, delivery: delivery === null ? null : deliveryOf(delivery) };
}

function deliveryOf(delivery: NonNullable<WireAgentRun["delivery"]>): AgentDelivery {
  const { newConversation, errorCode = null, chatSessionId = null, conversationId = null } = delivery;
  return { status: delivery.status as AgentDelivery["status"], errorCode, chatSessionId, conversationId, newConversation };
}

function invocationOf({ workspace = "", user = null }: ExecutionInfo): InvocationContext {
  const place = Object.freeze({ id: workspace });
  if (user === null) return Object.freeze({ identity: "system", workspace: place, user: null });
  const membership = Object.freeze({ personnelId: user });
  return Object.freeze({ identity: "user", workspace: place, user: Object.freeze({ accountId: user, membership }) });
}
