import { memo, useState, type MouseEvent } from 'react';
import type { Turn } from '../../data/transcript.js';
import { partsOf } from '../../data/turn-parts.js';
import { formatUsd } from '../../ui/format.js';
import { Link } from '../../data/router.js';
import { Button, CopyButton, IconButton, State, Time } from '../../ui/ui.js';
import { keyedParts, MessageText, PartView } from '../session/turn-parts-view.js';
import session from '../session/session.module.css';
import type { AttachedFile } from './attached-files.js';
import { BranchControl } from './branch-control.js';
import { EditMessage } from './edit-message.js';
import { foldParts, ToolGroup } from './tool-groups.js';
import { TurnFiles } from './turn-files.js';
import type { StartBranch } from './use-branching.js';
import type { Fork } from './use-family.js';
import css from './chats.module.css';

/** Actions on the messages of a chat. */
export interface TurnActions {
  readonly branch: StartBranch;
  /** Session of the chat itself, whose messages can be corrected. */
  readonly own: string;
  /** Gives a message another text for later messages. */
  readonly correct: (turnId: string, content: string) => void;
  /** Opens the editor of a message; null closes it. */
  readonly edit: (turnId: string | null) => void;
}

interface ChatTurnProps {
  /** Session that has the turn: the one of the chat, or of an origin. */
  readonly sessionId: string;
  readonly turn: Turn;
  readonly live: string;
  readonly files: readonly AttachedFile[];
  readonly position: number;
  readonly count: number;
  readonly fork: Fork | null;
  readonly isEdited: boolean;
  /** Null in the past. */
  readonly actions: TurnActions | null;
}

/** Returns the text of an answer. */
const answerOf = (turn: Turn): string =>
  partsOf(turn)
    .flatMap((part) => (part.kind === 'text' ? [part.text] : []))
    .join('\n\n');

type FootProps = Pick<ChatTurnProps, 'sessionId' | 'turn' | 'fork' | 'actions'>;

const Foot = ({ sessionId, turn, fork, actions }: FootProps) => {
  const { turnId, status, model, usage, message } = turn;
  const answer = answerOf(turn);
  const tryAgain = (asks: boolean) => (): void =>
    actions?.branch({ turn, sessionId, content: message.text }, asks);
  return (
    <footer className={css.foot}>
      {answer !== '' && <CopyButton text={answer} label="Copy the answer" />}
      {status !== 'completed' && <State of={status} />}
      {fork && <BranchControl fork={fork} />}
      <span className={css.more}>
        {actions && !message.isDeleted && (
          <>
            <Button look="quiet" icon="redo" onClick={tryAgain(false)}>
              Try again
            </Button>
            <Button look="quiet" onClick={tryAgain(true)}>
              with another role
            </Button>
          </>
        )}
        <Link to={`/sessions/${sessionId}/why/${turnId}`}>Why</Link>
        <span>{model}</span>
        {usage.outputTokens > 0 && <span>{formatUsd(usage.costMicroUsd)}</span>}
      </span>
    </footer>
  );
};

const Said = ({ sessionId, turn, files, isEdited, actions }: Omit<ChatTurnProps, 'live'>) => {
  const { message, turnId, endedAt } = turn;
  if (isEdited && actions)
    return (
      <EditMessage
        text={message.text}
        onSend={(content) => {
          actions.edit(null);
          actions.branch({ turn, sessionId, content });
        }}
        onCorrect={
          sessionId === actions.own
            ? (content) => {
                actions.edit(null);
                actions.correct(turnId, content);
              }
            : undefined
        }
        onClose={() => actions.edit(null)}
      />
    );
  return (
    <div className={css.said}>
      <div className={session.user}>
        <MessageText message={message} />
        <span className={session.small}>
          <Time at={message.at} />
          {message.editedAt !== null && ' · edited'}
        </span>
      </div>
      {files.length > 0 && <TurnFiles sessionId={sessionId} turn={turn} files={files} />}
      {!message.isDeleted && (
        <span className={css.saidActions}>
          {actions && endedAt !== null && (
            <IconButton icon="pencil" label="Edit and send again" onClick={() => actions.edit(turnId)} />
          )}
          <CopyButton text={message.text} label="Copy the message" />
        </span>
      )}
    </div>
  );
};

const NONE_OPENED: ReadonlySet<string> = new Set();

/** Returns the tool call that a click opens or closes; null for one within a group. */
const callOfClick = ({ target }: MouseEvent): string | null => {
  const summary = target instanceof Element ? target.closest('summary') : null;
  const call = summary?.parentElement;
  return call && !call.closest('[data-group]') ? (call.dataset['call'] ?? null) : null;
};

/** A message of a chat with its answer. */
export const ChatTurn = memo((props: ChatTurnProps) => {
  const { turn, live, position, count } = props;
  const parts = keyedParts(turn, live);
  const { endedAt } = turn;
  const [opened, setOpened] = useState<ReadonlySet<string>>(NONE_OPENED);
  return (
    <article
      className={css.turn}
      data-turn={turn.turnId}
      aria-busy={endedAt === null}
      aria-posinset={position}
      aria-setsize={count}
      aria-label={`Message ${position} of ${count}`}
    >
      <Said {...props} />
      <div
        className={session.answer}
        onClick={(event) => {
          const call = callOfClick(event);
          if (call !== null) setOpened((before) => new Set([...before, call]));
        }}
      >
        {turn.isAnswerDeleted && <p className={session.small}>The answer was deleted.</p>}
        {foldParts(parts, opened).map((entry) =>
          'group' in entry ? (
            <ToolGroup key={entry.key} parts={entry.group} />
          ) : (
            <PartView key={entry.key} part={entry.part} isGrowing={entry.isGrowing ?? false} />
          ),
        )}
        {endedAt === null && parts.length === 0 && <p className={session.small}>thinks …</p>}
        {endedAt !== null && <Foot {...props} />}
        {endedAt === null && props.fork && <BranchControl fork={props.fork} />}
      </div>
    </article>
  );
});
ChatTurn.displayName = 'ChatTurn';
