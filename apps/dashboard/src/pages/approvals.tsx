import type { RouteReply } from '@antiphon/client';
import { useEffect, useRef } from 'react';
import { hasSingleKeys, isTyping } from '../app/keys.js';
import { PageHead } from '../app/page-head.js';
import { Link, setFilters, useParam } from '../data/router.js';
import { isAbout } from '../data/event-pages.js';
import { useList } from '../data/use-list.js';
import { useRead } from '../data/use-read.js';
import { ApprovalCard } from '../ui/approval-card.js';
import { ShowMore } from './show-more.js';
import { Button, css as ui, Empty, Loading, ProblemBox, Time } from '../ui/ui.js';
import css from './pages.module.css';

type Approval = RouteReply<'listApprovals'>['approvals'][number];

const STATUSES = ['pending', 'granted', 'denied', 'expired', 'voided', 'withdrawn'] as const;
type Status = (typeof STATUSES)[number];

const Asked = ({ approval }: { readonly approval: Approval }) => (
  <li className={css.stack} tabIndex={-1} data-approval>
    <p className={ui.muted}>
      <Link to={`/agents/${encodeURIComponent(approval.agentId)}`}>{approval.path.join(' → ')}</Link> asks in{' '}
      <Link to={`/sessions/${approval.sessionId}`}>its session</Link> · <Time at={approval.requestedAt} />
    </p>
    <ApprovalCard approval={approval} />
  </li>
);

const changesOn = isAbout('session');

/** One approval, of any status. */
const One = ({ id }: { readonly id: string }) => {
  const { data, problem, refresh } = useRead('getApproval', { params: { id } }, { changesOn });
  return (
    <>
      <p>
        This is one approval. <Link to="/approvals">Show those that wait</Link>
      </p>
      {problem && <ProblemBox problem={problem} retry={refresh} />}
      {!data && !problem && <Loading what="the approval" />}
      {data && (
        <ul className={css.cards}>
          <Asked approval={data} />
        </ul>
      )}
    </>
  );
};

/** Focuses the approval after the one that has the focus, or the first one. */
const focusNext = (list: HTMLElement | null): void => {
  const cards = [...(list?.querySelectorAll<HTMLElement>('[data-approval]') ?? [])];
  const current = cards.findIndex((card) => card.contains(document.activeElement));
  const next = cards[(current + 1) % cards.length];
  next?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: 'start' });
};

/** Goes to the next approval by the key `j`. */
const useNextKey = (goToNext: () => void): void => {
  const latest = useRef(goToNext);
  latest.current = goToNext;
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
      if (event.key !== 'j' || !isPlain || !hasSingleKeys.get() || isTyping(event.target)) return;
      if (document.querySelector('dialog[open]')) return;
      event.preventDefault();
      latest.current();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
};

/** Those that wait are in the order in which they were asked for, all others newest first. */
const List = ({ status }: { readonly status: Status | undefined }) => {
  const order = status === 'pending' ? 'asc' : 'desc';
  const query = { limit: 100, order, ...(status && { status }) } as const;
  const list = useList('listApprovals', { query }, { changesOn });
  const { data, problem, refresh } = list;
  const cards = useRef<HTMLUListElement>(null);
  const goToNext = (): void => focusNext(cards.current);
  useNextKey(goToNext);
  return (
    <>
      {(data?.approvals.length ?? 0) > 1 && (
        <p>
          <Button onClick={goToNext}>Next (J)</Button>
        </p>
      )}
      {problem && <ProblemBox problem={problem} retry={refresh} />}
      {!data && !problem && <Loading what="approvals" />}
      {data?.approvals.length === 0 && (
        <Empty title={status === 'pending' ? 'Nothing waits for a decision' : 'No approval matches'}>
          <p>An agent asks here before it calls a tool that a rule of [[agents.approvals]] guards.</p>
        </Empty>
      )}
      <ul ref={cards} className={css.cards}>
        {data?.approvals.map((approval) => (
          <Asked key={approval.id} approval={approval} />
        ))}
      </ul>
      <ShowMore list={list} what="approvals" count={data?.approvals.length ?? 0} />
    </>
  );
};

export const Approvals = () => {
  const wanted = useParam('status');
  const status: Status | undefined =
    wanted === 'all' ? undefined : (STATUSES.find((name) => name === wanted) ?? 'pending');
  const only = useParam('id');
  return (
    <>
      <PageHead title="Approvals" question="What am I asked to allow, exactly, and who else may answer?" />
      <div className={css.filters}>
        <label>
          Status
          <select value={status ?? 'all'} onChange={(event) => setFilters({ status: event.target.value })}>
            {STATUSES.map((name) => (
              <option key={name}>{name}</option>
            ))}
            <option>all</option>
          </select>
        </label>
      </div>
      {only === '' ? <List status={status} /> : <One id={only} />}
    </>
  );
};
