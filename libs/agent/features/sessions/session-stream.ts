import { sessionStream } from '@antiphon/contracts/agent';
import type { SessionEvent } from '@antiphon/contracts/agent';
import { NOTHING_IN_FLIGHT } from '@antiphon/agent-domain';
import type { InFlight } from '@antiphon/agent-domain';
import type { AppendRequest, EventStore, IdempotencyClaim, Lease, StreamAppend } from '@antiphon/event-store';
import { isAppError } from '@antiphon/kernel';
import type { Clock, Ids, JsonObject } from '@antiphon/kernel';
import type { FoldedEvent, SessionFold } from './session-fold.js';
import type { SessionLog } from './session-log.js';
import { toNewEvents } from './session-events.js';
import type { FrameSender } from './frame-sender.js';
import { trackInFlight } from './track-in-flight.js';
import type { SessionLease } from './session-lease.js';
import { reportEndedTurns } from '../turns/turn-telemetry.js';

/** What is to be appended, together or not at all. */
export interface Decision {
  readonly events: readonly SessionEvent[];
  readonly also?: readonly StreamAppend[];
  readonly idempotency?: IdempotencyClaim;
}

export type Commit<D extends Decision = Decision> =
  | { readonly outcome: 'appended'; readonly decision: D }
  | { readonly outcome: 'nothing' }
  /** An earlier request with the same idempotency key was accepted: its answer. */
  | { readonly outcome: 'joined'; readonly answer: JsonObject };

/** The event stream of one session, followed by its fold. Not for use side by side: the actor puts its uses in order. */
export interface SessionStream {
  fold(): SessionFold;
  /** The fold, if the event stream has been read. */
  known(): SessionFold | null;
  /** What this process began under its lease. */
  hands(): InFlight;
  /** The lease has changed: what was begun under the last one is not in these hands any more. */
  leaseChanged(now: Lease | null): void;
  /** Reads what others have appended. */
  look(): Promise<void>;
  /** Reads only if something may have been missed. */
  lookIfStale(): Promise<void>;
  commit<D extends Decision>(decide: (fold: SessionFold) => D): Promise<Commit<D>>;
}

const codeOf = (error: unknown): string => (isAppError(error) ? error.code : '');
const isConflictOf = (error: unknown, streamId: string): boolean =>
  codeOf(error) === 'LOG.VERSION_CONFLICT' && isAppError(error) && error.data['streamId'] === streamId;

const requestOf = (
  workspace: string,
  own: StreamAppend,
  { also = [], idempotency }: Decision,
  held: Lease | null,
): AppendRequest => ({
  workspace,
  streams: [own, ...also],
  ...(held ? { fence: { lease: held.name, epoch: held.epoch } } : {}),
  ...(idempotency ? { idempotency } : {}),
});

export interface StreamDeps {
  readonly store: EventStore;
  readonly log: SessionLog;
  readonly ids: Ids;
  readonly clock: Clock;
}

export interface StreamParts {
  readonly workspace: string;
  readonly sessionId: string;
  readonly lease: Pick<SessionLease, 'held' | 'confirmed' | 'lost'>;
  readonly sender: FrameSender;
  readonly onChange: () => void;
  /**
   * Called with the fold that an append under the lease will give, while it is on its way; with null when it certainly
   * will not. Nothing that this sets going may be seen outside before the fold is there.
   */
  readonly onComing: (fold: SessionFold | null) => void;
}

/** `known`: the fold of a session that is just being made; that of any other is read when it is first needed. */
export const createSessionStream = (
  { store, log, ids, clock }: StreamDeps,
  { workspace, sessionId, lease, sender, onChange, onComing }: StreamParts,
  known: SessionFold | null,
): SessionStream => {
  const streamId = sessionStream(sessionId);
  let fold = known;
  let stale = false;
  let hands: InFlight = NOTHING_IN_FLIGHT;

  const current = (): SessionFold => {
    if (!fold) throw new Error('a session is read before it is used');
    return fold;
  };
  const moveTo = (advanced: ReturnType<typeof log.advance>): void => {
    fold = advanced.fold;
    sender.send(advanced.frames);
    onChange();
  };
  const apply = (events: readonly FoldedEvent[]): void => {
    if (events.length > 0) moveTo(log.advance(current(), events));
  };
  const look = async (): Promise<void> => {
    if (fold) apply(await log.readOn(workspace, sessionId, fold));
    else {
      fold = await log.load(workspace, sessionId);
      sender.startAfter(fold.cursor.lastOffset);
    }
    stale = false;
  };
  const lookIfStale = async (): Promise<void> => {
    if (!fold || stale) await look();
  };
  const append = async <D extends Decision>(decision: D): Promise<Commit<D>> => {
    const held = lease.held();
    const added = toNewEvents(decision.events, current(), held?.epoch ?? null, ids);
    const own: StreamAppend = { streamId, expectedVersion: current().version, events: added };
    const folded = added.map(({ eventId, metadata }, index) => {
      return { event: decision.events[index] as SessionEvent, eventId, metadata };
    });
    const askedAt = performance.now();
    const appending = store.append(requestOf(workspace, own, decision, held));
    const advanced = log.advance(current(), folded);
    if (held) onComing(advanced.fold);
    const result = await appending;
    if (result.outcome === 'joined') {
      onComing(null);
      return { outcome: 'joined', answer: result.response ?? {} };
    }
    if (held) {
      lease.confirmed(askedAt);
      hands = trackInFlight(hands, decision.events);
    }
    const { agentId = '' } = advanced.fold.state.started ?? {};
    moveTo(advanced);
    reportEndedTurns(folded, { workspace, sessionId, agentId }, clock.now());
    return { outcome: 'appended', decision };
  };
  const commit = async <D extends Decision>(decide: (fold: SessionFold) => D): Promise<Commit<D>> => {
    await lookIfStale();
    const decision = decide(current());
    if (decision.events.length === 0) return { outcome: 'nothing' };
    try {
      return await append(decision);
    } catch (error) {
      // Whether it was written may be unknown: the log says so at the next look.
      stale = true;
      if (isAppError(error) && error.kind === 'conflict') onComing(null);
      if (isConflictOf(error, streamId)) return commit(decide);
      if (codeOf(error) === 'LOG.FENCED') lease.lost();
      throw error;
    }
  };
  const leaseChanged = (now: Lease | null): void => {
    hands = NOTHING_IN_FLIGHT;
    // The first lease of a session has had no holder before it that could have appended.
    stale ||= now !== null && now.epoch > 1;
  };

  return {
    fold: current,
    known: () => fold,
    hands: () => hands,
    leaseChanged,
    look,
    lookIfStale,
    commit,
  };
};
