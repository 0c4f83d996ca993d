import { memo } from 'react';
import type { Turn } from '../../data/transcript.js';
import { partsOf } from '../../data/turn-parts.js';
import { formatUsd } from '../../ui/format.js';
import { Link } from '../../data/router.js';
import { CopyButton, State, Time } from '../../ui/ui.js';
import { keyedParts, MessageText, PartView } from '../session/turn-parts-view.js';
import session from '../session/session.module.css';
import { foldParts, ToolGroup } from './tool-groups.js';
import { TurnFiles } from './turn-files.js';
import type { AttachedFile } from './attached-files.js';
import css from './chats.module.css';

interface ChatTurnProps {
  readonly sessionId: string;
  readonly turn: Turn;
  readonly live: string;
  readonly files: readonly AttachedFile[];
  readonly position: number;
  readonly count: number;
}

/** Returns the text of an answer. */
const answerOf = (turn: Turn): string =>
  partsOf(turn)
    .flatMap((part) => (part.kind === 'text' ? [part.text] : []))
    .join('\n\n');

const Foot = ({ sessionId, turn }: Pick<ChatTurnProps, 'sessionId' | 'turn'>) => {
  const { turnId, status, model, usage } = turn;
  const answer = answerOf(turn);
  return (
    <footer className={css.foot}>
      {answer !== '' && <CopyButton text={answer} label="Copy the answer" />}
      {status !== 'completed' && <State of={status} />}
      <span className={css.more}>
        <Link to={`/sessions/${sessionId}/why/${turnId}`}>Why</Link>
        <span>{model}</span>
        {usage.outputTokens > 0 && <span>{formatUsd(usage.costMicroUsd)}</span>}
      </span>
    </footer>
  );
};

/** A message of a chat with its answer. */
export const ChatTurn = memo((props: ChatTurnProps) => {
  const { sessionId, turn, live, files, position, count } = props;
  const parts = keyedParts(turn, live);
  const { message, endedAt } = turn;
  return (
    <article
      className={css.turn}
      data-turn={turn.turnId}
      aria-busy={endedAt === null}
      aria-posinset={position}
      aria-setsize={count}
      aria-label={`Message ${position} of ${count}`}
    >
      <div className={css.said}>
        <div className={session.user}>
          <MessageText message={message} />
          <span className={session.small}>
            <Time at={message.at} />
            {message.editedAt !== null && ' · edited'}
          </span>
        </div>
        {files.length > 0 && <TurnFiles sessionId={sessionId} turn={turn} files={files} />}
        <span className={css.saidActions}>
          {!message.isDeleted && <CopyButton text={message.text} label="Copy the message" />}
        </span>
      </div>
      <div className={session.answer}>
        {turn.isAnswerDeleted && <p className={session.small}>The answer was deleted.</p>}
        {foldParts(parts).map((entry) =>
          'group' in entry ? (
            <ToolGroup key={entry.key} parts={entry.group} />
          ) : (
            <PartView key={entry.key} part={entry.part} isGrowing={entry.isGrowing ?? false} />
          ),
        )}
        {endedAt === null && parts.length === 0 && <p className={session.small}>thinks …</p>}
        {endedAt !== null && <Foot sessionId={sessionId} turn={turn} />}
      </div>
    </article>
  );
});
ChatTurn.displayName = 'ChatTurn';
