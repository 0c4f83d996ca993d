import type { RouteName, RouteReply } from '@antiphon/client';
import { textOfTaskWait } from '@antiphon/contracts/task-waits';
import { isRootLate } from '../../data/late-roots.js';
import { countOf, formatUsd } from '../../ui/format.js';
import type { AttentionItem } from './attention-items.js';

type Reply<N extends RouteName> = RouteReply<N> | undefined;

/** Replies about what holds now. */
export interface StateReads {
  readonly approvals?: Reply<'listApprovals'>;
  readonly health?: Reply<'health'>;
  readonly budgets?: Reply<'readBudgets'>;
  readonly stopped?: Reply<'listDeadLetters'>;
  /** Tasks of the queue that wait. */
  readonly tasks?: Reply<'listTasks'>;
  readonly plans?: Reply<'listPlans'>;
  readonly roots?: Reply<'listRoots'>;
  readonly keys?: Reply<'listKeys'>;
}

const BAD = { tone: 'bad', isPast: false } as const;
const WARN = { tone: 'warn', isPast: false } as const;

const agentPage = (id: string): string => `/agents/${encodeURIComponent(id)}`;

const fromApprovals = ({ approvals }: StateReads): AttentionItem[] =>
  (approvals?.approvals ?? []).map(({ id, agentId, tool, requestedAt, expiresAt }) => ({
    ...{ ...WARN, id: `approval ${id}`, cause: 'approval', title: `${agentId} asks to call ${tool}` },
    ...{ reason: 'The turn waits for a decision.', at: requestedAt, until: expiresAt },
    ...{ to: `/approvals?id=${id}`, action: 'Decide' },
  }));

/** Returns the entries by a text that says why they are listed. */
const groupBy = <T>(entries: readonly T[], textOf: (entry: T) => string): Map<string, T[]> => {
  const groups = new Map<string, T[]>();
  for (const entry of entries) groups.set(textOf(entry), [...(groups.get(textOf(entry)) ?? []), entry]);
  return groups;
};

/** Agents in error with the same code are one item. */
const fromAgents = ({ health }: StateReads): AttentionItem[] =>
  [...groupBy(health?.agentsInError ?? [], ({ code }) => code)].flatMap(([code, group]): AttentionItem[] => {
    const [first] = group;
    if (first === undefined) return [];
    const isGroup = group.length > 1;
    return [
      {
        ...{ ...BAD, id: isGroup ? `agents ${code}` : `agent ${first.agentId}`, at: null },
        title: isGroup
          ? `${group.length} agents are in error: ${code}`
          : `Agent ${first.agentId} is in error`,
        reason: isGroup ? group.map(({ agentId }) => agentId).join(', ') : code,
        to: isGroup ? '/agents?state=error' : agentPage(first.agentId),
        action: isGroup ? 'Open the agents' : 'Open the agent',
      },
    ];
  });

interface Pause {
  readonly provider: string;
  readonly until: string;
}

const fromHealth = ({ health }: StateReads): AttentionItem[] => {
  if (health === undefined) return [];
  const parts = [
    ...Object.entries(health.services).map(([name, part]) => ({ name, ...part, reason: part.error })),
    ...Object.entries(health.engines).map(([name, part]) => ({ name, ...part, reason: part.detail })),
  ];
  const down = parts
    .filter(({ healthy }) => !healthy)
    .map(({ name, reason = 'It does not respond.' }) => ({
      ...{ ...BAD, id: `part ${name}`, title: `${name} is down`, reason, at: null },
      ...{ to: '/', action: 'Open the overview' },
    }));
  const facts = health.services['agent']?.facts as
    { readonly pausedProviders?: readonly Pause[] } | undefined;
  const paused = (facts?.pausedProviders ?? []).map(({ provider, until }) => ({
    ...{ ...WARN, id: `provider ${provider}`, title: `Provider ${provider} is paused` },
    ...{ reason: 'It failed several times in a row, and is tried again later.', at: null, until },
    ...{ to: '/settings/providers', action: 'Open the providers' },
  }));
  return [...down, ...paused];
};

/** Share of a limit from which on a budget is shown. */
const NEARLY_SPENT = 0.8;

const fromBudgets = ({ budgets }: StateReads): AttentionItem[] =>
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
        ...(share >= 1 || frozen ? BAD : WARN),
        id: `budget ${key}`,
        title: frozen
          ? `The budget ${key} is frozen`
          : `${Math.floor(share * 100)} % of the budget ${key} is spent`,
        ...{ reason: used, at: null, to: '/money', action: 'Open money' },
      };
      return [item];
    },
  );

const fromStopped = ({ stopped }: StateReads): AttentionItem[] => {
  if (stopped === undefined) return [];
  const { streams, messages, hasMore } = stopped;
  const count = streams.length + messages.length;
  if (count === 0) return [];
  return [
    {
      ...{ ...BAD, id: 'stopped', title: `${count}${hasMore ? '+' : ''} events could not be handled` },
      reason: streams[0]?.reason ?? messages[0]?.reason ?? '',
      ...{ at: streams[0]?.parkedAt ?? messages[0]?.at ?? null, to: '/audit', action: 'Open the audit' },
    },
  ];
};

/** Tasks that no living agent can do wait until one can: they are grouped by what is missing. */
const fromTasks = ({ tasks }: StateReads): AttentionItem[] => {
  const stuck = (tasks?.tasks ?? []).filter(({ waiting }) => waiting?.reason === 'no_agent');
  const groups = groupBy(stuck, ({ waiting }) => (waiting ? textOfTaskWait(waiting) : ''));
  return [...groups].flatMap(([reason, group]): AttentionItem[] => {
    const [first] = group;
    if (first === undefined) return [];
    const isGroup = group.length > 1;
    return [
      {
        ...{ ...WARN, id: `tasks ${reason}`, reason, at: first.queuedAt },
        title: isGroup ? `${group.length} tasks have no agent` : `The task ${first.title} has no agent`,
        to: isGroup ? '/tasks?tab=queued' : `/tasks/${encodeURIComponent(first.id)}`,
        action: isGroup ? 'Open the tasks' : 'Open the task',
      },
    ];
  });
};

const fromPlans = ({ plans }: StateReads): AttentionItem[] =>
  (plans?.plans ?? [])
    .filter(({ conflicts }) => conflicts > 0)
    .map(({ path, conflicts, changedAt }) => ({
      ...{ ...WARN, id: `plan ${path}`, title: `The plan ${path} has conflicts`, at: changedAt },
      reason: `${countOf(conflicts, 'part')} of the last edit differ from the facts.`,
      to: `/plans/${path.split('/').map(encodeURIComponent).join('/')}`,
      action: 'Open the plan',
    }));

const fromRoots = ({ roots }: StateReads, now: number): AttentionItem[] =>
  roots === undefined || !isRootLate(roots, now)
    ? []
    : [
        {
          ...{ ...WARN, id: 'root', title: 'A signed root of the log is late', at: roots.nextAt },
          reason: `${countOf(roots.uncovered ?? 0, 'event')} not covered yet.`,
          ...{ to: '/audit', action: 'Open the audit' },
        },
      ];

const WEEK_MS = 7 * 86_400_000;

const fromKeys = ({ keys }: StateReads, now: number): AttentionItem[] =>
  (keys?.keys ?? []).flatMap(({ id, name, status, expiresAt }): AttentionItem[] => {
    if (status !== 'active' || expiresAt === null || new Date(expiresAt).getTime() - now > WEEK_MS) return [];
    return [
      {
        ...{ ...WARN, id: `key ${id}`, title: `The key ${name} ends soon`, at: null, until: expiresAt },
        reason: 'Its programs are refused after that. Create another one in time.',
        ...{ to: '/settings', action: 'Open the keys' },
      },
    ];
  });

const SOURCES = [
  ...[fromApprovals, fromAgents, fromHealth, fromBudgets, fromStopped],
  ...[fromTasks, fromPlans, fromRoots, fromKeys],
];

/** Returns what holds now, and is gone once it is solved. */
export const fromStates = (reads: StateReads, now: number): AttentionItem[] =>
  SOURCES.flatMap((source) => source(reads, now));
