import { Link } from '../../data/router.js';
import { CopyRecord, quoteWord } from '../../ui/copy-record.js';
import { formatDuration } from '../../ui/format.js';
import { Code } from '../../ui/json.js';
import { css as ui, State } from '../../ui/ui.js';
import { CutOutput } from './cut-output.js';
import type { RunNode } from './graph-card.js';
import css from './workflow.module.css';

interface CopyTaskProps {
  readonly runId: string;
  readonly task: RunNode;
}

/** Copies a node of a run as the task that the API lists. */
export const CopyTask = ({ runId, task }: CopyTaskProps) => {
  const id = `${runId}/${task.id}`;
  return (
    <CopyRecord
      noun="task"
      page={`/runs/${runId}?node=${encodeURIComponent(task.id)}`}
      json={`/tasks/${encodeURIComponent(id)}`}
      command={`antiphon task show ${quoteWord(id)}`}
    />
  );
};

/** Result of a node in a run: state, attempts, time, output or error. */
export const RunResult = ({ task }: { readonly task: RunNode }) => {
  const { status, attempt, sessionId, output, outputTruncated, error, startedAt, endedAt } = task;
  const tookMs = startedAt && endedAt ? new Date(endedAt).getTime() - new Date(startedAt).getTime() : null;
  return (
    <div className={css.result}>
      <p className={css.facts}>
        <State of={status} />
        <span>{attempt === 1 ? '1 turn' : `${attempt} turns`}</span>
        {tookMs !== null && <span>{formatDuration(tookMs)}</span>}
        {sessionId && <Link to={`/sessions/${sessionId}`}>its session</Link>}
      </p>
      {error && (
        <p className={css.error}>
          {error.message} <code className={ui.mono}>{error.code}</code>
        </p>
      )}
      {output !== null && <Code text={output} label={`Output of ${task.id}`} />}
      {outputTruncated && <CutOutput sessionId={sessionId} />}
    </div>
  );
};
