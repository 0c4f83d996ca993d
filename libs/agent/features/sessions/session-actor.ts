import type { Frame } from '@antiphon/contracts/agent';
import type { SessionFold } from './session-fold.js';
import { createLeaseGate } from './lease-gate.js';
import { createSessionStream } from './session-stream.js';
import type { SessionStream, StreamDeps, StreamParts } from './session-stream.js';
import { createFrameSender } from './frame-sender.js';
import { createSessionLease } from './session-lease.js';
import type { Claim, SessionLease, LeaseDeps } from './session-lease.js';
import type { PublishFrames } from './live-frames.js';
import { createSerialQueue } from '@antiphon/kernel';

/** One session in this process: its fold, the lease that lets it be driven here, and the one door to its event stream. */
export interface SessionActor extends Pick<SessionStream, 'fold' | 'known' | 'hands'> {
  readonly workspace: string;
  readonly sessionId: string;
  readonly lease: Omit<SessionLease, 'claim' | 'release'>;
  /** Takes the lease, unless another process has it, and reads what was appended before. */
  claim(): Promise<Claim>;
  release(): Promise<void>;
  /** Sends frames whose event will follow: their offsets are those that the fold will give them. */
  sendAhead(frames: readonly Frame[]): void;
  /** Reads what others have appended. */
  refresh(): Promise<void>;
  /**
   * Decides on the newest fold and appends, under the lease where one is held; decides again when somebody else
   * appended first. Throws what the log answers, above all `LOG.FENCED`: then the lease is lost.
   */
  readonly commit: SessionStream['commit'];
  /** Calls back after each change of the fold or the lease. */
  onChange(listener: () => void): void;
  /** Calls back with the fold to come while an append is on its way (`StreamParts.onComing`). */
  onComing(listener: (fold: SessionFold | null) => void): void;
}

export interface ActorDeps extends LeaseDeps, StreamDeps {
  readonly publish: PublishFrames;
}

type Listening = Pick<SessionActor, 'onChange' | 'onComing'>;

/** Who listens to a actor: its driver, which is made after it. */
const createListeners = (): {
  readonly tell: Pick<StreamParts, keyof Listening>;
  readonly listen: Listening;
} => {
  let changed: () => void = () => undefined;
  let coming: (fold: SessionFold | null) => void = () => undefined;
  return {
    tell: { onChange: () => changed(), onComing: (fold) => coming(fold) },
    listen: {
      onChange: (listener) => void (changed = listener),
      onComing: (listener) => void (coming = listener),
    },
  };
};

/** `known`: the fold of a session that is just being made. */
export const createSessionActor = (
  services: ActorDeps,
  workspace: string,
  sessionId: string,
  known: SessionFold | null,
): SessionActor => {
  const serial = createSerialQueue();
  const { tell, listen } = createListeners();

  const lease = createSessionLease(services, workspace, sessionId, (now) => {
    stream.leaseChanged(now);
    tell.onChange();
  });
  const sender = createFrameSender((frames) => {
    const epoch = lease.held()?.epoch;
    if (epoch !== undefined) services.publish(workspace, sessionId, epoch, frames);
  });
  const ahead = createLeaseGate(lease, sender.send);
  const stream = createSessionStream(services, { workspace, sessionId, lease, sender, ...tell }, known);

  const claim = async (): Promise<Claim> => {
    const claimed = await lease.claim();
    await stream.lookIfStale();
    return claimed;
  };
  return {
    ...stream,
    ...listen,
    workspace,
    sessionId,
    lease,
    claim: () => serial(claim),
    release: () => serial(() => lease.release()),
    sendAhead: ahead,
    refresh: () => serial(() => stream.look()),
    commit: (decide) => serial(() => stream.commit(decide)),
  };
};
