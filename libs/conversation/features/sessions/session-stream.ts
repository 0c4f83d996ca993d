import { isTurnEnd, sessionStream } from '@antiphon/contracts/agent';
import type { Frame, SessionEvent } from '@antiphon/contracts/agent';
import { CallExtensionResult } from '@antiphon/contracts/metering';
import type { CallExtension } from '@antiphon/contracts/metering';
import { NOTHING_IN_FLIGHT } from '@antiphon/conversation-domain';
import type { InFlight } from '@antiphon/conversation-domain';
import { createFactLog, isVersionConflict, retryConflicts } from '@antiphon/event-store';
import type {
  AppendDecision,
  AppendResult,
  EventStore,
  FactLog,
  Lease,
  StreamAppend,
} from '@antiphon/event-store';
import { bug, isAppError } from '@antiphon/kernel';
import type { Ids, JsonObject } from '@antiphon/kernel';
import { toNewEvents } from './session-events.js';
import type { FoldedEvent, SessionFold } from './session-fold.js';
import type { SessionLease } from './session-lease.js';
import type { SessionLog } from './session-log.js';
import type { SessionRef } from './session-queries.js';

/** Events to append in one transaction, with what must be appended together with them. */
export interface Decision extends Omit<AppendDecision<SessionEvent>, 'also' | 'fence' | 'extension'> {
  readonly also?: readonly StreamAppend[];
  /** Work of metering for the same commit (`AppendRequest.extension`). */
  readonly extension?: CallExtension;
}

export type Commit<D extends Decision = Decision> =
  | { readonly outcome: 'appended'; readonly decision: D; readonly extended: CallExtensionResult | null }
  | { readonly outcome: 'nothing' }
  /** An earlier request with the same idempotency key was accepted; `answer` is its response. */
  | { readonly outcome: 'joined'; readonly answer: JsonObject };

export interface StreamDeps {
  readonly store: EventStore;
  readonly log: SessionLog;
  readonly ids: Ids;
  /** Called after each append of this process, for measurements. */
  readonly onAppended: (events: readonly FoldedEvent[], session: SessionRef, fold: SessionFold) => void;
}

/** Called by the stream of a session. */
export interface StreamListener {
  /** The event stream was read. `offset` is that of its last frame. */
  onLoaded(offset: number): void;
  /** The fold has changed. */
  onAdvanced(frames: readonly Frame[]): void;
  /** An append under the lease is being committed (`SessionDriver.onAppending`). */
  readonly onAppending: AppendListener;
}

/**
 * `reserved` is for an append that asks for a reservation. It resolves with it after the commit;
 * with null if it was left out. It rejects if the events were not appended, or not by this append.
 */
export type AppendListener = (fold: SessionFold | null, reserved?: Promise<ReservedInCommit | null>) => void;
export type ReservedInCommit = NonNullable<CallExtensionResult['reserved']>;

const codeOf = (error: unknown): string => (isAppError(error) ? error.code : '');
const extendedBy = ({ extension }: AppendResult): CallExtensionResult | null =>
  CallExtensionResult.safeParse(extension).data ?? null;

const reservedBy = async (appending: Promise<AppendResult>): Promise<ReservedInCommit | null> => {
  const result = await appending;
  if (result.outcome === 'joined') throw bug('TURN.NOT_REQUESTED', 'an earlier request began the turn');
  return extendedBy(result)?.reserved ?? null;
};

const STARTS_CALL: ReadonlySet<string> = new Set([
  ...['ToolCallRequested', 'ToolCallClaimed', 'ToolCallRestarted'],
]);

/** Returns what a driver has in flight after it appended these events itself. */
const trackInFlight = (inFlight: InFlight, events: readonly SessionEvent[]): InFlight => {
  let { attempt } = inFlight;
  let calls = new Set(inFlight.calls);
  for (const { type, data } of events) {
    if (type === 'ModelCallStarted') ({ attempt } = data);
    else if (type === 'ModelCallCompleted') for (const { callId } of data.toolCalls) calls.add(callId);
    else if (STARTS_CALL.has(type) && 'callId' in data) calls.add(data.callId);
    else if (isTurnEnd(type)) calls = new Set();
  }
  return { attempt, calls };
};

/**
 * Event stream of one session with its fold. Not safe for concurrent use: the actor serialises its
 * calls.
 */
export class SessionStream {
  private readonly log: FactLog;
  private isStale = false;
  private started: InFlight = NOTHING_IN_FLIGHT;

  /**
   * `current` is the fold of a session that is being created. Any other fold is read when first
   * needed.
   */
  constructor(
    private readonly deps: StreamDeps,
    private readonly session: SessionRef,
    private readonly lease: Pick<SessionLease, 'held' | 'fence' | 'markAppended' | 'markLost'>,
    private current: SessionFold | null,
    private readonly listener: StreamListener,
  ) {
    this.log = createFactLog(deps.store, (_workspace, id) => sessionStream(id));
  }

  fold(): SessionFold {
    if (!this.current) throw new Error('the session is used before it was read');
    return this.current;
  }

  /** Returns the fold, if the event stream has been read. */
  known(): SessionFold | null {
    return this.current;
  }

  /** Returns the calls that this process started under its lease. */
  inFlight(): InFlight {
    return this.started;
  }

  /** Forgets the calls that were started under the previous lease. */
  changeLease(now: Lease | null): void {
    this.started = NOTHING_IN_FLIGHT;
    // Before the first lease of a session there was no holder that could have appended.
    this.isStale ||= now !== null && now.epoch > 1;
  }

  /** Reads the events that other processes appended. */
  async refresh(): Promise<void> {
    const { workspace, sessionId } = this.session;
    const { log } = this.deps;
    if (this.current) {
      const events = await log.readAfter(workspace, sessionId, this.current);
      if (events.length > 0) this.advance(log.advance(this.fold(), events));
    } else {
      this.current = await log.load(workspace, sessionId);
      this.listener.onLoaded(this.current.cursor.lastOffset);
    }
    this.isStale = false;
  }

  /** Reads only if events may be missing. */
  async refreshIfStale(): Promise<void> {
    if (!this.current || this.isStale) await this.refresh();
  }

  /** Decides and appends. Decides again after a conflict of the session's own event stream. */
  commit<D extends Decision>(decide: (fold: SessionFold) => D): Promise<Commit<D>> {
    const streamId = sessionStream(this.session.sessionId);
    const isStale = (error: unknown): boolean => isVersionConflict(error, streamId);
    return retryConflicts(() => this.tryCommit(decide), { maxRounds: Infinity, isStale });
  }

  private async tryCommit<D extends Decision>(decide: (fold: SessionFold) => D): Promise<Commit<D>> {
    await this.refreshIfStale();
    const decision = decide(this.fold());
    if (decision.events.length === 0) return { outcome: 'nothing' };
    try {
      return await this.append(decision);
    } catch (error) {
      // The append may have been committed all the same: the next refresh shows it.
      this.isStale = true;
      if (isAppError(error) && error.kind === 'conflict') this.listener.onAppending(null);
      if (codeOf(error) === 'LOG.FENCED') this.lease.markLost();
      throw error;
    }
  }

  private async append<D extends Decision>(decision: D): Promise<Commit<D>> {
    const { log, ids, onAppended } = this.deps;
    const { lease, listener } = this;
    const { workspace, sessionId } = this.session;
    const held = lease.held();
    const added = toNewEvents(decision.events, this.fold(), held?.epoch ?? null, ids);
    const folded = added.map(({ eventId, metadata }, index) => {
      return { event: decision.events[index] as SessionEvent, eventId, metadata };
    });
    const askedAt = performance.now();
    const { events: _events, ...more } = decision;
    const fenced = { ...more, fence: lease.fence() ?? undefined };
    const appending = this.log.appendAt(workspace, sessionId, this.fold().version, added, fenced);
    const advanced = log.advance(this.fold(), folded);
    const reserved = decision.extension?.reserve && reservedBy(appending);
    reserved?.catch(() => undefined); // reported to the listener
    if (held) listener.onAppending(advanced.fold, reserved);
    const result = await appending;
    if (result.outcome === 'joined') {
      listener.onAppending(null);
      return { outcome: 'joined', answer: result.response ?? {} };
    }
    if (held) {
      lease.markAppended(askedAt);
      this.started = trackInFlight(this.started, decision.events);
    }
    this.advance(advanced);
    onAppended(folded, this.session, advanced.fold);
    return { outcome: 'appended', decision, extended: extendedBy(result) };
  }

  private advance({ fold, frames }: ReturnType<SessionLog['advance']>): void {
    this.current = fold;
    this.listener.onAdvanced(frames);
  }
}
