import type { OpenCall } from '@antiphon/conversation-domain';
import type { SessionFold } from '../sessions/session-fold.js';
import type { CallPreparer, CallToPrepare, PreparedCall, TurnContext } from './prepare-call.js';
import type { CallBudget } from './reserve-budget.js';
import type { ReservesInCommit } from './reserve-in-commit.js';
import type { TurnPolicy } from './turn-policy.js';

/** Maximum age of a prefetched call, ms: the reservation of an older one may be about to expire. */
const MAX_AGE_MS = 30_000;

interface Prefetched {
  readonly reservationId: string;
  readonly startedAt: number;
  readonly prepared: Promise<PreparedCall>;
}

export interface PrefetchDeps {
  readonly preparer: Pick<CallPreparer, 'prepare'>;
  readonly budget: Pick<CallBudget, 'release'>;
  readonly policy: Pick<TurnPolicy, 'findAgent' | 'clock'>;
}

/**
 * Prepares a model call while the append that starts it is being committed, so that neither waits
 * for the other. The reservation of a call that is never committed is released. If this process
 * dies before the release, metering finds no call in the log that cites it, and releases it.
 */
export class CallPrefetch {
  private prefetched: Prefetched | null = null;

  constructor(
    private readonly deps: PrefetchDeps,
    private readonly workspace: string,
    /** Returns the context of the fold's open turn. It is requested once per turn. */
    private readonly contextOf: (fold: SessionFold) => Promise<TurnContext>,
    private readonly epoch: CallToPrepare['epoch'],
    private readonly reserves: ReservesInCommit,
  ) {}

  /**
   * Starts to prepare the call that an append will start, or drops the prepared call when the
   * append failed (`SessionDriver.onAppending`). `openCall` is the call that is open already.
   */
  onAppending(
    fold: SessionFold | null,
    openCall: OpenCall | null,
    reserved?: CallToPrepare['reserved'],
  ): void {
    const call = fold?.state.open?.call ?? null;
    if (fold && call && call.reservationId === openCall?.reservationId) return;
    // Its start is in the log: the outcome of another append, such as a repeated request, does not
    // concern it.
    if (this.prefetched && this.prefetched.reservationId === openCall?.reservationId) return;
    this.drop();
    if (fold && call) this.prefetched = this.start(fold, call, reserved);
  }

  /**
   * Returns the prepared call, once; null when there is none, or its preparation failed or is too
   * old.
   */
  async take({ reservationId }: OpenCall): Promise<PreparedCall | null> {
    if (this.prefetched?.reservationId !== reservationId) return null;
    const { prepared, startedAt } = this.prefetched;
    this.prefetched = null;
    if (this.deps.policy.clock.now() - startedAt > MAX_AGE_MS) return null;
    // After a failure the call is prepared again, and a lasting failure is handled there.
    return prepared.catch(() => null);
  }

  private start(fold: SessionFold, call: OpenCall, reserved: CallToPrepare['reserved']): Prefetched {
    const { deps, workspace, epoch } = this;
    const { state } = fold;
    const agent = deps.policy.findAgent(workspace, state.started?.agentId);
    const context = (): Promise<TurnContext> => this.contextOf(fold);
    // Never aborted: only metering's response says whether the budget was reserved.
    const { signal } = new AbortController();
    const onParts: CallToPrepare['onParts'] = (...parts) => this.reserves.remember(...parts);
    const onTooSmall: CallToPrepare['onTooSmall'] = (missing) => this.reserves.widen(state, missing);
    reserved?.then((made) => this.reserves.record(made !== null)).catch(() => undefined);
    const prepared = deps.preparer.prepare(
      { workspace, agent, state, call, context, signal, epoch, reserved, onParts, onTooSmall },
      () => Promise.resolve(),
    );
    prepared.catch(() => undefined); // reported to the caller of `take` only
    return { reservationId: call.reservationId, startedAt: deps.policy.clock.now(), prepared };
  }

  private drop(): void {
    const dropped = this.prefetched;
    this.prefetched = null;
    if (dropped) this.release(dropped).catch(() => undefined); // metering's sweep releases it
  }

  private async release({ reservationId, prepared }: Prefetched): Promise<void> {
    // A reservation whose response was lost may have been granted all the same.
    const reservation = await prepared.then((call) => call.reservation).catch(() => null);
    if (reservation?.granted === false) return;
    await this.deps.budget.release(this.workspace, reservationId);
  }
}
