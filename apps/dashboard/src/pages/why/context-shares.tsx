import type { RouteReply } from '@antiphon/client';
import { useState, type ReactNode } from 'react';
import { Link } from '../../data/router.js';
import { toolsOf } from '../../data/compare.js';
import type { Turn } from '../../data/transcript.js';
import { useRead } from '../../data/use-read.js';
import { countOf, formatBytes, formatNumber } from '../../ui/format.js';
import { css as ui, Field, Loading, Panel, ProblemBox, Table, numberColumn } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import { pageOfFile } from '../files/open-path.js';
import { WithText, type PartTexts } from './part-text.js';
import pages from '../pages.module.css';

/** The context of a model call, as the API describes it. */
export type ContextView = RouteReply<'readTurnContext'>;
type View = ContextView;

interface PartProps {
  readonly what: string;
  readonly tokens: number;
  readonly total: number;
  readonly position?: number | null;
  readonly children: ReactNode;
}

const percentOf = (tokens: number, total: number): number => (total === 0 ? 0 : (tokens / total) * 100);

const Part = ({ what, tokens, total, position = null, children }: PartProps) => {
  const percent = percentOf(tokens, total);
  return (
    <tr>
      <th scope="row">{what}</th>
      <td className={pages.contentCell}>{children}</td>
      <td className={pages.barCell}>
        {`${percent.toFixed(percent < 10 ? 1 : 0)} %`}
        <div className={pages.bar} style={{ width: `${percent}%` }} aria-hidden="true" />
      </td>
      <td data-end="">{formatNumber(tokens)}</td>
      <td data-end="">
        {position !== null && <Link to={`/events?open=${position}`}>{formatNumber(position)}</Link>}
      </td>
    </tr>
  );
};

const CURRENT = <span className={ui.muted}> current: no fact records it</span>;

const Instructions = ({ instructions, identity, agentId, tokens: total }: View) => (
  <>
    {identity && (
      <Part what="Identity" tokens={identity.tokens} total={total}>
        identity files of <Link to={`/agents/${encodeURIComponent(agentId)}`}>{agentId}</Link>,{CURRENT}
      </Part>
    )}
    <Part what="Instructions" tokens={instructions.tokens} total={total}>
      {instructions.source === 'none' && 'none'}
      {instructions.source === 'configuration' && (
        <>
          prompt of <Link to={`/agents/${encodeURIComponent(agentId)}`}>{agentId}</Link>,{CURRENT}
        </>
      )}
      {instructions.source === 'role_file' && (
        <>
          <VisibleText text={instructions.path ?? ''} />, version{' '}
          <code className={ui.mono}>{(instructions.digest ?? '').slice(0, 12)}</code>
          {instructions.isErased && ' (erased)'}
        </>
      )}
    </Part>
  </>
);

const Memory = ({ memory, tokens: total }: View) => {
  if (memory === null)
    return (
      <Part what="Memory" tokens={0} total={total}>
        <span className={ui.muted}>Facts are not shown without the permission memory:read</span>
      </Part>
    );
  return (
    <>
      <Part what="Memory" tokens={memory.tokens} total={total}>
        {`${countOf(memory.facts.length, 'fact')} as of event ${formatNumber(memory.position)}`}
        {memory.leftOut > 0 && `; ${formatNumber(memory.leftOut)} did not fit`}
      </Part>
      {memory.facts.map(({ memoryId, subject, predicate, object, tokens }) => (
        <Part key={memoryId} what="Fact" tokens={tokens} total={total}>
          <Link to={`/memory?entry=${memoryId}`}>
            <VisibleText text={`${subject} · ${predicate}: ${object}`} />
          </Link>
        </Part>
      ))}
    </>
  );
};

const REASONS = { window: 'older than the newest turns', room: 'too large for the rest' } as const;
const FORMS = { whole: 'whole', without_tools: 'without its tool calls', left_out: 'left out' } as const;

const Turns = ({ sessionId, turns, earlierTurns, window, tokens: total }: View) => {
  const inside = turns.filter(({ form }) => form !== 'left_out').length;
  const sum = turns.reduce((all, { tokens }) => all + tokens, 0);
  return (
    <>
      <Part what="Earlier turns" tokens={sum} total={total}>
        {earlierTurns === 0
          ? 'none'
          : `${formatNumber(inside)} of ${formatNumber(earlierTurns)}, at most ${formatNumber(window)}`}
      </Part>
      {turns.map(({ turnId, form, reason, tokens, position }) => (
        <Part key={turnId} what="Turn" tokens={tokens} total={total} position={position}>
          <Link to={position === null ? `/why/${turnId}` : `/sessions/${sessionId}/why/${turnId}`}>
            {FORMS[form]}
          </Link>
          {reason && `: ${REASONS[reason]}`}
        </Part>
      ))}
    </>
  );
};

const Rest = ({
  files,
  message,
  results,
  tools,
  tokens: total,
  texts,
}: View & { texts?: PartTexts | undefined }) => (
  <>
    {files.map(({ path, size, tokens, isCut, position }) => (
      <Part key={path} what="Attached file" tokens={tokens} total={total} position={position}>
        <Link to={pageOfFile(path)}>
          <VisibleText text={path} />
        </Link>
        {` (${formatBytes(size)}${isCut ? ', cut' : ''})`}
      </Part>
    ))}
    <Part what="Message" tokens={message.tokens} total={total} position={message.position}>
      <WithText text={texts?.message} label="Text of the message">
        {message.received === 0
          ? 'and what the turn had done before this call'
          : `with ${countOf(message.received, 'message')} of other agents, and what the turn had done before this call`}
      </WithText>
    </Part>
    {results.map(({ callId, name, tokens, wholeTokens }) => (
      <Part key={callId} what="Tool result" tokens={tokens} total={total}>
        <WithText text={texts?.results.get(callId)} label={`Whole result of ${name} in the context`}>
          {name}
          {wholeTokens > tokens && `, clipped from ${formatNumber(wholeTokens)} tokens`}
        </WithText>
      </Part>
    ))}
    <Part what="Tools" tokens={tools.reduce((sum, { tokens }) => sum + tokens, 0)} total={total}>
      {tools.length === 0 ? (
        'none'
      ) : (
        <>
          {tools.map(({ name }) => name).join(', ')},{CURRENT}
        </>
      )}
    </Part>
  </>
);

const Footer = ({ promptHash }: View) => (
  <p className={ui.muted}>
    {promptHash === null ? (
      'A part of it is deleted, so that it has no hash.'
    ) : (
      <>
        SHA-256 as built again: <code className={ui.mono}>{promptHash}</code>
      </>
    )}
  </p>
);

interface ContextTableProps {
  readonly view: ContextView;
  readonly texts?: PartTexts;
  /** Shows another model call of the turn. */
  readonly choose: (attempt: number) => void;
}

/** Shows the parts of the context of a model call with their shares of its estimated tokens. */
export const ContextTable = ({ view, texts, choose }: ContextTableProps) => {
  const { tokens, limitTokens, attempts, call } = view;
  return (
    <Panel
      title={`Context by tokens: about ${formatNumber(tokens)} of at most ${formatNumber(limitTokens)}`}
      actions={
        attempts.length > 1 && (
          <Field label="Model call">
            {(given) => (
              <select {...given} value={call.attempt} onChange={(e) => choose(Number(e.target.value))}>
                {attempts.map((one, index) => (
                  <option key={one} value={one}>{`call ${index + 1} of ${attempts.length}`}</option>
                ))}
              </select>
            )}
          </Field>
        )
      }
    >
      <Table
        label="Context by tokens"
        columns={['Part', 'Content', 'Share', numberColumn('Tokens'), numberColumn('Event')]}
      >
        <Instructions {...view} />
        <Memory {...view} />
        <Rest {...view} texts={texts} />
        <Turns {...view} />
      </Table>
      <div className={ui.panelBody}>
        <Footer {...view} />
      </div>
    </Panel>
  );
};

interface ContextSharesProps {
  readonly sessionId: string;
  readonly turn: Turn;
}

/** Reads the context of the newest model call of a turn, or of the chosen one. */
export const ContextShares = ({ sessionId, turn }: ContextSharesProps) => {
  const { turnId } = turn;
  const [attempt, setAttempt] = useState<number | undefined>(undefined);
  const query = attempt === undefined ? {} : { attempt };
  const { data, problem, refresh } = useRead(
    'readTurnContext',
    { params: { id: sessionId, turn: turnId }, query },
    {
      changesOn: ({ type, data: fields }) =>
        type === 'ModelCallStarted' && (fields as Readonly<Record<string, unknown>>)['turnId'] === turnId,
    },
  );
  if (problem && !data)
    return (
      <Panel title="Context by tokens" isPadded>
        <ProblemBox problem={problem} retry={refresh} />
      </Panel>
    );
  if (!data)
    return (
      <Panel title="Context by tokens" isPadded>
        <Loading what="the context" />
      </Panel>
    );
  const results = toolsOf(turn).flatMap(({ callId, output }) =>
    output === null ? [] : [[callId, output] as const],
  );
  const texts = { message: turn.message.text, results: new Map(results) };
  return <ContextTable view={data} texts={texts} choose={setAttempt} />;
};
