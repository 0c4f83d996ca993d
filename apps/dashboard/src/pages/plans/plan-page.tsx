import { useState } from 'react';
import { PageHead } from '../../app/page-head.js';
import type { PageProps } from '../../app/pages.js';
import { useAct } from '../../data/act.js';
import { client } from '../../data/gateway.js';
import { Link } from '../../data/router.js';
import { ActButton } from '../../ui/act-button.js';
import { CopyRecord, quoteWord } from '../../ui/copy-record.js';
import { classes, css as ui, Id, Loading, Panel, ProblemBox } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import { pageOfFile } from '../files/open-path.js';
import { Conflicts } from './conflicts.js';
import { PlanList } from './plan-list.js';
import { PlanSteps, PlanSummary, usePlan, type Plan } from './plan-steps.js';
import { RunDialog } from './run-dialog.js';
import pages from '../pages.module.css';

const Run = ({ run }: { readonly run: NonNullable<Plan['run']> }) => (
  <Panel title={run.ended === null ? 'Run in progress' : 'Last run'} isPadded>
    <dl className={ui.facts}>
      <dt>Agent</dt>
      <dd>
        <Link to={`/agents/${encodeURIComponent(run.agentId)}`}>{run.agentId}</Link>
      </dd>
      <dt>Turns</dt>
      <dd>
        {run.turns} of {run.maxTurns} at most
      </dd>
      {run.ended && (
        <>
          <dt>End</dt>
          <dd>
            {run.ended.reason.replaceAll('_', ' ')}
            {run.ended.message !== null && (
              <>
                : <VisibleText text={run.ended.message} />
              </>
            )}
          </dd>
        </>
      )}
      <dt>Run</dt>
      <dd>
        <Id id={run.runId} />
      </dd>
    </dl>
  </Panel>
);

const Actions = ({ plan }: { readonly plan: Plan }) => {
  const [isAsking, setAsking] = useState(false);
  const { run, isBusy, problem } = useAct();
  const { path, status } = plan;
  const isRunning = plan.run !== null && plan.run.ended === null;
  return (
    <>
      <CopyRecord
        noun="plan"
        json={`/plans?path=${encodeURIComponent(path)}`}
        command={`antiphon plan show ${quoteWord(path)}`}
        isOfPosition={false}
      />
      <Link to={pageOfFile(path)} className={ui.button}>
        Open the file
      </Link>
      {isRunning ? (
        <ActButton
          permission="runs:write"
          look="danger"
          icon="stop"
          isOff={isBusy}
          onClick={() => run(() => client.http.stopPlan({ body: { path } }))}
        >
          Stop
        </ActButton>
      ) : (
        <ActButton
          permission="runs:write"
          look="primary"
          icon="play"
          isOff={status === 'done' || status === 'invalid'}
          onClick={() => setAsking(true)}
        >
          Run
        </ActButton>
      )}
      {problem && <ProblemBox problem={problem} />}
      {isAsking && <RunDialog path={path} onClose={() => setAsking(false)} />}
    </>
  );
};

/** Steps of a plan with their evidence, its run and its conflicts. */
const PlanView = ({ path }: { readonly path: string }) => {
  const { data: plan, problem, refresh } = usePlan(path);
  if (!plan)
    return (
      <>
        <PageHead title={path} />
        {problem ? <ProblemBox problem={problem} retry={refresh} /> : <Loading what="the plan" />}
      </>
    );
  return (
    <>
      <PageHead title={path} tabTitle={`${plan.status} · ${path} · Plans`} actions={<Actions plan={plan} />}>
        <PlanSummary plan={plan} />
      </PageHead>
      {problem && <ProblemBox problem={problem} retry={refresh} />}
      <div className={pages.grid}>
        <div className={classes(pages.stack, plan.run ? pages.wide : undefined)}>
          <Conflicts plan={plan} />
          <Panel title="Steps">
            <PlanSteps plan={plan} />
          </Panel>
        </div>
        {plan.run && (
          <div className={classes(pages.stack, pages.narrow)}>
            <Run run={plan.run} />
          </div>
        )}
      </div>
    </>
  );
};

export const PlanPage = ({ params }: PageProps) => {
  const path = params['path'] ?? '';
  return path === '' ? <PlanList /> : <PlanView key={path} path={path} />;
};
