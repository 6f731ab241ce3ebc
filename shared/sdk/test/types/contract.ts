/** The public types and the generated ones say the same: a change of the contract that is not made here does not compile. */
import type * as wire from "../../src/generated/contract.js";
import type {
  AgentDelivery, AgentDeliveryTarget, AgentRecordReference, AgentResultJobPayload, AgentRunError, AgentRunState, AgentStartOptions,
  AgentStartResult, AgentUsage, OutcomeJobOptions, ProcessCompletion, ProcessCompletionJobPayload, ProcessInstanceState,
  ProcessStartOptions, ProcessStartResult,
} from "../../src/index.js";
import { type Equal, holds } from "./equal.js";

type SameNames<A, B> = Equal<keyof A, keyof B>;
type Fits<A, B> = A extends B ? true : false;
type Plain<T> = T extends readonly (infer Item)[] ? Plain<Item>[]
  : T extends object ? { -readonly [Name in keyof T]: Plain<T[Name]> }
  : T;

holds<SameNames<ProcessStartOptions & { processInfoId: string }, wire.ProcessStart>>();
holds<Fits<Plain<ProcessStartOptions> & { processInfoId: string }, wire.ProcessStart>>();
holds<Fits<Omit<wire.ProcessStart, "processInfoId">, ProcessStartOptions>>();

holds<SameNames<AgentStartOptions & { agentId: string }, wire.AgentStart>>();
holds<Fits<Plain<Omit<AgentStartOptions, "resultSchema">> & { agentId: string }, wire.AgentStart>>();
holds<SameNames<AgentRecordReference, wire.AgentRecord>>();
holds<Fits<wire.AgentRecord, AgentRecordReference>>();
holds<SameNames<AgentDeliveryTarget, wire.DeliverTo>>();
holds<Fits<wire.DeliverTo, AgentDeliveryTarget>>();
holds<SameNames<OutcomeJobOptions, wire.OutcomeJob>>();
holds<Equal<NonNullable<AgentStartOptions["runAs"]>, wire.RunAs>>();
holds<Equal<NonNullable<AgentStartOptions["approvalPolicy"]>, wire.ApprovalPolicy>>();

holds<SameNames<ProcessStartResult, wire.ProcessStarted>>();
holds<SameNames<ProcessInstanceState, wire.ProcessState>>();
holds<SameNames<AgentStartResult, wire.AgentStarted>>();
holds<SameNames<AgentRunState, wire.AgentRunState>>();
holds<SameNames<AgentRunError, wire.AgentRunError>>();
holds<SameNames<AgentDelivery, wire.AgentDelivery>>();
holds<SameNames<AgentUsage, wire.AgentUsage>>();
holds<Equal<Plain<AgentUsage>, wire.AgentUsage>>();

holds<SameNames<ProcessCompletionJobPayload, wire.ProcessCompletion>>();
holds<SameNames<ProcessCompletion, wire.EndedProcess>>();
holds<SameNames<AgentResultJobPayload, wire.AgentResult>>();
holds<SameNames<AgentResultJobPayload["agentRun"], wire.EndedAgentRun>>();
