import { memo } from 'react';
import { hasSingleKeys, isTyping } from '../../app/keys.js';
import { Link, setParams } from '../../data/router.js';
import type { Turn } from '../../data/transcript.js';
import { partsOf } from '../../data/turn-parts.js';
import { formatCompact, formatUsd } from '../../ui/format.js';
import { Button, State, Time } from '../../ui/ui.js';
import { AnswerSpeaker } from './answer-speaker.js';
import type { Branch } from './branch-dialog.js';
import { startReplay } from './replay-bar.js';
import type { SessionLog } from './session-log.js';
import { keyedParts, MessageText, PartView } from './turn-parts-view.js';
import { GoToTurn, useFollowEnd, useShownTurns } from './turn-window.js';
import type { LiveTexts } from './use-session.js';
import css from './session.module.css';

/** Opens the dialog of a fork or a what-if from a turn. */
export type OpenBranch = (branch: Branch, turn: Turn) => void;

interface FootProps {
  readonly sessionId: string;
  readonly turn: Turn;
  readonly openBranch: OpenBranch;
}

const TurnFoot = ({ sessionId, turn, openBranch }: FootProps) => {
  const { turnId, endVersion, status, model, usage, firstPosition: position } = turn;
  const { inputTokens, outputTokens, costMicroUsd, cacheReadTokens = 0 } = usage;
  const cached = cacheReadTokens > 0 ? ` (${formatCompact(cacheReadTokens)} cached)` : '';
  return (
    <footer className={css.foot}>
      {status === 'completed' ? null : <State of={status} />}
      <span>{model}</span>
      {outputTokens > 0 && (
        <span>
          {`${formatCompact(inputTokens)}${cached}`} + {formatCompact(outputTokens)} tokens ·{' '}
          {formatUsd(costMicroUsd)}
          {usage.isEstimated && ' · estimated'}
        </span>
      )}
      <Link to={`/sessions/${sessionId}/why/${turnId}`}>Why</Link>
      <Button look="quiet" icon="clock" onClick={() => setParams({ at: position }, {})}>
        As of event {position}
      </Button>
      <Button look="quiet" icon="play" onClick={() => startReplay(position)}>
        Replay
      </Button>
      {endVersion !== null && (
        <>
          <Button look="quiet" icon="fork" onClick={() => openBranch('fork', turn)}>
            Fork here
          </Button>
          <Button look="quiet" icon="next" onClick={() => openBranch('whatif', turn)}>
            What if
          </Button>
        </>
      )}
    </footer>
  );
};

interface TurnViewProps {
  readonly sessionId: string;
  readonly turn: Turn;
  readonly live: string;
  readonly openBranch: OpenBranch;
}

const TurnView = memo(({ sessionId, turn, live, openBranch }: TurnViewProps) => {
  const parts = keyedParts(turn, live);
  const { message } = turn;
  return (
    <article
      className={css.turn}
      data-turn={turn.turnId}
      aria-busy={turn.endedAt === null}
      onKeyDown={(event) => {
        const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
        if (event.key !== 'f' || !isPlain || !hasSingleKeys.get() || isTyping(event.target)) return;
        if (turn.endVersion !== null) openBranch('fork', turn);
      }}
    >
      <div className={css.user}>
        <MessageText message={message} />
        <span className={css.small}>
          <Time at={message.at} />
          {message.editedAt !== null && ' · edited'}
        </span>
      </div>
      <div className={css.answer}>
        {turn.isAnswerDeleted && <p className={css.small}>The answer was deleted.</p>}
        {parts.map(({ key, ...part }) => (
          <PartView key={key} {...part} />
        ))}
        {turn.endedAt === null && parts.length === 0 && <p className={css.small}>thinks …</p>}
        <TurnFoot sessionId={sessionId} turn={turn} openBranch={openBranch} />
      </div>
    </article>
  );
});
TurnView.displayName = 'TurnView';

interface TurnListProps {
  readonly sessionId: string;
  readonly turns: readonly Turn[];
  readonly texts: LiveTexts;
  readonly openBranch: OpenBranch;
  /** Number of all turns of the session; null if `turns` has them all. */
  readonly count?: number;
  readonly log?: Pick<SessionLog, 'hasEarlier' | 'hasLater' | 'loadEarlier' | 'loadLater'>;
  /** Position of the turn with which the list begins; null for the end of the conversation. */
  readonly from?: number | null;
}

const WHOLE = {
  hasEarlier: false,
  hasLater: false,
  loadEarlier: () => undefined,
  loadLater: () => undefined,
};

/** Shows a part of the turns, and more of them on request. */
export const TurnList = (props: TurnListProps) => {
  const { sessionId, turns, texts, openBranch, log = WHOLE, from = null } = props;
  const begin = from === null ? null : { position: from, before: 0 };
  const { shown, earlier, later } = useShownTurns(turns, log, begin);
  const count = props.count ?? turns.length;
  const last = turns.at(-1);
  const length = last ? (texts.get(last.turnId)?.length ?? 0) : 0;
  useFollowEnd(`${last?.turnId} ${last ? partsOf(last).length : 0} ${length}`, from === null);
  return (
    <>
      {count > shown.length && (
        <div className={css.more}>
          {earlier && <Button onClick={earlier}>Show earlier turns</Button>}
          <GoToTurn sessionId={sessionId} count={count} />
        </div>
      )}
      {shown.map((turn) => (
        <TurnView
          key={turn.turnId}
          sessionId={sessionId}
          turn={turn}
          live={texts.get(turn.turnId) ?? ''}
          openBranch={openBranch}
        />
      ))}
      {later && (
        <div className={css.more}>
          <Button onClick={later}>Show later turns</Button>
        </div>
      )}
      <AnswerSpeaker turns={turns} texts={texts} isOff={from !== null} />
    </>
  );
};
