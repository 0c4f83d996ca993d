import type { RouteReply } from '@antiphon/client';
import { PageHead } from '../../app/page-head.js';
import { isAbout } from '../../data/event-pages.js';
import { Link } from '../../data/router.js';
import { useList } from '../../data/use-list.js';
import { CopyRecord } from '../../ui/copy-record.js';
import { countOf } from '../../ui/format.js';
import { css as ui, Empty, Loading, Panel, ProblemBox, State, Table, Time } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import { ShowMore } from '../show-more.js';
import pages from '../pages.module.css';
import css from './plans.module.css';

type Item = RouteReply<'listPlans'>['plans'][number];

const TONES = { done: 'ok', running: 'busy', failed: 'bad', invalid: 'bad', open: 'none' } as const;

/** State of a plan, as word, icon and colour. */
export const PlanState = ({ status }: { readonly status: Item['status'] }) => (
  <State of={status === 'done' ? 'completed' : status} tone={TONES[status]}>
    {status}
  </State>
);

export const pageOfPlan = (path: string): string =>
  `/plans/${path.split('/').map(encodeURIComponent).join('/')}`;

/** Number of completed steps, as text and as a bar. */
export const Progress = ({ done, steps }: { readonly done: number; readonly steps: number }) => (
  <span className={css.progress}>
    <span>
      {done} of {steps}
    </span>
    <span className={pages.meter} aria-hidden="true">
      <i style={{ width: `${steps === 0 ? 0 : (100 * done) / steps}%` }} />
    </span>
  </span>
);

const Row = ({ plan }: { readonly plan: Item }) => (
  <tr>
    <td className={pages.contentCell}>
      <Link to={pageOfPlan(plan.path)} className={pages.name}>
        <VisibleText text={plan.path} />
      </Link>
    </td>
    <td>
      <PlanState status={plan.status} />
    </td>
    <td>
      <Progress done={plan.done} steps={plan.steps} />
    </td>
    <td>
      {plan.failed > 0 && <State of="failed">{countOf(plan.failed, 'failed step')}</State>}
      {plan.conflicts > 0 && <State of="warning">{countOf(plan.conflicts, 'conflict')}</State>}
      {plan.failed + plan.conflicts === 0 && <span className={ui.muted}>none</span>}
    </td>
    <td>
      {plan.agentId === null ? (
        <span className={ui.muted}>none</span>
      ) : (
        <Link to={`/agents/${encodeURIComponent(plan.agentId)}`}>{plan.agentId}</Link>
      )}
    </td>
    <td>
      <Time at={plan.changedAt} />
      <div className={ui.muted}>
        <VisibleText text={plan.changedBy} />
      </div>
    </td>
  </tr>
);

/** The plans of the workspace. */
export const PlanList = () => {
  const list = useList('listPlans', { query: { limit: 50 } }, { changesOn: isAbout('plan', 'file') });
  const { data, problem, refresh } = list;
  return (
    <>
      <PageHead
        title="Plans"
        question="Which step is next, and what is the evidence of the last?"
        actions={
          <CopyRecord noun="list" json="/plans/list" command="antiphon plan list" isOfPosition={false} />
        }
      />
      {problem && <ProblemBox problem={problem} retry={refresh} />}
      <Panel title={data ? countOf(data.total, 'plan') : 'Plans'}>
        {!data && !problem && <Loading what="plans" />}
        {data?.plans.length === 0 && (
          <Empty title="No plan yet">
            <p>
              A plan is a file that ends with .plan.md and has a check box for each step. Agents make plans
              with the tool make_plan.
            </p>
            <Link to="/files?new=1">Write one in Files</Link>
          </Empty>
        )}
        {data && data.plans.length > 0 && (
          <Table label="Plans" columns={['Plan', 'State', 'Steps', 'Needs a look', 'Runs', 'Changed']}>
            {data.plans.map((plan) => (
              <Row key={plan.path} plan={plan} />
            ))}
          </Table>
        )}
        <ShowMore list={list} what="plans" count={data?.plans.length ?? 0} />
      </Panel>
    </>
  );
};
