import type { Frame } from '@antiphon/contracts/agent';
import type { SessionLease } from './session-lease.js';

/**
 * Lets frames out whose event will follow, as long as nobody else can have the session: a process that was stopped in
 * the middle of an answer finds the rest of it in its socket when it wakes up, and the session may be another's by then.
 * What cannot be let out waits for a proof, or for the commit of its event, which sends all that was not sent.
 */
export const createLeaseGate = (
  lease: Pick<SessionLease, 'isFresh' | 'confirm'>,
  send: (frames: readonly Frame[]) => void,
): ((frames: readonly Frame[]) => void) => {
  let waiting: Frame[] = [];
  let proving = false;

  const prove = async (): Promise<void> => {
    proving = true;
    // Without an answer they go on waiting: the next frame asks again.
    const held = await lease.confirm().catch(() => null);
    proving = false;
    if (held === null) return;
    const proven = waiting;
    waiting = [];
    if (held) send(proven);
  };
  return (frames) => {
    if (waiting.length === 0 && lease.isFresh()) return send(frames);
    waiting.push(...frames);
    if (!proving) void prove();
  };
};
