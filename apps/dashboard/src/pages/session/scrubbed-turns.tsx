import { useEffect, useMemo, useReducer, useRef } from 'react';
import { usePosition } from '../../data/router.js';
import { client } from '../../data/gateway.js';
import { HistoryParts } from '../../data/history-parts.js';
import { foldPart, partOfEvents, type History, type ScrubbedTurn } from '../../data/session-scrub.js';
import { State } from '../../ui/ui.js';
import { VisibleText } from '../../ui/visible-text.js';
import type { SessionLog } from './session-log.js';
import css from './session.module.css';

const MAX_TEXT = 1_200;
const EVENTS = 1_000;
const TURNS = 8;

const clip = (text: string): string => (text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text);

const lineOf = (item: ScrubbedTurn['items'][number]): string => {
  if (item.kind === 'tool') return `${item.name}: ${item.approval?.status ?? item.status}`;
  if (item.kind === 'received') return `message of ${item.from}`;
  if (item.kind === 'aborted') return `model call failed: ${item.message}`;
  return item.text;
};

/** A turn while the position is dragged: its texts as they are, without controls. */
const LightTurn = ({ turn }: { readonly turn: ScrubbedTurn }) => (
  <article className={css.turn} data-turn={turn.turnId} data-scrubbed="">
    <div className={css.user}>
      <p>
        {turn.message.isDeleted ? (
          'This message was deleted.'
        ) : (
          <VisibleText text={clip(turn.message.text)} />
        )}
      </p>
    </div>
    <div className={css.answer}>
      {turn.items
        .filter(({ kind }) => kind !== 'thought')
        .map((item, index) => (
          <p key={index} className={css.light}>
            <VisibleText text={clip(lineOf(item))} />
          </p>
        ))}
      <State of={turn.status} />
    </div>
  </article>
);

interface ScrubbedTurnsProps {
  readonly sessionId: string;
  readonly log: SessionLog;
  /** False keeps what was shown last, until the page at rest is read. */
  readonly isDragged: boolean;
}

/** Folds the last turns of a session as of the position, without a request for each position. */
const useScrubbedTurns = ({ sessionId, log, isDragged }: ScrubbedTurnsProps, at: number) => {
  const { events, deletions } = log;
  const [round, refresh] = useReducer((count: number) => count + 1, 0);
  const parts = useRef<HistoryParts<History> | null>(null);
  useEffect(() => {
    const made = new HistoryParts(
      (from, signal) =>
        client.http.readSessionHistory({
          params: { id: sessionId },
          query: { from, limit: EVENTS, turns: TURNS },
          signal,
        }),
      refresh,
    );
    parts.current = made;
    refresh();
    return () => made.close();
  }, [sessionId]);
  const last = useRef<readonly ScrubbedTurn[] | null>(null);
  const found = useMemo(() => {
    if (!isDragged) return null;
    const isLoaded = at <= (events.at(-1)?.position ?? 0);
    const part = (isLoaded ? partOfEvents(events, deletions, at) : null) ?? parts.current?.find(at);
    return part ? foldPart(part, at) : null;
  }, [events, deletions, at, round, isDragged]);
  if (found) last.current = found;
  return { turns: last.current ?? [], isBehind: found === null };
};

/** The last turns as of the position while it is dragged. Turns keep their elements. */
export const ScrubbedTurns = (props: ScrubbedTurnsProps) => {
  const at = usePosition() ?? Number.MAX_SAFE_INTEGER;
  const { turns, isBehind } = useScrubbedTurns(props, at);
  return (
    <section
      className={css.chat}
      aria-label="Conversation"
      aria-busy={isBehind}
      data-outdated={isBehind || undefined}
    >
      {turns.length === 0 && <p className={css.small}>{isBehind ? 'is read …' : 'no turn yet'}</p>}
      {turns.map((turn, index) => (
        <LightTurn key={index} turn={turn} />
      ))}
    </section>
  );
};
