import { SessionEvent, sessionStream } from '@antiphon/contracts/agent';
import { currentFormOf, upcast } from '@antiphon/contracts/events';
import { sessionDecider } from '@antiphon/agent-domain';
import type { RecentWindow, SessionDecider } from '@antiphon/agent-domain';
import type { EventStore, RecordedEvent } from '@antiphon/event-store';
import { bug } from '@antiphon/kernel';
import { advanceFold, emptyFold } from './session-fold.js';
import type { AdvanceFold, FoldedEvent, SessionFold } from './session-fold.js';
import type { SessionSnapshots } from './session-snapshots.js';

/** Raise it when the form of `SessionFold` or the meaning of its fields changes. */
const FOLD_FORM = 6;
const PAGE = 1_000;
/** Events folded from the log before a load leaves a snapshot behind. */
export const SNAPSHOT_EVERY = 500;

export const foldSignature = ({ turns, chars }: RecentWindow): string => `${FOLD_FORM}:${turns}:${chars}`;

const KNOWN = new Set<string>(SessionEvent.options.map((option) => option.shape.type.value));

// What is in the log was checked when it was appended; a newer process's event must not be folded half-understood.
export const toFolded = (recorded: RecordedEvent): FoldedEvent => {
  const { type, schemaVersion, data, eventId, metadata } = upcast(recorded);
  if (!KNOWN.has(type) || schemaVersion !== currentFormOf(type))
    throw bug('SESSION.EVENT_UNKNOWN', `this version does not know ${type} in its form ${schemaVersion}`);
  return { event: { type, schemaVersion, data } as unknown as SessionEvent, eventId, metadata };
};

/** Reads sessions from the log: their folds, and what has been added since. */
export interface SessionLog {
  readonly decider: SessionDecider;
  readonly advance: AdvanceFold;
  /** The fold at the end of the event stream; `emptyFold` if there is none. */
  load(workspace: string, sessionId: string): Promise<SessionFold>;
  /** All events after the version of a fold. */
  readOn(workspace: string, sessionId: string, fold: SessionFold): Promise<FoldedEvent[]>;
  snapshot(workspace: string, sessionId: string, fold: SessionFold): Promise<void>;
}

export const createSessionLog = (
  store: Pick<EventStore, 'readStream'>,
  snapshots: SessionSnapshots,
  window: RecentWindow,
): SessionLog => {
  const decider = sessionDecider(window);
  const advance = advanceFold(decider.evolve);
  const page = async (workspace: string, sessionId: string, after: number): Promise<FoldedEvent[]> => {
    const options = { fromVersion: after + 1, limit: PAGE };
    return (await store.readStream(workspace, sessionStream(sessionId), options)).map(toFolded);
  };
  const readOn: SessionLog['readOn'] = async (workspace, sessionId, { version }) => {
    const events: FoldedEvent[] = [];
    for (let full = true; full;) {
      const more = await page(workspace, sessionId, version + events.length);
      events.push(...more);
      full = more.length === PAGE;
    }
    return events;
  };
  const load: SessionLog['load'] = async (workspace, sessionId) => {
    let fold = (await snapshots.read(workspace, sessionId)) ?? emptyFold;
    const from = fold.version;
    for (let full = true; full;) {
      const events = await page(workspace, sessionId, fold.version);
      fold = advance(fold, events).fold;
      full = events.length === PAGE;
    }
    if (fold.version - from >= SNAPSHOT_EVERY) await snapshots.write(workspace, sessionId, fold);
    return fold;
  };
  return { decider, advance, load, readOn, snapshot: snapshots.write };
};
