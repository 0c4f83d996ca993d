import { NEVER_BEGUN, settleBudget } from '@antiphon/contracts/metering';
import type { OpenCall } from '@antiphon/agent-domain';
import type { SessionFold } from '../sessions/session-fold.js';
import { agentOf } from './turn-policy.js';
import { prepareModelCall } from './prepare-call.js';
import type { CallToPrepare, PreparedCall, PrepareDeps } from './prepare-call.js';
import { untilAnswered } from './stop.js';
import type { TurnContext } from './turn-context.js';

/** Makes a model call ready while the append that starts it is being committed: neither waits for the other. */
export interface CallPrefetch {
  /** The fold to come, or null when it will not (`StreamParts.onComing`). `now`: the call that is open already. */
  coming(fold: SessionFold | null, now: OpenCall | null): void;
  /** What was made ready for this call, once; null when nothing was, or not in time. */
  take(call: OpenCall): Promise<PreparedCall | null>;
}

/** The reservation of a call that took longer than this to be committed may be about to expire: it is made anew. */
const MAX_AGE_MS = 30_000;

/** For so long metering is asked to take a reservation back; after that its sweep finds it. */
const GIVE_BACK_MS = 60_000;

interface Ahead {
  readonly reservationId: string;
  readonly begunAt: number;
  readonly ready: Promise<PreparedCall>;
}

/**
 * `contextOf`: what the turn is answered with, asked for once. A reservation whose call is never committed is given
 * back here; if this process dies before, metering finds no call in the log that cites it, and releases it.
 */
export const createCallPrefetch = (
  services: PrepareDeps,
  workspace: string,
  contextOf: (fold: SessionFold) => Promise<TurnContext>,
  epoch: CallToPrepare['epoch'],
): CallPrefetch => {
  let ahead: Ahead | null = null;

  const giveBack = async ({ reservationId, ready }: Ahead): Promise<void> => {
    // What was not answered, or not to us, may have been reserved all the same.
    const reservation = await ready.then((call) => call.reservation).catch(() => null);
    if (reservation?.granted === false) return;
    const outcome = { kind: 'not_dispatched' as const, reason: NEVER_BEGUN };
    const settle = () => services.requests.request(settleBudget, { workspace, reservationId, outcome });
    await untilAnswered(settle, AbortSignal.timeout(GIVE_BACK_MS), services.logger);
  };
  const drop = (): void => {
    const dropped = ahead;
    ahead = null;
    if (dropped) giveBack(dropped).catch(() => undefined); // metering's sweep releases it
  };
  const begin = (fold: SessionFold, call: OpenCall): Ahead => {
    const { state } = fold;
    const agent = agentOf(services, state.started?.agentId);
    const context = (): Promise<TurnContext> => contextOf(fold);
    // Never stopped: what metering has been asked for is known only from its answer.
    const { signal } = new AbortController();
    const to = { services, workspace, agent, state, call, context, signal, epoch };
    const ready = prepareModelCall(to, () => Promise.resolve());
    ready.catch(() => undefined); // whoever takes it is told; nobody else needs to be
    return { reservationId: call.reservationId, begunAt: services.clock.now(), ready };
  };

  return {
    coming: (fold, now) => {
      const call = fold?.state.open?.call ?? null;
      if (fold && call && call.reservationId === now?.reservationId) return;
      // Its start is in the log: what became of another append, of a repeated request say, does not concern it.
      if (ahead && ahead.reservationId === now?.reservationId) return;
      drop();
      if (fold && call) ahead = begin(fold, call);
    },
    take: async ({ reservationId }) => {
      if (ahead?.reservationId !== reservationId) return null;
      const { ready, begunAt } = ahead;
      ahead = null;
      if (services.clock.now() - begunAt > MAX_AGE_MS) return null;
      // What went wrong goes wrong again where it is dealt with, or has passed by then.
      return ready.catch(() => null);
    },
  };
};
