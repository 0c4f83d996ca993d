import { useEffect } from 'react';
import type { Turn } from '../../data/transcript.js';
import { partsOf } from '../../data/turn-parts.js';
import { Button } from '../../ui/ui.js';
import { AnswerSpeaker } from '../session/answer-speaker.js';
import type { SessionLog } from '../session/session-log.js';
import { useFollowEnd, useShownTurns } from '../session/turn-window.js';
import type { LiveTexts } from '../session/use-session.js';
import type { AttachedFile } from './attached-files.js';
import { ChatTurn, type TurnActions } from './chat-turn.js';
import type { Fork } from './use-family.js';
import css from './chats.module.css';

interface ThreadProps {
  /** Turns that have begun, those of the origins first. */
  readonly turns: readonly Turn[];
  /** Session of a turn. */
  readonly sessionOf: (turnId: string) => string;
  readonly texts: LiveTexts;
  readonly files: ReadonlyMap<string, readonly AttachedFile[]>;
  readonly forks: ReadonlyMap<string, Fork>;
  readonly log: Pick<SessionLog, 'hasEarlier' | 'hasLater' | 'loadEarlier' | 'loadLater'>;
  /** Number of turns before those of the log. */
  readonly before: number;
  /** Turn whose message is edited; null for none. */
  readonly edited: string | null;
  readonly actions: TurnActions | null;
  /** Position of the turn that is shown first; null for the end of the chat. */
  readonly from: number | null;
}

/** Turns that are shown before the one that the address names. */
const TURNS_BEFORE = 20;

/** Brings the turn that the address names into view, and marks it. */
const useNamedTurn = (turns: readonly Turn[], from: number | null): void => {
  const turnId = from === null ? undefined : turns.find((turn) => turn.firstPosition >= from)?.turnId;
  useEffect(() => {
    if (turnId === undefined) return;
    const shown = document.querySelector(`[data-turn="${CSS.escape(turnId)}"]`);
    shown?.scrollIntoView({ block: 'center' });
    shown?.setAttribute('data-found', '');
    return () => shown?.removeAttribute('data-found');
  }, [turnId]);
};

const NO_FILES: readonly AttachedFile[] = [];

/** The messages of a chat with their answers, of which a long one has a part in the page. */
export const ChatThread = (props: ThreadProps) => {
  const { turns, sessionOf, texts, files, forks, log, before, edited, actions, from } = props;
  const begin = from === null ? null : { position: from, before: TURNS_BEFORE };
  const { shown, earlier, later } = useShownTurns(turns, log, begin);
  useNamedTurn(turns, from);
  const last = turns.at(-1);
  const length = last ? (texts.get(last.turnId)?.length ?? 0) : 0;
  useFollowEnd(`${last?.turnId} ${last ? partsOf(last).length : 0} ${length}`, from === null);
  const first = shown[0] ? turns.indexOf(shown[0]) : 0;
  return (
    <>
      {earlier && (
        <div className={css.moreTurns}>
          <Button onClick={earlier}>Show earlier messages</Button>
        </div>
      )}
      <div role="feed" aria-label="Conversation" className={css.thread}>
        {shown.map((turn, index) => (
          <ChatTurn
            key={turn.turnId}
            sessionId={sessionOf(turn.turnId)}
            turn={turn}
            live={texts.get(turn.turnId) ?? ''}
            files={files.get(turn.turnId) ?? NO_FILES}
            position={before + first + index + 1}
            count={before + turns.length}
            fork={forks.get(turn.turnId) ?? null}
            isEdited={edited === turn.turnId}
            actions={actions}
          />
        ))}
      </div>
      {later && (
        <div className={css.moreTurns}>
          <Button onClick={later}>Show later messages</Button>
        </div>
      )}
      <AnswerSpeaker turns={turns} texts={texts} isOff={false} />
    </>
  );
};
