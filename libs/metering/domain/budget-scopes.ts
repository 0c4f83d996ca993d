import type { BudgetScope, ScopeKind, TaskLimits, WorkspaceScope } from '@antiphon/contracts/metering';

/** The limits of `[budgets]`: tokens and integer micro-USD, null for none. */
export interface BudgetLimits {
  readonly session: number | null;
  readonly daily: number | null;
  readonly monthly: number | null;
  readonly sessionMicroUsd: number | null;
  readonly dailyMicroUsd: number | null;
  readonly monthlyMicroUsd: number | null;
}

export const sessionScopeKey = (sessionId: string): string => `session/${sessionId}`;
export const agentScopeKey = (agentId: string): string => `agent/${agentId}`;

const utcDay = (now: string): string => now.slice(0, 10);
const utcMonth = (now: string): string => now.slice(0, 7);

/** Returns the keys of the day and the month at `now` (ISO 8601, UTC). */
export const periodKeysAt = (now: string): [day: string, month: string] => [
  `day/${utcDay(now)}`,
  `month/${utcMonth(now)}`,
];

/** Returns the day and month scopes at `now` (ISO 8601, UTC), with their limits. */
export const periodScopesAt = (limits: BudgetLimits, now: string): BudgetScope[] => {
  const [day, month] = periodKeysAt(now);
  return [
    { kind: 'day', key: day, limitTokens: limits.daily, limitMicroUsd: limits.dailyMicroUsd },
    { kind: 'month', key: month, limitTokens: limits.monthly, limitMicroUsd: limits.monthlyMicroUsd },
  ];
};

/**
 * Limits of one scope. Those of an agent are for it and its descendants together: a root's limits
 * are the budget of a tree.
 */
export interface ScopeLimits {
  readonly limitTokens: number | null;
  readonly limitMicroUsd: number | null;
}

/** Limits of workspace scopes that were set at run time. */
export type SetLimits = ReadonlyMap<WorkspaceScope, ScopeLimits>;

const FIELDS = {
  session: ['session', 'sessionMicroUsd'],
  day: ['daily', 'dailyMicroUsd'],
  month: ['monthly', 'monthlyMicroUsd'],
} as const satisfies Record<WorkspaceScope, readonly [keyof BudgetLimits, keyof BudgetLimits]>;

/** Returns the limits in force: those set at run time replace those of the configuration. */
export const limitsInForce = (configured: BudgetLimits, set: SetLimits): BudgetLimits =>
  [...set].reduce((limits, [scope, own]) => {
    const [tokens, microUsd] = FIELDS[scope];
    return { ...limits, [tokens]: own.limitTokens, [microUsd]: own.limitMicroUsd };
  }, configured);

/** Returns the scope of an agent's budget. */
export const agentScope = (agentId: string, limits: ScopeLimits): BudgetScope => ({
  kind: 'agent',
  key: agentScopeKey(agentId),
  ...limits,
});

/** Returns the scopes of the tasks that a call is part of, innermost first. */
export const taskScopes = (tasks: readonly TaskLimits[]): BudgetScope[] =>
  tasks.map(({ taskId, ...limits }) => ({ kind: 'task', key: `task/${taskId.toLowerCase()}`, ...limits }));

/**
 * Returns every scope of a call, narrowest first. `owners` has those of its tasks, then those of
 * its agent and the ancestors, the root last. Only owners with a limit have one. The time of the
 * reservation fixes the periods: a call that ends after midnight belongs to the day of its
 * admission.
 */
export const scopesAt = (
  limits: BudgetLimits,
  sessionId: string,
  now: string,
  owners: readonly BudgetScope[] = [],
): BudgetScope[] => [
  {
    kind: 'session',
    key: sessionScopeKey(sessionId),
    limitTokens: limits.session,
    limitMicroUsd: limits.sessionMicroUsd,
  },
  ...owners,
  ...periodScopesAt(limits, now),
];

const MONTH_LENGTHS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const isLeap = (year: number): boolean => (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
const daysIn = (year: number, month: number): number =>
  month === 2 && isLeap(year) ? 29 : (MONTH_LENGTHS[month - 1] ?? 31);
const midnight = (year: number, month: number, day: number): string =>
  `${String(year).padStart(4, '0')}-${String(month).padStart(2, '0')}-${String(day).padStart(2, '0')}T00:00:00.000Z`;

/** Returns the time when a period ends (ISO 8601, UTC); null for scopes that do not reset. */
export const resetsAt = (kind: ScopeKind, key: string): string | null => {
  if (kind !== 'day' && kind !== 'month') return null;
  const [year = 0, month = 1, day = 1] = key
    .slice(key.indexOf('/') + 1)
    .split('-')
    .map(Number);
  if (kind === 'day' && day < daysIn(year, month)) return midnight(year, month, day + 1);
  return month < 12 ? midnight(year, month + 1, 1) : midnight(year + 1, 1, 1);
};
