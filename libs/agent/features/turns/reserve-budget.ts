import { reserveBudget } from '@antiphon/contracts/metering';
import type { Price, ReserveBudgetReply } from '@antiphon/contracts/metering';
import type { ModelPort, ModelPrompt } from '@antiphon/agent-domain';
import type { CallToPrepare } from './prepare-call.js';
import { isAppError } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import { requestWithRetry } from '@antiphon/messaging';
import type { RequestClient } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import { Stopped, untilAnswered } from './stop.js';

export interface ReserveDeps {
  readonly models: ModelPort;
  readonly requests: RequestClient;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly times: {
    /** Hard deadline of one model attempt, ms. */
    readonly attemptMs: number;
  };
}

/** Below this a call is refused instead of capped. */
const MIN_OUTPUT_TOKENS = 256;
/** What one call may write: more is seldom wanted, and everything that is reserved is withheld from others meanwhile. */
const MAX_OUTPUT_TOKENS = 4_096;
/** A reservation outlives the hardest deadline of its attempt by this. */
const GRACE_MS = 60_000;

export type Reservation =
  | {
      readonly granted: true;
      readonly inputBound: number;
      readonly maxOutputTokens: number;
      readonly price: Price | null;
    }
  | { readonly granted: false; readonly message: string };

export type GrantedReservation = Extract<Reservation, { granted: true }>;

const isRefused = (reply: ReserveBudgetReply): reply is Extract<ReserveBudgetReply, { granted: false }> =>
  !reply.granted;

/** Another process has the session: what is asked for here is not ours to spend. */
const orLost = async <T>(reply: Promise<T>): Promise<T> => {
  try {
    return await reply;
  } catch (error) {
    throw isAppError(error) && error.code === 'LOG.FENCED' ? new Stopped('lost') : error;
  }
};

/**
 * Asks metering for the bound of one attempt; the same attempt asks for the same reservation, whoever drives. The epoch
 * goes along, and metering commits nothing for one that is over: then this throws `Stopped`.
 */
export const reserveCall = async (
  { services, workspace, state, call, signal, epoch: epochNow }: CallToPrepare,
  prompt: ModelPrompt,
): Promise<Reservation> => {
  const { models, requests, clock, times, logger } = services;
  const { provider, model } = call;
  const inputBound = models.inputBound(prompt);
  const maxOutputTokens = Math.min(MAX_OUTPUT_TOKENS, models.maxOutputTokens(provider, model));
  const { started } = state;
  const epoch = epochNow();
  const toReserve = () => ({
    workspace,
    reservationId: call.reservationId,
    sessionId: started?.sessionId ?? '',
    turnId: call.turnId,
    attempt: call.attempt,
    agentId: started?.agentId ?? '',
    sessionKey: started?.sessionKey ?? '',
    provider,
    model,
    inputBound,
    maxOutputTokens,
    minOutputTokens: Math.min(MIN_OUTPUT_TOKENS, maxOutputTokens),
    ...(epoch === null ? {} : { epoch }),
    expiresAt: new Date(clock.now() + times.attemptMs + GRACE_MS).toISOString(),
  });
  const ask = () => requestWithRetry((options) => requests.request(reserveBudget, toReserve(), options));
  const reply = await orLost(untilAnswered(ask, signal, logger));
  if (isRefused(reply)) return { granted: false, message: reply.message };
  return { granted: true, inputBound, maxOutputTokens: reply.maxOutputTokens, price: reply.price };
};
