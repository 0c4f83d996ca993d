import type { LogEvent } from '@antiphon/client';
import { useEffect, useMemo } from 'react';
import { startOfDayBefore } from '../../data/day-before.js';
import { isAbout } from '../../data/event-pages.js';
import { serverNow } from '../../data/gateway.js';
import { useIdentity } from '../../data/identity.js';
import { createStore, useStore } from '../../data/store.js';
import { useRead, type Read } from '../../data/use-read.js';
import { FAILURE_TYPES, hasFailedTask } from './from-failures.js';
import { attentionItems, shownItems, type AttentionItem, type PutAway } from './attention-items.js';

const NAME = 'antiphon.attention';
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const readPutAway = (): PutAway => {
  try {
    const kept = JSON.parse(localStorage.getItem(NAME) ?? '{}') as PutAway;
    return Object.fromEntries(Object.entries(kept).filter(([, until]) => until > Date.now()));
  } catch {
    return {};
  }
};
const putAway = createStore<PutAway>(readPutAway());
const setPutAway = (next: PutAway): void => {
  localStorage.setItem(NAME, JSON.stringify(next));
  putAway.set(next);
};

/** Hides a failure for a day, after which it is not listed. Hides a thing that holds for an hour. */
export const hideItem = ({ id, isPast }: AttentionItem): void =>
  setPutAway({ ...putAway.get(), [id]: Date.now() + (isPast ? DAY_MS : HOUR_MS) });

export const showAllItems = (): void => setPutAway({});

/** Messages between agents change none of what is listed. */
const NO_MESSAGES: ReadonlySet<string> = new Set(['AgentMessageSent', 'InboxRead']);
const isOfAgents = ({ category, type }: LogEvent): boolean => category === 'agent' && !NO_MESSAGES.has(type);
const isOfHealth = (event: LogEvent): boolean => isOfAgents(event) || event.type === 'TurnFailed';
const isOfTasks = (event: LogEvent): boolean => event.category === 'task' || isOfAgents(event);
const isOfFailures = ({ type, severity }: LogEvent): boolean => severity === 'error' || type === 'TaskEnded';
const isOfPlans = ({ category, type, data }: LogEvent): boolean => {
  const { path } = (data ?? {}) as { readonly path?: unknown };
  return category === 'plan' || (type.startsWith('File') && String(path).endsWith('.plan.md'));
};
const SPENDS: ReadonlySet<string> = new Set(['TurnCompleted', 'TurnFailed', 'TurnCancelled']);
const isOfBudgets = ({ category, type }: LogEvent): boolean => category === 'budget' || SPENDS.has(type);

/** Interval of reads that no event announces, ms. */
const CHECK_MS = 120_000;

/** Repeats reads that no event announces, while the tab is shown. */
const useChecks = (...reads: readonly Pick<Read<unknown>, 'refresh'>[]): void => {
  const refreshes = reads.map(({ refresh }) => refresh);
  useEffect(() => {
    const check = (): void => {
      if (document.visibilityState === 'visible') for (const refresh of refreshes) refresh();
    };
    const timer = setInterval(check, CHECK_MS);
    return () => clearInterval(timer);
  }, refreshes);
};

/** Reads all sources in the present: a decision is about now. */
const useSources = () => {
  const { permissions } = useIdentity();
  const now = (right: string, changesOn?: (event: LogEvent) => boolean) => ({
    ...(changesOn ? { changesOn } : {}),
    ...{ hasPast: false, isOff: !(permissions ?? []).includes(right) },
  });
  const since = startOfDayBefore(new Date().toISOString());
  const lastDay = { ...(since && { since }), limit: 100, order: 'desc' } as const;
  const failing = { query: { type: FAILURE_TYPES, ...lastDay } } as const;
  const failures = useRead('readEvents', failing, now('events:read', isOfFailures));
  const retried = { query: { state: 'failed', kind: 'task', retried: 'true' } } as const;
  const tried = now('runs:read', isOfTasks);
  const hasFailed = hasFailedTask({ failures: failures.data });
  const sources = {
    failures,
    retried: useRead('listTasks', retried, { ...tried, isOff: tried.isOff || !hasFailed }),
    approvals: useRead(
      'listApprovals',
      { query: { status: 'pending', limit: 50 } },
      now('approvals:read', ({ type }) => type.startsWith('Approval')),
    ),
    health: useRead('health', {}, now('status:read', isOfHealth)),
    budgets: useRead('readBudgets', {}, now('budgets:read', isOfBudgets)),
    stopped: useRead('listDeadLetters', { query: { limit: 20 } }, now('events:read')),
    tasks: useRead('listTasks', { query: { state: 'queued', kind: 'task' } }, now('runs:read', isOfTasks)),
    plans: useRead('listPlans', { query: { limit: 100 } }, now('runs:read', isOfPlans)),
    roots: useRead('listRoots', { query: { limit: 5 } }, now('events:read')),
    keys: useRead('listKeys', { query: { limit: 200 } }, now('keys:manage', isAbout('key', 'workspace'))),
  };
  useChecks(sources.health, sources.stopped, sources.roots);
  return sources;
};

/** Items that need attention now, without those that this browser has put away. */
export interface Attention {
  readonly items: readonly AttentionItem[];
  readonly hidden: number;
  readonly isLoading: boolean;
  /** Reads that failed for another reason than a missing right. */
  readonly failed: readonly Read<unknown>[];
}

/** Follows all that needs attention. Parts of the page that use it share its reads. */
export const useAttention = (): Attention => {
  const { permissions } = useIdentity();
  const sources = useSources();
  const away = useStore(putAway);
  const reads: readonly Read<unknown>[] = Object.values(sources);
  const all = useMemo(
    () =>
      attentionItems(
        Object.fromEntries(Object.entries(sources).map(([name, { data }]) => [name, data])),
        serverNow(),
      ),
    reads.map(({ data }) => data),
  );
  const items = shownItems(all, away, Date.now());
  return {
    ...{ items, hidden: all.length - items.length },
    isLoading: permissions === null || reads.some(({ isLoading }) => isLoading),
    failed: reads.filter(({ problem }) => problem !== null && problem.status !== 403),
  };
};
