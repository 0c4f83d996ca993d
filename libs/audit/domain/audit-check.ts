import type {
  AgentEvent,
  AgentMessageEvent,
  AgentTreeEvent,
  ChatEvent,
  FileTreeEvent,
  PlanEvent,
  RunEvent,
  SessionEvent,
  TaskEvent,
  TurnEndType,
} from '@antiphon/contracts/agent';
import type { BudgetEvent, BudgetLimitEvent } from '@antiphon/contracts/metering';
import type { StoredEvent } from '@antiphon/contracts/log';

/** Place of an event, as a finding names it. */
export type EventPlace = Pick<
  StoredEvent,
  'position' | 'workspace' | 'streamId' | 'streamVersion' | 'eventId'
>;

/** An event whose data has been parsed by its contract. */
export interface Parsed<Content> {
  readonly place: EventPlace;
  readonly content: Content;
  /** Epoch of the lease under which it was appended, if any. */
  readonly epoch: number | undefined;
  /** Time of its append, ISO 8601. Only events of sessions have it. */
  readonly recordedAt?: string;
}

/** A broken rule at an event, or something that has begun and not ended yet. */
export interface Finding {
  readonly kind: 'violation' | 'open';
  readonly at: EventPlace;
  readonly message: string;
}

/**
 * One run of a check. It takes events in the order that the check requires, and returns findings.
 */
export interface CheckRun<Input> {
  see(input: Input): Finding[];
  /** Returns the findings after the last event of the log, or of the event stream. */
  end(): Finding[];
  /** Returns the number of checked items (`AuditCheck.counts`). */
  count(): number;
  /** Returns the state for a later run as JSON. Only checks over the whole log have it. */
  save?(): unknown;
}

/** A rule about the log, as a fold. It keeps only the state that it needs. */
export interface AuditCheck<Input> {
  /** `kebab-case`, as reports show it. */
  readonly name: string;
  /** The rule in one sentence. */
  readonly about: string;
  /** The counted items, such as `turns`. */
  readonly counts: string;
  /** Starts a run, from the beginning or from the saved state of an earlier run. */
  start(saved?: unknown): CheckRun<Input>;
}

/** Starts a new run for each event stream and takes its events by version. */
export type SessionCheck = AuditCheck<Parsed<SessionEvent>>;
export type RunCheck = AuditCheck<Parsed<RunEvent>>;
export type ReservationCheck = AuditCheck<Parsed<BudgetEvent>>;
export type LifecycleCheck = AuditCheck<Parsed<AgentEvent>>;
export type TreeCheck = AuditCheck<Parsed<AgentTreeEvent>>;
export type TaskCheck = AuditCheck<Parsed<TaskEvent>>;
export type FileCheck = AuditCheck<Parsed<FileTreeEvent>>;
export type ChatCheck = AuditCheck<Parsed<ChatEvent>>;
export type PlanCheck = AuditCheck<Parsed<PlanEvent>>;
export type InboxCheck = AuditCheck<Parsed<AgentMessageEvent>>;
/** Takes the events of the whole log by position. */
export type MoneyCheck = AuditCheck<Parsed<SessionEvent | BudgetEvent>>;

/** Begin of a model call or a tool call. The audit reads no more of these events. */
export interface StepStart {
  readonly type: 'ModelCallStarted' | 'ToolCallRequested';
  readonly data: { readonly turnId: string; readonly attempt: number };
}
/** Events that the checks of agents along the whole log take. */
export type AgentFact =
  | AgentEvent
  | AgentTreeEvent
  | AgentMessageEvent
  | TaskEvent
  | StepStart
  | Extract<SessionEvent, { type: 'SessionStarted' | 'TurnRequested' | 'MessagesReceived' }>
  | Extract<BudgetEvent, { type: 'BudgetReserved' }>
  | BudgetLimitEvent;
/** Takes the events of the whole log by position. */
export type AgentsCheck = AuditCheck<Parsed<AgentFact>>;

const TURN_ENDS: Readonly<Record<TurnEndType, true>> = {
  TurnCompleted: true,
  TurnFailed: true,
  TurnCancelled: true,
};

/**
 * Returns true for the type of an event that ends a turn. The audit judges by its own list (ADR
 * 44).
 */
export const isTurnEnd = (type: string): type is TurnEndType => Object.hasOwn(TURN_ENDS, type);

export const violation = (at: EventPlace, message: string): Finding => ({ kind: 'violation', at, message });
export const open = (at: EventPlace, message: string): Finding => ({ kind: 'open', at, message });
