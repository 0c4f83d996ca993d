import type { LogEvent, RouteName, RouteReply } from '@antiphon/client';
import { pageOf } from '../../data/event-pages.js';
import { textOf, withMessage, type Fields } from '../../data/read-fields.js';
import { countOf, formatUsd, wordsOfType } from '../../ui/format.js';

/** Something that a person should look at, or decide. */
export interface AttentionItem {
  /** Stable for as long as it is the same thing; another one for a newer failure of a group. */
  readonly id: string;
  readonly tone: 'bad' | 'warn';
  readonly title: string;
  readonly reason: string;
  /** Time since which it holds; null where it is not known. */
  readonly at: string | null;
  readonly to: string;
  readonly action: string;
  /** True for a failure that has happened, which a person may put away. Others hold until solved. */
  readonly isPast: boolean;
}

type Reply<N extends RouteName> = RouteReply<N> | undefined;

/** Replies of the API from which the items follow; undefined for one that has not arrived. */
export interface AttentionReads {
  readonly approvals?: Reply<'listApprovals'>;
  readonly agents?: Reply<'listAgents'>;
  readonly health?: Reply<'health'>;
  readonly budgets?: Reply<'readBudgets'>;
  readonly failures?: Reply<'readEvents'>;
  readonly stopped?: Reply<'listDeadLetters'>;
}

const agentPage = (id: string): string => `/agents/${encodeURIComponent(id)}`;

const fromApprovals = ({ approvals }: AttentionReads): AttentionItem[] =>
  (approvals?.approvals ?? []).map(({ id, agentId, tool, requestedAt }) => ({
    ...{ id: `approval ${id}`, tone: 'warn' as const, title: `${agentId} asks to call ${tool}` },
    ...{ reason: 'The turn waits for a decision.', at: requestedAt, to: `/approvals?id=${id}` },
    ...{ action: 'Decide', isPast: false },
  }));

const fromAgents = ({ agents }: AttentionReads): AttentionItem[] =>
  (agents?.agents ?? [])
    .filter(({ state }) => state === 'error')
    .map(({ id, name, error, reason }) => ({
      ...{ id: `agent ${id}`, tone: 'bad' as const, title: `Agent ${name} is in error` },
      reason: error ? `${error.code}, ${countOf(error.failures, 'failure')} in a row` : (reason ?? ''),
      ...{ at: null, to: agentPage(id), action: 'Open the agent', isPast: false },
    }));

interface Pause {
  readonly provider: string;
  readonly until: string;
}

const fromHealth = ({ health }: AttentionReads): AttentionItem[] => {
  if (health === undefined) return [];
  const parts = [
    ...Object.entries(health.services).map(([name, part]) => ({ name, ...part, reason: part.error })),
    ...Object.entries(health.engines).map(([name, part]) => ({ name, ...part, reason: part.detail })),
  ];
  const down = parts
    .filter(({ healthy }) => !healthy)
    .map(({ name, reason = 'It does not respond.' }) => ({
      ...{ id: `part ${name}`, tone: 'bad' as const, title: `${name} is down`, reason, at: null },
      ...{ to: '/', action: 'Open the overview', isPast: false },
    }));
  const facts = health.services['agent']?.facts as
    { readonly pausedProviders?: readonly Pause[] } | undefined;
  const paused = (facts?.pausedProviders ?? []).map(({ provider, until }) => ({
    ...{ id: `provider ${provider}`, tone: 'warn' as const, title: `Provider ${provider} is paused` },
    ...{ reason: `It failed several times in a row. The next try is at ${until}.`, at: null },
    ...{ to: '/settings/providers', action: 'Open the providers', isPast: false },
  }));
  return [...down, ...paused];
};

/** Share of a limit from which on a budget is shown. */
const NEARLY_SPENT = 0.8;

const fromBudgets = ({ budgets }: AttentionReads): AttentionItem[] =>
  (budgets?.scopes ?? []).flatMap(
    ({ key, limitMicroUsd, limitTokens, settledMicroUsd, settledTokens, frozen }) => {
      const money = limitMicroUsd ? settledMicroUsd / limitMicroUsd : 0;
      const tokens = limitTokens ? settledTokens / limitTokens : 0;
      const share = Math.max(money, tokens);
      if (share < NEARLY_SPENT && !frozen) return [];
      const used =
        money >= tokens
          ? `${formatUsd(settledMicroUsd)} of ${formatUsd(limitMicroUsd ?? 0)}`
          : `${countOf(settledTokens, 'token')} of ${limitTokens ?? 0}`;
      const item: AttentionItem = {
        ...{ id: `budget ${key}`, tone: share >= 1 || frozen ? 'bad' : 'warn' },
        title: frozen
          ? `The budget ${key} is frozen`
          : `${Math.floor(share * 100)} % of the budget ${key} is spent`,
        ...{ reason: used, at: null, to: '/money', action: 'Open money', isPast: false },
      };
      return [item];
    },
  );

const fromStopped = ({ stopped }: AttentionReads): AttentionItem[] => {
  if (stopped === undefined) return [];
  const { streams, messages, hasMore } = stopped;
  const count = streams.length + messages.length;
  if (count === 0) return [];
  return [
    {
      ...{ id: 'stopped', tone: 'bad', title: `${count}${hasMore ? '+' : ''} events could not be handled` },
      reason: streams[0]?.reason ?? messages[0]?.reason ?? '',
      ...{ at: streams[0]?.parkedAt ?? messages[0]?.at ?? null, to: '/audit' },
      ...{ action: 'Open the audit', isPast: false },
    },
  ];
};

/** Returns the code and the text of a failure. */
const causeOf = ({ data }: LogEvent): { readonly code: string; readonly text: string } => {
  const fields = (typeof data === 'object' && data !== null ? withMessage(data) : {}) as Fields;
  const failure = (fields['error'] ?? fields) as Fields;
  const [code, outer] = [textOf(failure['code']), textOf(fields['code'])];
  const text = textOf(failure['message']) || textOf(fields['message']) || textOf(fields['reason']);
  return { code: code || outer, text };
};

const MAX_REASON = 300;

/** Failures with the same type and cause are one item. Events are newest first. */
const fromFailures = ({ failures }: AttentionReads): AttentionItem[] => {
  const groups = new Map<string, LogEvent[]>();
  for (const event of failures?.events ?? []) {
    const key = `${event.type} ${causeOf(event).code}`;
    groups.set(key, [...(groups.get(key) ?? []), event]);
  }
  return [...groups.values()].flatMap((events): AttentionItem[] => {
    const [newest] = events;
    if (newest === undefined) return [];
    const { code, text } = causeOf(newest);
    const name = wordsOfType(newest.type);
    const many = events.length > 1;
    return [
      {
        ...{ id: `failure ${newest.position}`, tone: 'bad' },
        title: many ? `${events.length} × ${name}${code === '' ? '' : `: ${code}`}` : name,
        reason: [many ? '' : code, text]
          .filter((part) => part !== '')
          .join(': ')
          .slice(0, MAX_REASON),
        at: newest.recordedAt,
        to: many ? `/events?severity=error&type=${newest.type}` : pageOf(newest),
        ...{ action: many ? 'Open the events' : 'Open', isPast: true },
      },
    ];
  });
};

const RANK = { bad: 0, warn: 1 } as const;

/** Returns all items: those that hold before those that have happened, the worse first. */
export const attentionItems = (reads: AttentionReads): readonly AttentionItem[] =>
  [fromApprovals, fromAgents, fromHealth, fromBudgets, fromStopped, fromFailures]
    .flatMap((source) => source(reads))
    .sort((a, b) => Number(a.isPast) - Number(b.isPast) || RANK[a.tone] - RANK[b.tone]);

/** Items that a person has put away, with the time until which they are, ms. */
export type PutAway = Readonly<Record<string, number>>;

/** Returns the items that are shown. */
export const shownItems = (
  items: readonly AttentionItem[],
  away: PutAway,
  now: number,
): readonly AttentionItem[] => items.filter(({ id }) => (away[id] ?? 0) <= now);
