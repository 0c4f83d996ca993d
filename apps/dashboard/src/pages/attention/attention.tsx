import { useMemo } from 'react';
import { PageHead } from '../../app/page-head.js';
import { startOfDayBefore } from '../../data/day-before.js';
import { isAbout } from '../../data/event-pages.js';
import { useIdentity } from '../../data/identity.js';
import { Link, usePosition } from '../../data/router.js';
import { createStore, useStore } from '../../data/store.js';
import { useRead, type Read } from '../../data/use-read.js';
import { PresentMark } from '../../ui/present-mark.js';
import { Button, css as ui, Empty, Loading, Panel, ProblemBox, State, Time } from '../../ui/ui.js';
import css from '../pages.module.css';
import own from './attention.module.css';
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

/** Hides a failure for a day, after which it is not listed, and a thing that still holds for an hour. */
const hide = ({ id, isPast }: AttentionItem): void =>
  setPutAway({ ...putAway.get(), [id]: Date.now() + (isPast ? DAY_MS : HOUR_MS) });

const changesOn = isAbout('session', 'agent', 'run', 'task', 'plan', 'budget');
const PRESENT = { changesOn, hasPast: false };

/** Reads all sources in the present: a decision is about now. */
const useSources = () => {
  const { permissions } = useIdentity();
  const may = (right: string): boolean => permissions === null || permissions.includes(right);
  const since = startOfDayBefore(new Date().toISOString());
  const approvals = useRead('listApprovals', { query: { status: 'pending', limit: 50 } }, PRESENT);
  const agents = useRead('listAgents', {}, PRESENT);
  const health = useRead('health', {}, PRESENT);
  const budgets = useRead('readBudgets', {}, { ...PRESENT, isOff: !may('budgets:read') });
  const failures = useRead(
    'readEvents',
    { query: { severity: 'error', ...(since && { since }), limit: 100, order: 'desc' } },
    PRESENT,
  );
  const stopped = useRead(
    'listDeadLetters',
    { query: { limit: 20 } },
    { ...PRESENT, isOff: !may('events:read') },
  );
  return { approvals, agents, health, budgets, failures, stopped };
};

const Line = ({ item }: { readonly item: AttentionItem }) => (
  <li className={own.line}>
    <State of={item.tone === 'bad' ? 'error' : 'waiting'}>{item.tone === 'bad' ? 'wrong' : 'waits'}</State>
    <span className={own.text}>
      <strong>
        <bdi>{item.title}</bdi>
      </strong>{' '}
      <bdi className={ui.muted}>{item.reason}</bdi>
    </span>
    {item.at !== null && (
      <span className={css.end}>
        <Time at={item.at} />
      </span>
    )}
    <Link to={item.to} className={ui.button}>
      {item.action}
    </Link>
    <Button
      look="quiet"
      aria-label={`${item.isPast ? 'Dismiss' : 'Hide for 1 h'}: ${item.title}`}
      onClick={() => hide(item)}
    >
      {item.isPast ? 'Dismiss' : 'Hide for 1 h'}
    </Button>
  </li>
);

const List = ({ items }: { readonly items: readonly AttentionItem[] }) =>
  items.length === 0 ? (
    <Empty title="Nothing needs you">
      <p>Approvals, failures, paused providers and spent budgets show here.</p>
    </Empty>
  ) : (
    <ul className={css.list} aria-label="What needs attention">
      {items.map((item) => (
        <Line key={item.id} item={item} />
      ))}
    </ul>
  );

/** Lists what waits for a person, and what has failed in the last day. */
export const Attention = () => {
  const isPast = usePosition() !== null;
  const sources = useSources();
  const away = useStore(putAway);
  const all = useMemo(
    () => attentionItems(Object.fromEntries(Object.entries(sources).map(([name, { data }]) => [name, data]))),
    Object.values(sources).map(({ data }) => data),
  );
  const items = shownItems(all, away, Date.now());
  const reads: readonly Read<unknown>[] = Object.values(sources);
  const failed = reads.filter(({ problem }) => problem !== null && problem.status !== 403);
  const hidden = all.length - items.length;
  return (
    <>
      <PageHead
        title="Attention"
        question="What waits for me, and what went wrong?"
        actions={isPast ? <PresentMark /> : undefined}
      />
      <div className={css.stack}>
        {failed.map(
          ({ problem, refresh }, index) =>
            problem && <ProblemBox key={index} problem={problem} retry={refresh} />,
        )}
        <Panel
          title={items.length === 0 ? 'Now' : `Now: ${items.length}`}
          actions={
            hidden > 0 && (
              <Button look="quiet" onClick={() => setPutAway({})}>
                Show {hidden} hidden
              </Button>
            )
          }
        >
          {reads.some(({ isLoading }) => isLoading) && items.length === 0 ? (
            <Loading what="what needs you" />
          ) : (
            <List items={items} />
          )}
        </Panel>
      </div>
    </>
  );
};
