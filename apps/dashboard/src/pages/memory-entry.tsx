import type { RouteReply } from '@antiphon/client';
import { Link, setParams } from '../data/router.js';
import { isAbout } from '../data/event-pages.js';
import { useList } from '../data/use-list.js';
import { useRead } from '../data/use-read.js';
import { CopyRecord, quoteWord } from '../ui/copy-record.js';
import { formatNumber } from '../ui/format.js';
import { ShowMore } from './show-more.js';
import {
  css as ui,
  IconButton,
  Id,
  Loading,
  numberColumn,
  Panel,
  ProblemBox,
  State,
  Table,
  Time,
} from '../ui/ui.js';
import { VisibleText } from '../ui/visible-text.js';
import css from './pages.module.css';

type Entry = RouteReply<'queryMemory'>['entries'][number];

/** Shows whether an entry is believed, or when a newer one replaced it. */
export const BelievedState = ({ supersededAt }: Pick<Entry, 'supersededAt'>) =>
  supersededAt === null ? (
    <State of="ok">believed</State>
  ) : (
    <State of="expired">
      replaced <Time at={supersededAt} />
    </State>
  );

const Facts = ({ entry }: { readonly entry: Entry }) => (
  <dl className={ui.facts}>
    <dt>Fact</dt>
    <dd>
      <VisibleText text={entry.text} />
    </dd>
    <dt>Confidence</dt>
    <dd>{Math.round(entry.confidence * 100)} %</dd>
    <dt>Learned</dt>
    <dd>
      <Time at={entry.learnedAt} isExact />
    </dd>
    <dt>State</dt>
    <dd>
      <BelievedState supersededAt={entry.supersededAt} />
    </dd>
    <dt>Message</dt>
    <dd>
      {entry.source ? <VisibleText text={entry.source.content} /> : 'archived'}{' '}
      {entry.source && <Link to={`/sessions/${entry.source.sessionId}`}>Open its session</Link>}
    </dd>
    <dt>Id</dt>
    <dd>
      <Id id={entry.memoryId} isWhole />
    </dd>
  </dl>
);

/** Turns whose context had the entry, each with a link to why it was answered so. */
const UsedBy = ({ id }: { readonly id: string }) => {
  const request = { params: { memoryId: id }, query: {} };
  const list = useList('listTurnsOfEntry', request, { changesOn: isAbout('session') });
  const { data, problem, refresh, hasMore } = list;
  if (problem) return <ProblemBox problem={problem} retry={refresh} />;
  if (!data) return <Loading what="the turns that used it" />;
  return (
    <>
      {data.turns.length === 0 ? (
        <p className={css.pad}>
          {hasMore ? 'None of the newest turns used it.' : 'No turn has used it yet.'}
        </p>
      ) : (
        <Table
          label="Turns that used the entry"
          columns={['Requested', 'Message', 'Session', numberColumn('Event')]}
        >
          {data.turns.map(({ turnId, sessionId, requestedAt, content, position }) => (
            <tr key={turnId}>
              <td>
                <Time at={requestedAt} />
              </td>
              <td>
                <Link to={`/sessions/${sessionId}/why/${turnId}`}>
                  {content === null ? 'a deleted message' : <VisibleText text={content} />}
                </Link>
              </td>
              <td>
                <Link to={`/sessions/${sessionId}`}>
                  <Id id={sessionId} />
                </Link>
              </td>
              <td data-end="">
                <Link to={`/events?open=${position}`}>{formatNumber(position)}</Link>
              </td>
            </tr>
          ))}
        </Table>
      )}
      <ShowMore list={list} what="turns" count={data.turns.length} />
    </>
  );
};

const OneEntry = ({ id }: { readonly id: string }) => {
  const { data, problem, refresh } = useRead(
    'recallMemory',
    { params: { memoryId: id } },
    { changesOn: isAbout('memory', 'session') },
  );
  return (
    <Panel
      title="Entry"
      isPadded
      actions={
        <>
          <CopyRecord noun="entry" json={`/memory/${id}`} command={`antiphon memory show ${quoteWord(id)}`} />
          <IconButton icon="close" label="Close the entry" onClick={() => setParams({ entry: null })} />
        </>
      }
    >
      {problem && <ProblemBox problem={problem} retry={refresh} />}
      {!problem && !data && <Loading what="the entry" />}
      {data && <Facts entry={data} />}
    </Panel>
  );
};

/** One entry with its message and the turns that used it, as of the position of the page. */
export const OpenedEntry = ({ id }: { readonly id: string }) => (
  <>
    <OneEntry id={id} />
    <Panel title="Turns that used the entry">
      <UsedBy id={id} />
    </Panel>
  </>
);
