import type { SessionState } from '@antiphon/conversation-domain';
import { FrameSender } from './live-frames.js';
import type { PublishFrames } from './live-frames.js';
import { SessionActor } from './session-actor.js';
import type { SessionFold } from './session-fold.js';
import { SessionLease } from './session-lease.js';
import type { LeaseDeps } from './session-lease.js';
import type { SessionRef } from './session-queries.js';
import { SessionStream } from './session-stream.js';
import type { AppendListener, Decision, StreamDeps } from './session-stream.js';

/** A turn that is about to be requested. */
export interface UpcomingTurn {
  readonly turnId: string;
  readonly content: string;
  readonly agentId: string;
  readonly sessionKey: string;
}

/** Runs the turns of one session, as long as this process holds its lease. */
export interface SessionDriver {
  /** Starts to drive, unless the driver is running. */
  wake(): void;
  /** Requests the context of a turn early. A failure costs only the head start. */
  prefetchContext(turn: UpcomingTurn): void;
  /**
   * Returns the reservation to ask for in the commit after which the session has this state.
   * Nothing if its bound is not known before the context.
   */
  reserveInCommit(state: SessionState): Pick<Decision, 'extension'>;
  isWorking(): boolean;
  /**
   * Stops the driver within `graceMs`, in which outcomes are recorded. Resolves when it has
   * stopped.
   */
  stop(graceMs: number): Promise<void>;
  /** Called after each change of the fold and of the lease. */
  onChange(): void;
  /**
   * Called while an append under the lease is being committed, with the fold that it will give;
   * with null when the append certainly failed. No effect of this call may be visible outside
   * before the append is committed.
   */
  onAppending: AppendListener;
}

/** A session in this process. */
export interface LocalSession {
  readonly actor: SessionActor;
  readonly driver: SessionDriver;
}

export interface SessionDeps extends LeaseDeps, StreamDeps {
  readonly publish: PublishFrames;
  readonly drivers: { create(actor: SessionActor): SessionDriver };
}

/** Creates a session with its driver. `known` is the fold of a session that is being created. */
export type CreateSession = (session: SessionRef, known: SessionFold | null) => LocalSession;

export const createLocalSession =
  (deps: SessionDeps): CreateSession =>
  (session, known) => {
    const { workspace, sessionId } = session;
    const lease: SessionLease = new SessionLease(deps, workspace, sessionId, (now) => {
      stream.changeLease(now);
      driver.onChange();
    });
    const sender = new FrameSender((frames) => {
      const epoch = lease.held()?.epoch;
      if (epoch !== undefined) deps.publish(workspace, sessionId, epoch, frames);
    });
    const stream: SessionStream = new SessionStream(deps, session, lease, known, {
      onLoaded: (offset) => sender.startAfter(offset),
      onAdvanced: (frames) => {
        sender.send(frames);
        driver.onChange();
      },
      onAppending: (...appending) => driver.onAppending(...appending),
    });
    const actor = new SessionActor(session, lease, stream, sender);
    const driver = deps.drivers.create(actor);
    return { actor, driver };
  };

/** Reads what other processes appended, and starts to drive it. */
export const refreshAndWake = async ({ actor, driver }: LocalSession): Promise<void> => {
  await actor.refresh();
  driver.wake();
};
