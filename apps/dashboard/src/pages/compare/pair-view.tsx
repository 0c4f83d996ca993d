import { Link } from '../../data/router.js';
import { answerOf, differenceOf, toolsOf, type Field, type TurnPair } from '../../data/compare.js';
import type { Turn } from '../../data/transcript.js';
import { formatCompact, formatUsd } from '../../ui/format.js';
import { css as ui, State } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import pages from '../pages.module.css';
import css from './compare.module.css';

/** A text in which the part that differs from another one is marked. */
const Marked = ({ text, other }: { readonly text: string; readonly other: string | null }) => {
  if (other === null || other === text) return <VisibleText text={text} />;
  const { before, a, after } = differenceOf(text, other);
  return (
    <>
      <VisibleText text={before} />
      {a !== '' && (
        <mark>
          <VisibleText text={a} />
        </mark>
      )}
      <VisibleText text={after} />
    </>
  );
};

const Tools = ({ turn, side }: { readonly turn: Turn; readonly side: string }) => {
  const tools = toolsOf(turn);
  if (tools.length === 0) return <p className={ui.muted}>no tool call</p>;
  return (
    <ul className={css.tools} aria-label="Tool calls">
      {tools.map(({ callId, name, input, status, output }) => (
        <li key={callId}>
          <code className={ui.mono}>
            <VisibleText text={`${name}(${JSON.stringify(input)})`} />
          </code>{' '}
          <State of={status} />
          {output !== null && (
            <div className={css.output} tabIndex={0} role="region" aria-label={`Result of ${name} (${side})`}>
              <VisibleText text={output} />
            </div>
          )}
        </li>
      ))}
    </ul>
  );
};

interface SideProps {
  readonly name: string;
  readonly sessionId: string;
  readonly turn: Turn | null;
  readonly other: Turn | null;
}

const TurnSide = ({ name, sessionId, turn, other }: SideProps) => {
  if (!turn)
    return (
      <div className={css.side} data-side={name}>
        <p className={ui.muted}>This session has no such turn.</p>
      </div>
    );
  const { turnId, message, status, model, usage } = turn;
  return (
    <div className={css.side} data-side={name}>
      <p className={css.message}>
        <Marked text={message.text} other={other?.message.text ?? null} />
      </p>
      <Tools turn={turn} side={name} />
      <div className={css.answer} tabIndex={0} role="region" aria-label={`Answer on the ${name}`}>
        <Marked text={answerOf(turn)} other={other && answerOf(other)} />
      </div>
      <p className={css.figures}>
        <State of={status} />
        <span>{model ?? 'no model call'}</span>
        <span>
          {formatCompact(usage.inputTokens)} + {formatCompact(usage.outputTokens)} tokens
        </span>
        <span>{formatUsd(usage.costMicroUsd)}</span>
        <Link to={`/sessions/${sessionId}/why/${turnId}`}>Why this answer</Link>
      </p>
    </div>
  );
};

const WORDS: Readonly<Record<Field, string>> = {
  message: 'message differs',
  status: 'state differs',
  model: 'model differs',
  answer: 'answer differs',
  tools: 'tool calls differ',
  cost: 'cost differs',
};

interface PairProps {
  readonly pair: TurnPair;
  readonly number: number;
  readonly a: string;
  readonly b: string;
}

/** Shows a turn of each session, and in what they differ. */
export const PairView = ({ pair, number, a, b }: PairProps) => {
  const isDifferent = pair.differs.some((field) => field !== 'cost');
  const tags = pair.a && pair.b ? pair.differs.map((field) => WORDS[field]) : ['only one side has it'];
  return (
    <section
      className={ui.panel}
      aria-label={`Turn ${number}`}
      tabIndex={-1}
      data-differs={isDifferent ? '' : undefined}
    >
      <div className={ui.panelHead}>
        <h2>Turn {number}</h2>
        <div className={pages.tags}>
          {tags.length === 0 && <State of="ok">equal</State>}
          {tags.map((tag) => (
            <span key={tag} className={pages.tag}>
              {tag}
            </span>
          ))}
        </div>
      </div>
      <div className={css.sides}>
        <TurnSide name="left" sessionId={a} turn={pair.a} other={pair.b} />
        <TurnSide name="right" sessionId={b} turn={pair.b} other={pair.a} />
      </div>
    </section>
  );
};
