import type { RouteReply } from '@antiphon/client';
import { isAbout } from '../../data/event-pages.js';
import { Link } from '../../data/router.js';
import { useRead, type Read } from '../../data/use-read.js';
import { Markdown } from '../../ui/markdown.js';
import { css as ui, Id, Loading, ProblemBox, State } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import { Conflicts } from './conflicts.js';
import { pageOfPlan, PlanState, Progress } from './plan-list.js';
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

/** Reads a plan, and again when it or its file changes. */
export const usePlan = (path: string): Read<Plan> =>
  useRead('getPlan', { query: { path } }, { changesOn: isAbout('plan', 'file') });

const doneOf = ({ steps }: Plan): number => steps.filter(({ status }) => status === 'done').length;

/** State of a plan with the number of its completed steps. */
export const PlanSummary = ({ plan }: { readonly plan: Plan }) => (
  <p className={css.state}>
    <PlanState status={plan.status} /> <Progress done={doneOf(plan)} steps={plan.steps.length} />
  </p>
);

/** Steps of a plan with their states, notes and evidence. */
export const PlanSteps = ({ plan }: { readonly plan: Plan }) =>
  plan.steps.length === 0 ? (
    <p className={pages.pad}>The file has no check box at its top level.</p>
  ) : (
    <ol className={css.steps}>
      {plan.steps.map((step) => (
        <StepRow key={step.stepId} step={step} />
      ))}
    </ol>
  );

/**
 * A plan next to something else, such as a conversation: its state, its conflicts, its steps, and a
 * link to its page.
 */
export const PlanPart = ({ path }: { readonly path: string }) => {
  const { data: plan, problem, refresh } = usePlan(path);
  if (!plan) return problem ? <ProblemBox problem={problem} retry={refresh} /> : <Loading what="the plan" />;
  return (
    <>
      <p className={css.state}>
        <Link to={pageOfPlan(path)}>
          <VisibleText text={path} />
        </Link>
      </p>
      <PlanSummary plan={plan} />
      <Conflicts plan={plan} />
      <PlanSteps plan={plan} />
    </>
  );
};
