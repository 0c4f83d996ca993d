import type { RouteReply } from '@antiphon/client';
import { useState } from 'react';
import { Link } from '../../data/router.js';
import { useAct } from '../../data/act.js';
import { client } from '../../data/gateway.js';
import { useRead } from '../../data/use-read.js';
import { ActButton } from '../../ui/act-button.js';
import { countOf, formatNumber } from '../../ui/format.js';
import { Button, css as ui, Empty, Loading, ProblemBox, State, Table, Time } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import css from '../pages.module.css';

type Letters = RouteReply<'listDeadLetters'>;
type Outcome = RouteReply<'replayDeadLetters'>;
type Target = Parameters<typeof client.http.replayDeadLetters>[0]['body'];
type Replay = (target: Target) => void;

interface RowProps<T> {
  readonly item: T;
  readonly isBusy: boolean;
  readonly replay: Replay;
}

const StreamRow = ({ item, isBusy, replay }: RowProps<Letters['streams'][number]>) => {
  const { projection, streamId, position, type, reason, tries, parkedAt, retryAt } = item;
  return (
    <tr>
      <td>
        <span className={css.name}>{projection}</span>
        <div className={ui.mono}>{streamId}</div>
      </td>
      <td>
        <Link to={`/events?open=${position}`}>{`${type ?? 'archived event'} ${formatNumber(position)}`}</Link>
      </td>
      <td>
        <VisibleText text={reason} />
      </td>
      <td>
        {countOf(tries, 'try').replace('trys', 'tries')}, since <Time at={parkedAt} />
        {retryAt !== null && (
          <>
            , next <Time at={retryAt} />
          </>
        )}
      </td>
      <td data-end="">
        <ActButton
          permission="operations:write"
          isOff={isBusy}
          onClick={() => replay({ projection, streamId })}
        >
          Replay
        </ActButton>
      </td>
    </tr>
  );
};

const MessageRow = ({ item, isBusy, replay }: RowProps<Letters['messages'][number]>) => {
  const { sequence, consumer, subject, code, reason, deliveries, at } = item;
  return (
    <tr>
      <td>
        <span className={css.name}>{consumer}</span>
        <div className={ui.mono}>{subject}</div>
      </td>
      <td className={ui.mono}>{code}</td>
      <td>
        <VisibleText text={reason} />
      </td>
      <td>
        {`delivered ${formatNumber(deliveries)} times, `}
        <Time at={at} />
      </td>
      <td data-end="">
        <ActButton permission="operations:write" isOff={isBusy} onClick={() => replay({ sequence })}>
          Replay
        </ActButton>
      </td>
    </tr>
  );
};

const Result = ({ outcome }: { readonly outcome: Outcome }) => (
  <p className={css.pad} role="status">
    <State of={outcome.failed.length === 0 ? 'ok' : 'failed'}>{`${outcome.replayed} replayed`}</State>{' '}
    {outcome.failed.length > 0 && (
      <VisibleText text={`failed again: ${outcome.failed.map(({ reason }) => reason).join('; ')}`} />
    )}
  </p>
);

const COLUMNS = ['What stopped', 'At', 'Reason', 'Tries', { name: 'Act', isNumber: true }];

/** Events and messages that could not be handled, and their replay. */
export const DeadLetters = () => {
  const [after, setAfter] = useState(0);
  const { data, problem, refresh } = useRead('listDeadLetters', { query: { after } }, { hasPast: false });
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const act = useAct();
  const replay: Replay = (body) =>
    act.run(async () => {
      setOutcome(await client.http.replayDeadLetters({ body }));
      refresh();
    });
  if (problem) return <ProblemBox problem={problem} retry={refresh} />;
  if (!data) return <Loading what="dead letters" />;
  const { messages, hasMore, nextAfter } = data;
  // Event streams that have stopped are few: they are all on the first page.
  const streams = after === 0 ? data.streams : [];
  return (
    <>
      {act.problem && <ProblemBox problem={act.problem} />}
      {outcome && <Result outcome={outcome} />}
      {streams.length + messages.length === 0 ? (
        <Empty
          title={hasMore || after > 0 ? 'There is no dead letter on this page' : 'There is no dead letter'}
        >
          <p>An event or a message that cannot be handled after some tries appears here, with its reason.</p>
        </Empty>
      ) : (
        <Table label="Dead letters" columns={COLUMNS}>
          {streams.map((item) => (
            <StreamRow
              key={`${item.projection} ${item.streamId}`}
              {...{ item, replay }}
              isBusy={act.isBusy}
            />
          ))}
          {messages.map((item) => (
            <MessageRow key={item.sequence} {...{ item, replay }} isBusy={act.isBusy} />
          ))}
        </Table>
      )}
      {(hasMore || after > 0) && (
        <p className={css.pad}>
          The oldest are first. {after > 0 && <Button onClick={() => setAfter(0)}>First page</Button>}{' '}
          {nextAfter !== null && <Button onClick={() => setAfter(nextAfter)}>Next page</Button>}
        </p>
      )}
    </>
  );
};
