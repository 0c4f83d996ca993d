import type { Frame } from '@antiphon/contracts/agent';
import type { SessionFold } from '../session-log/session-fold.js';
import { createAheadGate } from './ahead-gate.js';
import { createFoldedStream } from './folded-stream.js';
import type { FoldedStream, StreamDeps, StreamParts } from './folded-stream.js';
import { createFrameSender } from './frame-sender.js';
import { createLaneLease } from './lane-lease.js';
import type { Claim, LaneLease, LeaseDeps } from './lane-lease.js';
import type { PublishFrames } from './live-frames.js';
import { createSerial } from './serial.js';

/** One session in this process: its fold, the lease that lets it be driven here, and the one door to its event stream. */
export interface SessionLane extends Pick<FoldedStream, 'fold' | 'known' | 'hands'> {
  readonly workspace: string;
  readonly sessionId: string;
  readonly lease: Omit<LaneLease, 'claim' | 'release'>;
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
  readonly commit: FoldedStream['commit'];
  /** Calls back after each change of the fold or the lease. */
  onChange(listener: () => void): void;
  /** Calls back with the fold to come while an append is on its way (`StreamParts.onComing`). */
  onComing(listener: (fold: SessionFold | null) => void): void;
}

export interface LaneDeps extends LeaseDeps, StreamDeps {
  readonly publish: PublishFrames;
}

type Listening = Pick<SessionLane, 'onChange' | 'onComing'>;

/** Who listens to a lane: its driver, which is made after it. */
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
export const createSessionLane = (
  services: LaneDeps,
  workspace: string,
  sessionId: string,
  known: SessionFold | null,
): SessionLane => {
  const serial = createSerial();
  const { tell, listen } = createListeners();

  const lease = createLaneLease(services, workspace, sessionId, (now) => {
    stream.leaseChanged(now);
    tell.onChange();
  });
  const sender = createFrameSender((frames) => {
    const epoch = lease.held()?.epoch;
    if (epoch !== undefined) services.publish(workspace, sessionId, epoch, frames);
  });
  const ahead = createAheadGate(lease, sender.send);
  const stream = createFoldedStream(services, { workspace, sessionId, lease, sender, ...tell }, known);

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
