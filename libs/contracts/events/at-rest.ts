import { TURN_ENDS } from '../agent/turn-ends.js';

/** Event types of which each one that begins something is followed by exactly one that ends it. */
export interface BeginsAndEnds {
  readonly begins: readonly string[];
  readonly ends: readonly string[];
}

/** When an event stream of a category is at rest: everything that has begun in it has ended, so that it may be archived. */
export interface RestRule {
  readonly category: string;
  /** Streams with this beginning stay: they say what holds now, however old they are. */
  readonly retainedPrefix: string | null;
  readonly pairs: readonly BeginsAndEnds[];
}

/** Streams of other categories (definitions, bindings, keys) say what holds now, and stay. */
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
    category: 'budget',
    retainedPrefix: null,
    pairs: [
      { begins: ['BudgetReserved'], ends: ['BudgetSettled', 'BudgetReleased', 'BudgetExpired'] },
      { begins: ['BudgetScopeFrozen'], ends: ['BudgetScopeUnfrozen'] },
    ],
  },
];
