import type { RouteReply } from '@antiphon/client';
import type { ReactNode } from 'react';
import { Link } from '../../data/router.js';
import { client } from '../../data/gateway.js';
import { toolsOf } from '../../data/compare.js';
import type { Transcript, Turn } from '../../data/transcript.js';
import { partsOf } from '../../data/turn-parts.js';
import { useFetched } from '../../data/use-read.js';
import type { Explanation } from '../../data/why.js';
import { countOf, formatNumber } from '../../ui/format.js';
import { LongText } from '../../ui/json.js';
import { css as ui, Loading, Panel, ProblemBox, Table } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import { pageOfFile } from '../files/open-path.js';
import pages from '../pages.module.css';

type Entry = RouteReply<'queryMemory'>['entries'][number];

interface PartProps {
  readonly what: string;
  readonly position: number | null;
  readonly children: ReactNode;
}

const Part = ({ what, position, children }: PartProps) => (
  <tr>
    <th scope="row">{what}</th>
    <td className={pages.contentCell}>{children}</td>
    <td data-end="">
      {position !== null && <Link to={`/events?open=${position}`}>{formatNumber(position)}</Link>}
    </td>
  </tr>
);

const FILE_WORDS = {
  attached: 'Attached file',
  read: 'File that it read',
  changed: 'File that it changed',
} as const;

const MAX_FACTS = 50;

/** Reads what memory believed at a position; the facts that match the message come first. */
const readFacts = async (
  session: string,
  { at, message }: { readonly at: number; readonly message: string },
  signal: AbortSignal,
): Promise<readonly Entry[]> => {
  const query = { session, at, limit: MAX_FACTS };
  const all = (await client.http.queryMemory({ query, signal })).entries;
  const words = message.trim().slice(0, 200);
  if (words === '' || all.length < 2) return all;
  const best = (await client.http.queryMemory({ query: { ...query, query: words }, signal })).entries;
  const isBest = new Set(best.map(({ memoryId }) => memoryId));
  return [...best, ...all.filter(({ memoryId }) => !isBest.has(memoryId))];
};

const Facts = ({ sessionId, turn, at }: { sessionId: string; turn: Turn; at: number }) => {
  const { data, problem } = useFetched(`why facts ${sessionId} ${at}`, (signal) =>
    readFacts(sessionId, { at, message: turn.message.text }, signal),
  );
  if (problem)
    return (
      <Part what="Memory" position={null}>
        <ProblemBox problem={problem} />
      </Part>
    );
  if (!data)
    return (
      <Part what="Memory" position={null}>
        <Loading what="what memory believed" />
      </Part>
    );
  if (data.length === 0)
    return (
      <Part what="Memory" position={null}>
        <span className={ui.muted}>nothing was learned under this key at event {formatNumber(at)}</span>
      </Part>
    );
  return data.map(({ memoryId, subject, predicate, object, position }) => (
    <Part key={memoryId} what="Fact" position={position}>
      <Link to={`/memory?entry=${memoryId}`}>
        <VisibleText text={`${subject} · ${predicate}: ${object}`} />
      </Link>
    </Part>
  ));
};

interface ContextProps {
  readonly sessionId: string;
  readonly transcript: Transcript;
  readonly turn: Turn;
  readonly explanation: Explanation;
}

const Earlier = ({ sessionId, transcript, turn }: ContextProps) => {
  const earlier = transcript.turns.filter(({ firstVersion }) => firstVersion < turn.firstVersion);
  const { forkedFrom } = transcript;
  return (
    <Part what="Earlier turns" position={earlier.at(-1)?.firstPosition ?? null}>
      {earlier.length === 0 ? 'none in this session' : countOf(earlier.length, 'turn')}
      {earlier.length > 0 && (
        <>
          {', of which the newest fit: '}
          <Link to={`/sessions/${sessionId}?at=${turn.firstPosition}`}>the session as it was</Link>
        </>
      )}
      {forkedFrom && (
        <>
          {'. It continues '}
          <Link to={`/sessions/${forkedFrom.sessionId}`}>its origin</Link>
          {` after event ${forkedFrom.version} of it`}
        </>
      )}
    </Part>
  );
};

/**
 * Shows the texts from which the prompt of a turn is made, each with its event. Facts are here
 * before the first model call only: after it, they are among the parts of its context.
 */
export const ContextPanel = (props: ContextProps) => {
  const { sessionId, transcript, turn, explanation } = props;
  const at = explanation.contextPosition ?? turn.firstPosition;
  const { agentId } = transcript;
  const isBeforeCall = explanation.calls.length === 0;
  return (
    <Panel title={`What the model had before it, at event ${formatNumber(at)}, and its files`}>
      <Table label="Context" columns={['Part', 'Content', { name: 'Event', isNumber: true }]}>
        <Part what="Message" position={turn.firstPosition}>
          <LongText text={turn.message.text} label="Message" />
        </Part>
        <Part what="Instructions" position={null}>
          {agentId && (
            <>
              system prompt and identity of{' '}
              <Link to={`/agents/${encodeURIComponent(agentId)}`}>{agentId}</Link>
            </>
          )}
        </Part>
        <Earlier {...props} />
        {isBeforeCall && <Facts sessionId={sessionId} turn={turn} at={at} />}
        {explanation.files.map(({ path, how, position }) => (
          <Part key={`${how} ${position} ${path}`} what={FILE_WORDS[how]} position={position}>
            <Link to={pageOfFile(path)}>
              <VisibleText text={path} />
            </Link>
          </Part>
        ))}
        {partsOf(turn)
          .filter((part) => part.kind === 'note')
          .map(({ key, text }) => (
            <Part key={key} what="Note" position={null}>
              <LongText text={text} label="Note" />
            </Part>
          ))}
        {toolsOf(turn).map(({ callId, name, output, status }) => (
          <Part key={callId} what={`Result of ${name}`} position={null}>
            {output === null ? status : <LongText text={output} label={`Result of ${name}`} />}
          </Part>
        ))}
      </Table>
    </Panel>
  );
};
