import type { RouteReply } from '@antiphon/client';
import { useState } from 'react';
import { PageHead } from '../../app/page-head.js';
import type { PageProps } from '../../app/pages.js';
import { useAct } from '../../data/act.js';
import { isAbout } from '../../data/event-pages.js';
import { client } from '../../data/gateway.js';
import { Link } from '../../data/router.js';
import { useRead } from '../../data/use-read.js';
import { ActButton } from '../../ui/act-button.js';
import { CopyRecord, quoteWord } from '../../ui/copy-record.js';
import { Markdown } from '../../ui/markdown.js';
import { classes, css as ui, Id, Loading, Panel, ProblemBox, State } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import { pageOfFile } from '../files/open-path.js';
import { Conflicts } from './conflicts.js';
import { PlanList, PlanState, Progress } from './plan-list.js';
import { RunDialog } from './run-dialog.js';
import pages from '../pages.module.css';
import css from './plans.module.css';

export type Plan = RouteReply<'getPlan'>;
type Step = Plan['steps'][number];

const STATES = {
  open: ['waiting', 'open'],
  started: ['running', 'in progress'],
  done: ['completed', 'done'],
  failed: ['failed', 'failed'],
} as const;

/** Source of a step's completion, as a link to the turn with the tool call. */
const Evidence = ({ evidence }: { readonly evidence: NonNullable<Step['evidence']> }) => {
  if (evidence.kind === 'none')
    return (
      <span>
        nothing verifies it: <VisibleText text={evidence.reason} />
      </span>
    );
  if (evidence.kind === 'person')
    return (
      <span>
        ticked by <VisibleText text={evidence.caller} />
      </span>
    );
  return (
    <span>
      <Link to={`/sessions/${evidence.sessionId}/why/${evidence.turnId}`}>
        call of {evidence.tool} <Id id={evidence.callId} />
      </Link>
    </span>
  );
};

const StepRow = ({ step }: { readonly step: Step }) => {
  const [of, word] = STATES[step.status];
  return (
    <li
      className={css.step}
      data-status={step.status}
      aria-current={step.status === 'started' ? 'step' : undefined}
    >
      <div className={css.stepHead}>
        <span className={ui.mono}>{step.stepId}</span>
        <strong>
          <VisibleText text={step.text} />
        </strong>
        <State of={of}>{word}</State>
      </div>
      {step.body.trim() !== '' && <Markdown text={step.body} />}
      {step.evidence && (
        <p>
          Evidence: <Evidence evidence={step.evidence} />
        </p>
      )}
      {step.note !== null && (
        <p>
          Note: <VisibleText text={step.note} />
        </p>
      )}
      {step.code !== null && (
        <p className={ui.muted}>
          <code>{step.code}</code>
        </p>
      )}
    </li>
  );
};

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
  const {
    data: plan,
    problem,
    refresh,
  } = useRead('getPlan', { query: { path } }, { changesOn: isAbout('plan', 'file') });
  if (!plan)
    return (
      <>
        <PageHead title={path} />
        {problem ? <ProblemBox problem={problem} retry={refresh} /> : <Loading what="the plan" />}
      </>
    );
  const done = plan.steps.filter(({ status }) => status === 'done').length;
  return (
    <>
      <PageHead title={path} tabTitle={`${plan.status} · ${path} · Plans`} actions={<Actions plan={plan} />}>
        <p className={css.state}>
          <PlanState status={plan.status} /> <Progress done={done} steps={plan.steps.length} />
        </p>
      </PageHead>
      {problem && <ProblemBox problem={problem} retry={refresh} />}
      <div className={pages.grid}>
        <div className={classes(pages.stack, plan.run ? pages.wide : undefined)}>
          <Conflicts plan={plan} />
          <Panel title="Steps">
            {plan.steps.length === 0 ? (
              <p className={pages.pad}>The file has no check box at its top level.</p>
            ) : (
              <ol className={css.steps}>
                {plan.steps.map((step) => (
                  <StepRow key={step.stepId} step={step} />
                ))}
              </ol>
            )}
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
