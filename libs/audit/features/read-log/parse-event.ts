import {
  AgentEvent,
  AgentMessageEvent,
  AgentTreeEvent,
  ChatEvent,
  FileErasureEvent,
  FileTreeEvent,
  PlanEvent,
  ProviderEvent,
  RunEvent,
  SessionEvent,
  SessionKeyBound,
  TaskEvent,
} from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import { BudgetEvent, BudgetLimitEvent } from '@antiphon/contracts/metering';
import type { RecordedEvent } from '@antiphon/event-store';
import type { z } from 'zod';
import type { About } from '../audit-report.js';

export const eventsMatchContracts: About = {
  name: 'events-match-contracts',
  about:
    'every session, run, budget, agent, task, file, chat, plan and provider event of a known type matches its contract',
  counts: 'events',
};

type Known =
  | SessionEvent
  | RunEvent
  | BudgetEvent
  | BudgetLimitEvent
  | SessionKeyBound
  | AgentEvent
  | AgentTreeEvent
  | AgentMessageEvent
  | FileTreeEvent
  | FileErasureEvent
  | ChatEvent
  | PlanEvent
  | ProviderEvent
  | TaskEvent;
type SessionKeyBound = z.infer<typeof SessionKeyBound>;
type Union =
  | typeof SessionEvent
  | typeof RunEvent
  | typeof BudgetEvent
  | typeof BudgetLimitEvent
  | typeof AgentEvent
  | typeof AgentTreeEvent
  | typeof AgentMessageEvent
  | typeof FileTreeEvent
  | typeof FileErasureEvent
  | typeof ChatEvent
  | typeof PlanEvent
  | typeof ProviderEvent
  | typeof TaskEvent;

const listTypes = (schema: Union): ReadonlySet<string> =>
  new Set(schema.options.map((option) => option.shape.type.value));

/** Event types of one contract, and its schema. */
const contract = (schema: Union) => ({ types: listTypes(schema), schema: schema as z.ZodType<Known> });
const SESSION = contract(SessionEvent);
const RUN = contract(RunEvent);
const BUDGET = contract(BudgetEvent);
const AGENT = contract(AgentEvent);
const TREE = contract(AgentTreeEvent);
const MESSAGE = contract(AgentMessageEvent);
const PLAN = contract(PlanEvent);
const PROVIDER = contract(ProviderEvent);
const TASK = contract(TaskEvent);
const FILE_TREE = contract(FileTreeEvent);
const ERASURE = contract(FileErasureEvent);
const CHAT = contract(ChatEvent);
const single = (type: string, schema: z.ZodType<Known>) => ({ types: new Set([type]), schema });
const LIMIT = contract(BudgetLimitEvent);
const KEY_BOUND = single('SessionKeyBound', SessionKeyBound);

/** Contracts by category. Types are unique within one. */
const CONTRACTS: Readonly<Record<string, readonly ReturnType<typeof contract>[]>> = {
  session: [SESSION, KEY_BOUND],
  run: [RUN],
  budget: [BUDGET, LIMIT],
  agent: [AGENT, TREE, MESSAGE],
  plan: [PLAN],
  provider: [PROVIDER],
  task: [TASK],
  file: [FILE_TREE, ERASURE],
  chat: [CHAT],
};

const findSchema = ({ category, type }: RecordedEvent): z.ZodType<Known> | undefined =>
  CONTRACTS[category]?.find(({ types }) => types.has(type))?.schema;

export type ParseResult =
  | { readonly kind: 'known'; readonly content: Known }
  /** An unknown category, or a type of a newer version. */
  | { readonly kind: 'foreign' }
  | { readonly kind: 'malformed'; readonly reason: string };

/** Parses an event of a known type. Never throws. */
export const parseEvent = (event: RecordedEvent): ParseResult => {
  const schema = findSchema(event);
  if (!schema) return { kind: 'foreign' };
  const { type, schemaVersion, data } = upcast(event);
  const parsed = schema.safeParse({ type, schemaVersion, data });
  if (parsed.success) return { kind: 'known', content: parsed.data };
  const [issue] = parsed.error.issues;
  return {
    kind: 'malformed',
    reason: `${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'does not match'}`,
  };
};

export const isSessionEvent = (content: Known): content is SessionEvent => SESSION.types.has(content.type);
export const isRunEvent = (content: Known): content is RunEvent => RUN.types.has(content.type);
export const isBudgetEvent = (content: Known): content is BudgetEvent => BUDGET.types.has(content.type);
export const isLimitEvent = (content: Known): content is BudgetLimitEvent => LIMIT.types.has(content.type);
export const isAgentEvent = (content: Known): content is AgentEvent => AGENT.types.has(content.type);
export const isTreeEvent = (content: Known): content is AgentTreeEvent => TREE.types.has(content.type);
export const isMessageEvent = (content: Known): content is AgentMessageEvent =>
  MESSAGE.types.has(content.type);
export const isFileTreeEvent = (content: Known): content is FileTreeEvent =>
  FILE_TREE.types.has(content.type);
export const isChatEvent = (content: Known): content is ChatEvent => CHAT.types.has(content.type);
export const isPlanEvent = (content: Known): content is PlanEvent => PLAN.types.has(content.type);
export const isTaskEvent = (content: Known): content is TaskEvent => TASK.types.has(content.type);
