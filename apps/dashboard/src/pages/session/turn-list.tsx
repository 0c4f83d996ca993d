import { memo } from 'react';
import { hasSingleKeys, isTyping } from '../../app/keys.js';
import { Link, setParams } from '../../data/router.js';
import type { Turn } from '../../data/transcript.js';
import { partsOf, textLengthOf, type Part, type ToolPart } from '../../data/turn-parts.js';
import { requestedDiff } from '../../data/requested-diff.js';
import { ApprovalCard } from '../../ui/approval-card.js';
import { Diff } from '../../ui/diff.js';
import { formatCompact, formatDuration, formatUsd } from '../../ui/format.js';
import { Icon } from '../../ui/icon.js';
import { Code, isLongText, Json } from '../../ui/json.js';
import { Markdown } from '../../ui/markdown.js';
import { Button, State, Time } from '../../ui/ui.js';
import { directionOf } from '../../ui/text-direction.js';
import { VisibleText } from '../../ui/visible-text.js';
import { AnswerSpeaker } from './answer-speaker.js';
import type { Branch } from './branch-dialog.js';
import { startReplay } from './replay-bar.js';
import type { SessionLog } from './session-log.js';
import { GoToTurn, useFollowEnd, useShownTurns } from './turn-window.js';
import type { LiveTexts } from './use-session.js';
import css from './session.module.css';

/** Opens the dialog of a fork or a what-if from a turn. */
export type OpenBranch = (branch: Branch, turn: Turn) => void;

const inputPreview = (input: unknown): string => {
  const text = JSON.stringify(input) ?? '';
  return text.length > 120 ? `${text.slice(0, 120)}… (${text.length} characters)` : text;
};

const Tool = ({ part }: { readonly part: ToolPart }) => {
  const { name, input, output, status, durationMs, approval, callId } = part;
  if (approval?.status === 'pending') return <ApprovalCard approval={{ ...approval, tool: name, input }} />;
  const diff = approval?.preview ?? requestedDiff(name, input);
  return (
    <details className={css.tool} data-call={callId}>
      <summary>
        <Icon name="tool" />
        <span className={css.toolName}>
          <VisibleText text={name} />
        </span>
        <span className={css.toolInput}>
          <VisibleText text={inputPreview(input)} />
        </span>
        {approval && <State of={approval.status} />}
        {approval?.answeredBy && (
          <span className={css.small}>
            by <VisibleText text={approval.answeredBy} />
          </span>
        )}
        <State of={status} />
        {durationMs !== null && <span className={css.small}>{formatDuration(durationMs)}</span>}
      </summary>
      <div className={css.toolBody}>
        {diff && <Diff text={diff} label={`Changes by ${name}`} />}
        <Json value={input} label={`Arguments of ${name}`} />
        {approval?.answeredBy && (
          <p className={css.small}>
            {approval.status} by {approval.answeredBy}
            {approval.reason && (
              <>
                : <VisibleText text={approval.reason} />
              </>
            )}
          </p>
        )}
        {output !== null && <Code text={output} label={`Result of ${name}`} />}
      </div>
    </details>
  );
};

interface PartProps {
  readonly part: Part;
  /** True for a text whose model call is open. */
  readonly isGrowing?: boolean;
}

const PartView = ({ part, isGrowing = false }: PartProps) => {
  if (part.kind === 'tool') return <Tool part={part} />;
  if (part.kind === 'note')
    return (
      <p className={css.note} data-bad={part.isBad ? '' : undefined}>
        <Icon name={part.isBad ? 'warning' : 'dot'} size={14} />
        <VisibleText text={part.text} />
      </p>
    );
  return (
    <>
      {part.thought !== '' && (
        <details className={css.thought}>
          <summary>Reasoning</summary>
          <Markdown text={part.thought} />
        </details>
      )}
      {part.text !== '' && <Markdown text={part.text} isGrowing={isGrowing} />}
    </>
  );
};

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

/**
 * Returns the parts of a turn with keys. The text of an open model call has the key of the part
 * that its end adds, so that its elements stay.
 */
const keyedParts = (turn: Turn, live: string): readonly (PartProps & { readonly key: string })[] => {
  const tail = turn.endedAt === null ? live.slice(textLengthOf(turn)) : '';
  const open: Part = { kind: 'text', key: 'open', text: tail, thought: '' };
  let texts = 0;
  return [...partsOf(turn), ...(tail === '' ? [] : [open])].map((part) => ({
    part,
    key: part.kind === 'text' ? `text ${texts++}` : part.key,
    isGrowing: part === open,
  }));
};

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
        {message.isDeleted ? (
          <p className={css.small}>This message was deleted.</p>
        ) : isLongText(message.text) ? (
          <div className={css.said}>
            <Code text={message.text} label="Long text of the message" />
          </div>
        ) : (
          <p dir={directionOf(message.text)}>
            <VisibleText text={message.text} />
          </p>
        )}
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
  /** True if the list begins with its first turn, not with the end of the conversation. */
  readonly isAtStart?: boolean;
}

const WHOLE = {
  hasEarlier: false,
  hasLater: false,
  loadEarlier: () => undefined,
  loadLater: () => undefined,
};

/** Shows a part of the turns, and more of them on request. */
export const TurnList = (props: TurnListProps) => {
  const { sessionId, turns, texts, openBranch, log = WHOLE, isAtStart = false } = props;
  const { shown, earlier, later } = useShownTurns(turns, log, isAtStart);
  const count = props.count ?? turns.length;
  const last = turns.at(-1);
  const length = last ? (texts.get(last.turnId)?.length ?? 0) : 0;
  useFollowEnd(`${last?.turnId} ${last ? partsOf(last).length : 0} ${length}`, !isAtStart);
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
      <AnswerSpeaker turns={turns} texts={texts} isOff={isAtStart} />
    </>
  );
};
