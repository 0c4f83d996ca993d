import { setTimeout as sleep } from 'node:timers/promises';
import type { z } from 'zod';
import { healthContract } from '@antiphon/contracts/messaging';
import { findCall } from '@antiphon/contracts/sandbox';
import type { ToolReply } from '@antiphon/contracts/sandbox';
import { isAppError, transient } from '@antiphon/kernel';
import type { RequestClient } from '@antiphon/messaging';
import type { SandboxWatch } from './sandbox-watch.js';
import { unlessStopped } from './stop.js';

type About = z.input<typeof findCall.request>;

/** An answer takes far less as a rule; after that long, and then as often, it is asked where the call is. */
const LATE_MS = 2_000;
/** Until the next question, when nobody knew the call. */
const UNKNOWN_MS = 500;
const HEALTH_MS = 1_000;
/** So often nobody knew the call, each time while a sandbox process was there to be asked. */
const ROUNDS = 2;

const sandboxHealth = healthContract('sandbox');

export interface LostCallDeps {
  readonly requests: RequestClient;
  readonly sandbox: SandboxWatch;
}

/** `silence`: each process that was asked in time says, by saying nothing, that it does not know the call. */
type Found = z.output<typeof findCall.reply> | { readonly state: 'silence' | 'nobody_asked' };

const look = async (requests: RequestClient, about: About): Promise<Found> => {
  try {
    return await requests.request(findCall, about);
  } catch (error) {
    // Nobody who would know how to answer, or NATS away: that says nothing of the call.
    return { state: isAppError(error) && error.code === 'MESSAGING.TIMEOUT' ? 'silence' : 'nobody_asked' };
  }
};

/** Whether silence is an answer: not of processes that cannot be reached, or come to nothing. */
const isSandboxHealthy = async (requests: RequestClient): Promise<boolean> => {
  try {
    await requests.request(sandboxHealth, {}, { timeoutMs: HEALTH_MS });
    return true;
  } catch {
    return false;
  }
};

/** Answers the reply of a call that ended unheard; rejects when it is lost, and when `over` says that nobody asks any more. */
const findLate = async (requests: RequestClient, about: About, over: AbortSignal): Promise<ToolReply> => {
  for (let rounds = 0; rounds < ROUNDS;) {
    await sleep(rounds > 0 ? UNKNOWN_MS : LATE_MS, undefined, { signal: over });
    const found = await look(requests, about);
    if (found.state === 'ended') return found.reply;
    if (found.state === 'running') rounds = 0;
    if (found.state === 'silence' && (await isSandboxHealthy(requests))) rounds++;
  }
  throw transient('SANDBOX.LOST', 'no sandbox process knows the call');
};

/**
 * A call's reply, or `SANDBOX.LOST` (transient) as soon as it is known that none will come, instead of at the call's
 * deadline: no sandbox process is there, or none of those that are has the call. A request that was on its way to a
 * process that died, and an answer of one that was cut off, come to nobody, and NATS says nothing.
 *
 * It asks, it does not repeat: who must not be called twice is not. Taken for lost by mistake (the process that has it is
 * cut off while another is there), a call is what it is after any lost answer. Throws `Stopped` when the signal says so.
 */
export const detectLostCall = async (
  { requests, sandbox }: LostCallDeps,
  about: About,
  reply: Promise<ToolReply>,
  signal: AbortSignal,
): Promise<ToolReply> => {
  const over = new AbortController();
  let unwatch: () => void = () => undefined;
  const gone = new Promise<never>((_, reject) => (unwatch = sandbox.onGone(reject)));
  const found = findLate(requests, about, over.signal);
  found.catch(() => undefined);
  try {
    return await unlessStopped(Promise.race([reply, gone, found]), signal);
  } finally {
    unwatch();
    over.abort();
  }
};
