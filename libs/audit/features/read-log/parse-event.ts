import { RunEvent, SessionEvent, SessionKeyBound } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import { BudgetEvent } from '@antiphon/contracts/metering';
import type { RecordedEvent } from '@antiphon/event-store';
import type { z } from 'zod';
import type { About } from '../audit-report.js';

export const eventsMatchContracts: About = {
  name: 'events-match-contracts',
  about: 'every session, run and budget event of a known type matches its contract',
  counts: 'events',
};

type Known = SessionEvent | RunEvent | BudgetEvent | SessionKeyBound;
type SessionKeyBound = z.infer<typeof SessionKeyBound>;

const listTypes = (schema: typeof SessionEvent | typeof RunEvent | typeof BudgetEvent): ReadonlySet<string> =>
  new Set(schema.options.map((option) => option.shape.type.value));

const SESSION_TYPES = listTypes(SessionEvent);
const RUN_TYPES = listTypes(RunEvent);
const BUDGET_TYPES = listTypes(BudgetEvent);

const findSchema = (event: RecordedEvent): z.ZodType<Known> | undefined => {
  if (event.category === 'budget') return BUDGET_TYPES.has(event.type) ? BudgetEvent : undefined;
  if (event.category === 'run') return RUN_TYPES.has(event.type) ? RunEvent : undefined;
  if (event.category !== 'session') return undefined;
  if (event.type === 'SessionKeyBound') return SessionKeyBound;
  return SESSION_TYPES.has(event.type) ? SessionEvent : undefined;
};

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

export const isSessionEvent = (content: Known): content is SessionEvent => SESSION_TYPES.has(content.type);
export const isRunEvent = (content: Known): content is RunEvent => RUN_TYPES.has(content.type);
export const isBudgetEvent = (content: Known): content is BudgetEvent => BUDGET_TYPES.has(content.type);
