import { memo } from 'react';
import { hasSingleKeys, isTyping } from '../../app/keys.js';
import { Link, setParams } from '../../app/router.js';
import type { Part, ToolPart, Turn } from '../../data/transcript.js';
import { ApprovalCard } from '../../ui/approval-card.js';
import { formatCompact, formatDuration, formatUsd } from '../../ui/format.js';
import { Icon } from '../../ui/icon.js';
import { Code, Json } from '../../ui/json.js';
import { Markdown } from '../../ui/markdown.js';
import { Button, State, Time } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
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
  if (approval?.status === 'pending')
    return <ApprovalCard approval={{ ...approval, id: approval.approvalId, tool: name, input }} />;
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
        <State of={status} />
        {durationMs !== null && <span className={css.small}>{formatDuration(durationMs)}</span>}
      </summary>
      <div className={css.toolBody}>
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

const PartView = ({ part }: { readonly part: Part }) => {
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
      {part.text !== '' && <Markdown text={part.text} />}
    </>
  );
};

interface FootProps {
  readonly sessionId: string;
  readonly turn: Turn;
  readonly openBranch: OpenBranch;
}

const TurnFoot = ({ sessionId, turn, openBranch }: FootProps) => {
  const { turnId, endVersion, status, model, inputTokens, outputTokens, costMicroUsd, position } = turn;
  return (
    <footer className={css.foot}>
      {status === 'completed' ? null : <State of={status} />}
      <span>{model}</span>
      {outputTokens > 0 && (
        <span>
          {formatCompact(inputTokens)} + {formatCompact(outputTokens)} tokens · {formatUsd(costMicroUsd)}
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
  const tail = turn.endedAt === null ? live.slice(turn.textLength) : '';
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
        {turn.deleted.includes('message') ? (
          <p className={css.small}>This message was deleted.</p>
        ) : (
          <p>
            <VisibleText text={turn.content} />
          </p>
        )}
        <span className={css.small}>
          <Time at={turn.requestedAt} />
          {turn.isEdited && ' · edited'}
        </span>
      </div>
      <div className={css.answer}>
        {turn.deleted.includes('answer') && <p className={css.small}>The answer was deleted.</p>}
        {turn.parts.map((part) => (
          <PartView key={part.key} part={part} />
        ))}
        {tail !== '' && <Markdown text={tail} isGrowing />}
        {turn.endedAt === null && tail === '' && turn.parts.length === 0 && (
          <p className={css.small}>thinks …</p>
        )}
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
  useFollowEnd(`${last?.turnId} ${last?.parts.length ?? 0} ${length}`, !isAtStart);
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
      <LastAnswer turn={last} />
    </>
  );
};

/** Tells screen readers when an answer is complete: one message for a turn, not one for a word. */
const LastAnswer = ({ turn }: { readonly turn: Turn | undefined }) => (
  <p className="visually-hidden" role="status">
    {turn && turn.endedAt !== null ? `The answer has ended: ${turn.status}` : ''}
  </p>
);
