import type { LogEvent } from '@antiphon/client';
import { PageHead } from '../../app/page-head.js';
import type { PageProps } from '../../app/pages.js';
import { Link, usePosition } from '../../data/router.js';
import { answerOf } from '../../data/compare.js';
import { summaryOf } from '../../data/event-pages.js';
import { withoutDeleted } from '../../data/deletions.js';
import { foldEvents, type Transcript, type Turn } from '../../data/transcript.js';
import { useRead } from '../../data/use-read.js';
import { explainTurn, findFocus, type Explanation } from '../../data/why.js';
import { formatDuration, formatNumber, formatUsd, wordsOfType } from '../../ui/format.js';
import {
  CopyButton,
  css as ui,
  Empty,
  Loading,
  Panel,
  ProblemBox,
  State,
  Table,
  Time,
  numberColumn,
} from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import pages from '../pages.module.css';
import { useSessionLog } from '../session/session-log.js';
import { ContextPanel } from './context-panel.js';
import { ContextShares } from './context-shares.js';

interface FocusProps {
  /** Position of the event that the page is about; null for the whole turn. */
  readonly focus: number | null;
}

const Cost = ({ calls }: Pick<Explanation, 'calls'>) => {
  if (calls.length === 0)
    return (
      <Empty title="No model call was made">
        <p>The turn waits, or it ended before its first model call.</p>
      </Empty>
    );
  return (
    <Table
      label="Model calls"
      columns={[
        'Call',
        'Model',
        'State',
        ...['Tokens in', 'Tokens out', 'Took', 'Cost', 'Event'].map(numberColumn),
      ]}
    >
      {calls.map((call, index) => (
        <tr key={call.attempt}>
          <td>{`call ${index + 1} of ${calls.length}, step ${call.step}`}</td>
          <td>{`${call.provider}/${call.model}`}</td>
          <td>
            <State of={call.status} />
          </td>
          <td data-end="">
            {formatNumber(call.inputTokens)}
            {call.cacheReadTokens > 0 && (
              <div className={ui.muted}>{`${formatNumber(call.cacheReadTokens)} read from a cache`}</div>
            )}
          </td>
          <td data-end="">{formatNumber(call.outputTokens)}</td>
          <td data-end="">{call.durationMs === null ? '' : formatDuration(call.durationMs)}</td>
          <td data-end="">
            {formatUsd(call.costMicroUsd)}
            {call.isEstimated && <div className={ui.muted}>estimated</div>}
          </td>
          <td data-end="">
            <Link to={`/events?open=${call.position}`}>{formatNumber(call.position)}</Link>
          </td>
        </tr>
      ))}
    </Table>
  );
};

/** Summarizes an event without a text that a person deleted. */
const summaryWithout = (event: LogEvent, { message, isAnswerDeleted }: Turn): string => {
  const isMessage = event.type === 'TurnRequested' || event.type === 'ChatMessageEdited';
  return (isMessage ? message.isDeleted : isAnswerDeleted) ? '' : summaryOf(event);
};

type EventsProps = Pick<Explanation, 'events'> & FocusProps & { readonly turn: Turn };

const Events = ({ events, turn, focus }: EventsProps) => (
  <Table label="Events of the turn" columns={[numberColumn('Event'), 'Fact', 'Content', 'Recorded']}>
    {events.map((event) => (
      <tr key={event.position} aria-current={event.position === focus ? 'true' : undefined}>
        <td data-end="">
          <Link to={`/events?open=${event.position}`}>{formatNumber(event.position)}</Link>
        </td>
        <td>{wordsOfType(event.type)}</td>
        <td>
          <VisibleText text={summaryWithout(event, turn)} />
        </td>
        <td>
          <Time at={event.recordedAt} isExact />
        </td>
      </tr>
    ))}
  </Table>
);

const Trace = ({ traceId, correlationId }: Explanation) => (
  <Panel title="Trace" isPadded>
    <dl className={ui.facts}>
      <dt>Trace</dt>
      <dd>
        {traceId === null ? (
          'not traced: set OTEL_EXPORTER_OTLP_ENDPOINT and start again'
        ) : (
          <>
            <code className={ui.mono}>{traceId}</code> <CopyButton text={traceId} label="Copy the trace id" />
          </>
        )}
      </dd>
      <dt>Request</dt>
      <dd>{correlationId === null ? 'unknown' : <code className={ui.mono}>{correlationId}</code>}</dd>
    </dl>
  </Panel>
);

/** Shows the event that the page is about, with its place among those of the turn. */
const FocusedEvent = ({ events, turn, focus }: EventsProps) => {
  const index = events.findIndex(({ position }) => position === focus);
  const event = events[index];
  if (!event) return null;
  return (
    <Panel title={`Event ${formatNumber(event.position)}: ${wordsOfType(event.type)}`} isPadded>
      <p>
        <VisibleText text={summaryWithout(event, turn)} />
      </p>
      <p>
        {`It is event ${index + 1} of ${events.length} of the turn. `}
        <Link to={`/events?open=${event.position}`}>Open the event</Link>
      </p>
    </Panel>
  );
};

const ANSWER_LENGTH = 2_000;

const Answer = ({ turn, sessionId }: { readonly turn: Turn; readonly sessionId: string }) => {
  const answer = answerOf(turn);
  return (
    <Panel title="The answer" isPadded actions={<State of={turn.status} />}>
      <p style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}>
        {answer === '' ? 'There is no text.' : <VisibleText text={answer.slice(0, ANSWER_LENGTH)} />}
        {answer.length > ANSWER_LENGTH && ` … (${formatNumber(answer.length)} characters)`}
      </p>
      <p>
        <Link to={`/sessions/${sessionId}`}>Open the session</Link>
      </p>
    </Panel>
  );
};

interface ExplainedProps extends FocusProps {
  readonly sessionId: string;
  readonly transcript: Transcript;
  readonly turn: Turn;
  readonly explanation: Explanation;
}

const Explained = ({ sessionId, transcript, turn, explanation, focus }: ExplainedProps) => (
  <>
    <PageHead
      title={`Why: ${turn.message.text.slice(0, 80)}${turn.message.length > 80 ? '…' : ''}`}
      tabTitle={`Why · ${turn.message.text.slice(0, 40)} · Sessions`}
      question="What led to this answer: context, facts, events, cost and trace?"
    />
    <div className={pages.stack}>
      <FocusedEvent events={explanation.events} turn={turn} focus={focus} />
      <Answer turn={turn} sessionId={sessionId} />
      {explanation.calls.length > 0 && <ContextShares sessionId={sessionId} turn={turn} />}
      <ContextPanel sessionId={sessionId} transcript={transcript} turn={turn} explanation={explanation} />
      <Panel title={`Cost: ${formatUsd(turn.usage.costMicroUsd)}`}>
        <Cost calls={explanation.calls} />
      </Panel>
      <Panel title="Events">
        <Events events={explanation.events} turn={turn} focus={focus} />
      </Panel>
      <Trace {...explanation} />
    </div>
  </>
);

/** `id` is that of a turn, or the id or position of one of its events. */
const WhyTurn = ({ sessionId, id }: { readonly sessionId: string; readonly id: string }) => {
  const { events, isLoaded, problem, deletions } = useSessionLog(sessionId, { isWhole: true });
  const position = usePosition();
  if (problem) return <ProblemBox problem={problem} />;
  if (!isLoaded) return <Loading what="the session" />;
  const log = position === null ? events : events.filter((event) => event.position <= position);
  const transcript = withoutDeleted(foldEvents(log, null), deletions);
  const found = findFocus(log, id);
  const turn = transcript.turns.find(({ turnId }) => turnId === found?.turnId);
  if (!found || !turn)
    return (
      <>
        <PageHead title="There is no such turn" />
        <Empty
          title={
            position === null
              ? 'The session has no turn or event with this id'
              : 'It came after this position'
          }
        >
          <Link to={`/sessions/${sessionId}`}>Open the session</Link>
        </Empty>
      </>
    );
  const explanation = explainTurn(log, turn.turnId);
  return <Explained {...{ sessionId, transcript, turn, explanation }} focus={found.position} />;
};

const FindTurn = ({ turnId }: { readonly turnId: string }) => {
  const { data, problem, refresh } = useRead('findTurn', { params: { id: turnId } });
  const position = usePosition();
  const isUnknown = problem?.status === 404 || problem?.status === 400;
  if (problem && !isUnknown) return <ProblemBox problem={problem} retry={refresh} />;
  if (data === undefined && !isUnknown) return <Loading what="the turn" />;
  if (data) return <WhyTurn sessionId={data.sessionId} id={turnId} />;
  return (
    <>
      <PageHead title="There is no such turn" />
      <Empty title={turnId}>
        {position !== null && <p>It may have come after event {formatNumber(position)}.</p>}
        <Link to="/sessions">Choose a session</Link>
      </Empty>
    </>
  );
};

/** Leads from an answer to its context, facts, events, cost and trace. */
export const WhyPage = ({ params }: PageProps) => {
  const { id, turn = '' } = params;
  return id === undefined ? <FindTurn turnId={turn} /> : <WhyTurn sessionId={id} id={turn} />;
};
