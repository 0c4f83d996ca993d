import { sessionStream } from '@antiphon/contracts/agent';
import type { MessageFile, TurnRole } from '@antiphon/contracts/agent';
import type { EventStore, RecordedEvent } from '@antiphon/event-store';
import { notFound, rejected } from '@antiphon/kernel';
import { emptyFold } from './session-fold.js';
import type { SessionFold } from './session-fold.js';
import { toFolded } from './session-log.js';
import type { SessionLog } from './session-log.js';

export interface OriginTurn {
  readonly turnId: string;
  readonly content: string;
  readonly files?: readonly MessageFile[] | undefined;
  readonly role?: TurnRole | undefined;
  /** Version of its `TurnRequested`. */
  readonly version: number;
}

/** The parts of a session that a fork needs. */
export interface Origin {
  /** Versions after which no turn is open or queued: the session can be cut there. */
  readonly cuts: readonly number[];
  readonly turns: readonly OriginTurn[];
}

/** State of a session after an event. */
export interface CutAt {
  readonly fold: SessionFold;
  readonly event: RecordedEvent;
}

const PAGE = 500;

type Source = Pick<EventStore, 'readStreamPage'>;

async function* eventsOf(store: Source, workspace: string, sessionId: string): AsyncGenerator<RecordedEvent> {
  for (let after = 0; ;) {
    const options = { fromVersion: after + 1, limit: PAGE };
    const { events, hasMore } = await store.readStreamPage(workspace, sessionStream(sessionId), options);
    yield* events;
    if (!hasMore) return;
    after += events.length;
  }
}

/** Yields the state of a session after each of its events, oldest first. */
export async function* foldsOf(
  store: Source,
  log: SessionLog,
  workspace: string,
  sessionId: string,
): AsyncGenerator<CutAt> {
  let fold = emptyFold;
  for await (const event of eventsOf(store, workspace, sessionId)) {
    fold = log.advance(fold, [toFolded(event)]).fold;
    yield { fold, event };
  }
}

/** Reads a whole session. Throws `SESSION.NOT_FOUND`. */
export const scanOrigin = async (
  store: Source,
  log: SessionLog,
  workspace: string,
  sessionId: string,
): Promise<Origin> => {
  const cuts: number[] = [];
  const turns: OriginTurn[] = [];
  for await (const { fold, event } of foldsOf(store, log, workspace, sessionId)) {
    if (!fold.state.open) cuts.push(fold.version);
    if (event.type !== 'TurnRequested') continue;
    const { turnId, content, files, role } = event.data as unknown as OriginTurn;
    turns.push({ turnId, content, files, role, version: event.streamVersion });
  }
  if (cuts.length === 0) throw notFound('SESSION.NOT_FOUND', `there is no session ${sessionId}`);
  return { cuts, turns };
};

/** Returns the default cut: after the last turn, or before the last `remade` turns. */
const defaultCut = ({ cuts, turns }: Origin, remade: number): number => {
  const first = remade > 0 ? turns.at(-Math.min(remade, turns.length)) : undefined;
  return cuts.findLast((version) => first === undefined || version < first.version) ?? 1;
};

/**
 * Returns the version after which the session is cut. Throws `SESSION.CUT_INSIDE_TURN` or
 * `SESSION.NO_SUCH_VERSION`, whose messages name the nearest possible cuts.
 */
export const chooseCut = (origin: Origin, at: number | undefined, remade: number): number => {
  if (at === undefined) return defaultCut(origin, remade);
  if (origin.cuts.includes(at)) return at;
  const before = origin.cuts.findLast((version) => version < at);
  const after = origin.cuts.find((version) => version > at);
  const nearest = [before, after].filter((version) => version !== undefined).join(' or ');
  if (
    after === undefined &&
    before !== undefined &&
    at > (origin.turns.at(-1)?.version ?? 0) &&
    before > (origin.turns.at(-1)?.version ?? 0)
  )
    throw rejected(
      'SESSION.NO_SUCH_VERSION',
      `the session has ${before} events. What to do: cut it at ${nearest}`,
    );
  const turn = origin.turns.findLast(({ version }) => version <= at);
  throw rejected(
    'SESSION.CUT_INSIDE_TURN',
    `event ${at} lies inside turn ${turn?.turnId ?? '?'}, which a fork could neither drop nor continue with. What to do: cut it at ${nearest}`,
    { data: { before: before ?? null, after: after ?? null } },
  );
};

/** Returns the state of a session after the event of this version. */
export const foldAt = async (
  store: Source,
  log: SessionLog,
  workspace: string,
  sessionId: string,
  version: number,
): Promise<CutAt> => {
  for await (const cut of foldsOf(store, log, workspace, sessionId))
    if (cut.fold.version === version) return cut;
  throw notFound('SESSION.NOT_FOUND', `there is no session ${sessionId} with ${version} events`);
};
