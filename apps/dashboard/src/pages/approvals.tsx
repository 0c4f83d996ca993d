import type { RouteReply } from '@antiphon/client';
import { PageHead } from '../app/page-head.js';
import { Link, setParams, useParam } from '../app/router.js';
import { isAbout } from '../data/event-pages.js';
import { useRead } from '../data/use-read.js';
import { ApprovalCard } from '../ui/approval-card.js';
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

export const Approvals = () => {
  const wanted = useParam('status');
  const status: Status | undefined =
    wanted === 'all' ? undefined : (STATUSES.find((name) => name === wanted) ?? 'pending');
  const only = useParam('id');
  const query = { limit: 100, ...(status ? { status } : {}) };
  const { data, problem, refresh } = useRead('listApprovals', { query }, { changesOn: isAbout('session') });
  const approvals = data?.approvals.filter(({ id }) => only === '' || id === only);
  return (
    <>
      <PageHead title="Approvals" question="What am I asked to allow, exactly, and who else may answer?" />
      <div className={css.filters}>
        <label>
          Status
          <select value={status ?? 'all'} onChange={(event) => setParams({ status: event.target.value })}>
            {STATUSES.map((name) => (
              <option key={name}>{name}</option>
            ))}
            <option>all</option>
          </select>
        </label>
      </div>
      {problem && <ProblemBox problem={problem} retry={refresh} />}
      {only !== '' && (
        <p>
          This is one approval. <Link to="/approvals">Show those that wait</Link>
        </p>
      )}
      {!data && !problem && <Loading what="approvals" />}
      {approvals?.length === 0 && (
        <Empty title={status === 'pending' ? 'Nothing waits for a decision' : 'No approval matches'}>
          <p>An agent asks here before it calls a tool that a rule of [[agents.approvals]] guards.</p>
        </Empty>
      )}
      <ul className={css.cards}>
        {approvals?.map((approval) => (
          <Asked key={approval.id} approval={approval} />
        ))}
      </ul>
    </>
  );
};
