import type { RouteReply } from '@antiphon/client';
import { PageHead } from '../app/page-head.js';
import { Link, setFilters, useParam } from '../data/router.js';
import { isAbout } from '../data/event-pages.js';
import { useList } from '../data/use-list.js';
import { useRead } from '../data/use-read.js';
import { ApprovalCard } from '../ui/approval-card.js';
import { ShowMore } from './show-more.js';
import { css as ui, Empty, Loading, ProblemBox, Time } from '../ui/ui.js';
import css from './pages.module.css';

type Approval = RouteReply<'listApprovals'>['approvals'][number];

const STATUSES = ['pending', 'granted', 'denied', 'expired', 'voided', 'withdrawn'] as const;
type Status = (typeof STATUSES)[number];

const Asked = ({ approval }: { readonly approval: Approval }) => (
  <li className={css.stack}>
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

const List = ({ status }: { readonly status: Status | undefined }) => {
  const list = useList('listApprovals', { query: { limit: 100, ...(status && { status }) } }, { changesOn });
  const { data, problem, refresh } = list;
  return (
    <>
      {problem && <ProblemBox problem={problem} retry={refresh} />}
      {!data && !problem && <Loading what="approvals" />}
      {data?.approvals.length === 0 && (
        <Empty title={status === 'pending' ? 'Nothing waits for a decision' : 'No approval matches'}>
          <p>An agent asks here before it calls a tool that a rule of [[agents.approvals]] guards.</p>
        </Empty>
      )}
      <ul className={css.cards}>
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
