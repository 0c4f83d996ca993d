import type { z } from 'zod';
import {
  AgentEvent,
  AgentMessageEvent,
  AgentTreeEvent,
  ChannelMessageEvent,
  ChannelPeerEvent,
  ChatEvent,
  FileErasureEvent,
  FileTreeEvent,
  PlanEvent,
  ProviderEvent,
  RunEvent,
  SessionEvent,
  SessionKeyBound,
  TaskEvent,
  TURN_ENDS,
  WorkflowEvent,
} from '../agent/index.js';
import { KeyEvent, WorkspaceEvent } from '../keys/index.js';
import { createUpcast } from '../log/upcast.js';
import type { Upcaster } from '../log/upcast.js';
import { BudgetEvent, BudgetLimitEvent } from '../metering/index.js';
import { RemoteToolEvent } from '../sandbox/index.js';
import { PluginEvent } from '../sandbox/plugin-events.js';
import { McpEvent } from '../sandbox/mcp-events.js';

/** One event type in its current schema version. */
export interface EventContract {
  readonly category: string;
  readonly type: string;
  readonly schemaVersion: number;
  /** Schema of `{type, schemaVersion, data}`. */
  readonly schema: z.ZodType;
  /** Top-level names of its data. */
  readonly fields: readonly string[];
}

type EventSchema =
  | (typeof BudgetLimitEvent.options)[number]
  | typeof SessionKeyBound
  | (typeof SessionEvent.options)[number]
  | OtherSchema;
type OtherSchema = (
  | typeof AgentEvent
  | typeof AgentMessageEvent
  | typeof AgentTreeEvent
  | typeof FileErasureEvent
  | typeof FileTreeEvent
  | typeof PlanEvent
  | typeof PluginEvent
  | typeof McpEvent
  | typeof ProviderEvent
  | typeof ChannelMessageEvent
  | typeof ChannelPeerEvent
  | typeof ChatEvent
  | typeof RunEvent
  | typeof TaskEvent
  | typeof WorkflowEvent
  | typeof BudgetEvent
  | typeof KeyEvent
  | typeof RemoteToolEvent
  | typeof WorkspaceEvent
)['options'][number];

const contractsOf = (category: string, schemas: readonly EventSchema[]): EventContract[] =>
  schemas.map((schema) => ({
    category,
    type: schema.shape.type.value,
    schemaVersion: schema.shape.schemaVersion.value,
    schema,
    fields: Object.keys(schema.shape.data.shape),
  }));

/**
 * Every event type that this version writes. `golden/` holds a payload of each, in every schema
 * version.
 */
export const EVENT_CONTRACTS: readonly EventContract[] = [
  ...contractsOf('session', [...SessionEvent.options, SessionKeyBound]),
  ...contractsOf('agent', [...AgentEvent.options, ...AgentTreeEvent.options, ...AgentMessageEvent.options]),
  ...contractsOf('chat', ChatEvent.options),
  ...contractsOf('channel', [...ChannelMessageEvent.options, ...ChannelPeerEvent.options]),
  ...contractsOf('file', FileTreeEvent.options),
  ...contractsOf('file', FileErasureEvent.options),
  ...contractsOf('task', TaskEvent.options),
  ...contractsOf('plan', PlanEvent.options),
  ...contractsOf('provider', ProviderEvent.options),
  ...contractsOf('run', RunEvent.options),
  ...contractsOf('workflow', WorkflowEvent.options),
  ...contractsOf('budget', [...BudgetEvent.options, ...BudgetLimitEvent.options]),
  ...contractsOf('plugin', RemoteToolEvent.options),
  ...contractsOf('key', KeyEvent.options),
  ...contractsOf('workspace', WorkspaceEvent.options),
  ...contractsOf('plugin', PluginEvent.options),
  ...contractsOf('plugin', McpEvent.options),
];

const causeOfText = (text: unknown): object | null => (text === null ? null : { kind: 'text', text });

/** Puts the recorded text of a fact into its cause. `TurnFailed` had both in its first version. */
const toCause: Upcaster['up'] = ({ message, ...data }) => ({ cause: causeOfText(message), ...data });

/** Puts the recorded texts of the strikes of a task into their causes. */
const toCauses: Upcaster['up'] = ({ strikes, ...data }) => ({
  ...data,
  strikes: Array.isArray(strikes) ? strikes.map(causeOfText) : strikes,
});

/**
 * Steps from older schema versions to the current one. To change an event type incompatibly: raise
 * its `schemaVersion`, add the step here, keep the old golden payload and add one of the new
 * version.
 */
export const UPCASTERS: readonly Upcaster[] = [
  ...[
    'ModelCallAborted',
    'ToolCallFailed',
    'ToolCallUnknown',
    'ApprovalDenied',
    'ApprovalExpired',
    'ApprovalVoided',
    'AnswerReturned',
    'TurnFailed',
    'TaskAttemptFailed',
    'TaskFailed',
    'TaskRequeued',
    'WorkflowRefused',
    'PlanStepFailed',
    'PlanRunEnded',
  ].map((type) => ({ type, from: 1, up: toCause })),
  { type: 'TaskEnded', from: 1, up: toCauses },
];

/**
 * Upcasts stored content to the version that this release knows. Every reader of content calls it.
 */
export const upcast = createUpcast(UPCASTERS);

const VERSIONS = new Map(EVENT_CONTRACTS.map(({ type, schemaVersion }) => [type, schemaVersion]));

/** Returns the current schema version of an event type, or undefined for an unknown type. */
export const currentFormOf = (type: string): number | undefined => VERSIONS.get(type);

/** Event types of which each `begins` event is followed by exactly one `ends` event. */
export interface BeginsAndEnds {
  readonly begins: readonly string[];
  readonly ends: readonly string[];
}

/**
 * Condition under which a stream of a category may be archived: every `begins` event has its `ends`
 * event.
 */
export interface RestRule {
  readonly category: string;
  /** Prefix of streams that are never archived, because they hold current state. */
  readonly retainedPrefix: string | null;
  readonly pairs: readonly BeginsAndEnds[];
  /** Function of the database that returns true for a stream that stays: (workspace, stream). */
  readonly staysIf?: string;
  /** Prefixes of the streams of messages: those that every reader has read leave, the others stay. */
  readonly messagePrefixes?: readonly string[];
}

/**
 * Rules of the categories that retention archives. Other categories hold current state and stay in
 * the log.
 */
export const REST_RULES: readonly RestRule[] = [
  {
    category: 'session',
    retainedPrefix: 'session-key-',
    pairs: [{ begins: ['TurnRequested'], ends: TURN_ENDS }],
  },
  {
    category: 'run',
    retainedPrefix: null,
    pairs: [{ begins: ['RunStarted'], ends: ['RunCompleted', 'RunFailed', 'RunCancelled'] }],
  },
  {
    category: 'task',
    retainedPrefix: null,
    pairs: [{ begins: ['TaskQueued'], ends: ['TaskEnded'] }],
    // The budget of a task limits the tasks below it.
    staysIf: 'antiphon_has_open_subtask',
  },
  {
    category: 'budget',
    retainedPrefix: null,
    pairs: [
      { begins: ['BudgetReserved'], ends: ['BudgetSettled', 'BudgetReleased', 'BudgetExpired'] },
      { begins: ['BudgetScopeFrozen'], ends: ['BudgetScopeUnfrozen'] },
    ],
  },
  {
    category: 'agent',
    retainedPrefix: null,
    pairs: [],
    messagePrefixes: ['agent-inbox-', 'agent-topic-'],
  },
];
