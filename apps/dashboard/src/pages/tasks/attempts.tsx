import type { LogEvent } from '@antiphon/client';
import { Link } from '../../data/router.js';
import { countOf } from '../../ui/format.js';
import { Empty, Id, Panel, State, Table, Time } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import { attemptsOf, type Attempt } from './task-history.js';
import pages from '../pages.module.css';

const AttemptRow = ({ attempt }: { readonly attempt: Attempt }) => {
  const { epoch, worker, startedAt, sessionId, turnId, end } = attempt;
  return (
    <tr>
      <td data-end="">{epoch}</td>
      <td>
        <VisibleText text={worker} />
      </td>
      <td>
        <State of={end === null ? 'running' : end.reason}>{end === null ? 'running' : end.reason}</State>
      </td>
      <td className={pages.contentCell}>{end?.message && <VisibleText text={end.message} />}</td>
      <td>
        {sessionId && (
          <Link to={`/sessions/${sessionId}`}>
            session <Id id={sessionId} />
          </Link>
        )}
        {sessionId && turnId && (
          <div>
            <Link to={`/sessions/${sessionId}/why/${turnId}`}>Why</Link>
          </div>
        )}
      </td>
      <td>
        <Time at={end?.at ?? startedAt} />
      </td>
    </tr>
  );
};

/** Claims of a task, each with its worker, its end and its session. */
export const Attempts = ({ events }: { readonly events: readonly LogEvent[] }) => {
  const attempts = attemptsOf(events);
  return (
    <Panel title={countOf(attempts.length, 'attempt')}>
      {attempts.length === 0 ? (
        <Empty title="No agent has taken it yet" />
      ) : (
        <Table
          label="Attempts"
          columns={[{ name: 'No.', isNumber: true }, 'Worker', 'End', 'Reason', 'Session', 'Time']}
        >
          {attempts.map((attempt) => (
            <AttemptRow key={attempt.epoch} attempt={attempt} />
          ))}
        </Table>
      )}
    </Panel>
  );
};
