import type { Frame } from '@antiphon/contracts/agent';
import type { InFlight } from '@antiphon/conversation-domain';
import { createSerialQueue } from '@antiphon/kernel';
import { FrameSender } from './live-frames.js';
import type { PublishFrames } from './live-frames.js';
import type { SessionFold } from './session-fold.js';
import { LeaseGate, SessionLease } from './session-lease.js';
import type { Claim, LeaseDeps } from './session-lease.js';
import { SessionStream } from './session-stream.js';
import type { AppendListener, Commit, Decision, StreamDeps } from './session-stream.js';

export interface ActorDeps extends LeaseDeps, StreamDeps {
  readonly publish: PublishFrames;
}

/**
 * One session in this process: its fold, the lease under which it is driven here, and the only
 * access to its event stream. Reads and appends run one after another.
 */
export class SessionActor {
  readonly lease: SessionLease;
  private readonly stream: SessionStream;
  private readonly gate: LeaseGate;
  private readonly enqueue = createSerialQueue();
  private changeListener: () => void = () => undefined;
  private appendListener: AppendListener = () => undefined;

  /** `known` is the fold of a session that is being created. */
  constructor(
    deps: ActorDeps,
    readonly workspace: string,
    readonly sessionId: string,
    known: SessionFold | null,
  ) {
    this.lease = new SessionLease(deps, workspace, sessionId, (now) => {
      this.stream.changeLease(now);
      this.changeListener();
    });
    const sender = new FrameSender((frames) => {
      const epoch = this.lease.held()?.epoch;
      if (epoch !== undefined) deps.publish(workspace, sessionId, epoch, frames);
    });
    this.gate = new LeaseGate(this.lease, (frames) => sender.send(frames));
    const parts = {
      workspace,
      sessionId,
      sender,
      lease: this.lease,
      onChange: () => this.changeListener(),
      onAppending: (...appending: Parameters<AppendListener>) => this.appendListener(...appending),
    };
    this.stream = new SessionStream(deps, parts, known);
  }

  fold(): SessionFold {
    return this.stream.fold();
  }

  /** Returns the fold, if the event stream has been read. */
  known(): SessionFold | null {
    return this.stream.known();
  }

  /** Returns the calls that this process started under its lease. */
  inFlight(): InFlight {
    return this.stream.inFlight();
  }

  /** Takes the lease, unless another process holds it, and reads what was appended before. */
  claim(): Promise<Claim> {
    return this.enqueue(async () => {
      const claimed = await this.lease.claim();
      await this.stream.refreshIfStale();
      return claimed;
    });
  }

  /** Takes the lease of a session that is being created (`SessionLease.acquireOnAppend`). */
  acquireOnAppend(epoch: number): Claim {
    return this.lease.acquireOnAppend(epoch);
  }

  release(): Promise<void> {
    return this.enqueue(() => this.lease.release());
  }

  /** Sends frames ahead of their event. Their offsets are those that the fold will give them. */
  sendAhead(frames: readonly Frame[]): void {
    this.gate.pass(frames);
  }

  /** Reads the events that other processes appended. */
  refresh(): Promise<void> {
    return this.enqueue(() => this.stream.refresh());
  }

  /**
   * Decides on the newest fold and appends, under the lease if it is held. Decides again when
   * another process appended first. Throws the log's errors; after `LOG.FENCED` the lease is lost.
   */
  commit<D extends Decision>(decide: (fold: SessionFold) => D): Promise<Commit<D>> {
    return this.enqueue(() => this.stream.commit(decide));
  }

  /** Sets the listener for changes of the fold and of the lease. */
  onChange(listener: () => void): void {
    this.changeListener = listener;
  }

  /** Sets the listener for appends that are being committed (`StreamParts.onAppending`). */
  onAppending(listener: AppendListener): void {
    this.appendListener = listener;
  }
}

/** Creates the actors of the sessions of this process. */
export class SessionActors {
  constructor(private readonly deps: ActorDeps) {}

  create(workspace: string, sessionId: string, known: SessionFold | null): SessionActor {
    return new SessionActor(this.deps, workspace, sessionId, known);
  }
}
