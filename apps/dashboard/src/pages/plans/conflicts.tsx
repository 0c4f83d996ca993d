import { useAct } from '../../data/act.js';
import { client } from '../../data/gateway.js';
import { Link } from '../../data/router.js';
import { ActButton } from '../../ui/act-button.js';
import { countOf } from '../../ui/format.js';
import { Code } from '../../ui/json.js';
import { css as ui, Panel, ProblemBox, Time } from '../../ui/ui.js';
import { pageOfFile } from '../files/open-path.js';
import type { Plan } from './plan-steps.js';
import css from './plans.module.css';

const WORDS: Readonly<Record<Plan['conflicts'][number]['kind'], string>> = {
  no_steps: 'The file has no step',
  too_large: 'The file is too large for a plan',
  step_changed: 'The step changed in the meantime',
  step_removed: 'The removed step changed, or is in progress',
  tick_without_evidence: 'A box was ticked without evidence',
  untick_of_newer: 'A tick was removed that the writer did not know of',
  order_changed: 'Both changed the order of the steps',
  head_changed: 'Both changed the text before the steps',
};

/** Parts of the last edit of the file that contradict the facts, side by side. The facts stayed. */
export const Conflicts = ({ plan }: { readonly plan: Plan }) => {
  const { conflicts, conflictedAt, path, digest } = plan;
  const { run, isBusy, problem } = useAct();
  if (conflicts.length === 0) return null;
  return (
    <Panel
      title={countOf(conflicts.length, 'conflict')}
      actions={
        <>
          <Link to={`${pageOfFile(path)}?edit=1`}>Edit the file</Link>
          <ActButton
            permission="runs:write"
            isOff={isBusy}
            onClick={() => run(() => client.http.takePlanFacts({ body: { path, digest } }))}
          >
            Take the facts
          </ActButton>
        </>
      }
      isPadded
    >
      {problem && <ProblemBox problem={problem} />}
      <p className={ui.muted}>
        The facts of the plan stayed as they are. Take them, and the file shows them again: the edit stays in
        its history.{' '}
        {conflictedAt && (
          <>
            The edit was read <Time at={conflictedAt} />.
          </>
        )}
      </p>
      {conflicts.map(({ kind, stepId, ours, theirs }, index) => (
        <section key={index} aria-label={`Conflict ${index + 1}`} className={css.conflict}>
          <h3>
            {WORDS[kind]}
            {stepId !== null && `: ${stepId}`}
          </h3>
          <div className={css.sides}>
            <div>
              <h4>Plan, which stayed</h4>
              <Code text={ours} label={`Text of the plan, conflict ${index + 1}`} />
            </div>
            <div>
              <h4>File, as it was edited</h4>
              <Code text={theirs} label={`Text of the file, conflict ${index + 1}`} />
            </div>
          </div>
        </section>
      ))}
    </Panel>
  );
};
