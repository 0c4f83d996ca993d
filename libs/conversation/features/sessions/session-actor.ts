import type { Frame } from '@antiphon/contracts/agent';
import type { InFlight } from '@antiphon/conversation-domain';
import { createSerialQueue } from '@antiphon/kernel';
import type { FrameSender } from './live-frames.js';
import type { SessionFold } from './session-fold.js';
import { LeaseGate } from './session-lease.js';
import type { Claim, SessionLease } from './session-lease.js';
import type { SessionRef } from './session-queries.js';
import type { Commit, Decision, SessionStream } from './session-stream.js';

/**
 * One session in this process: its fold, the lease under which it is driven here, and the only
 * access to its event stream. Reads and appends run one after another.
 */
export class SessionActor {
  readonly workspace: string;
  readonly sessionId: string;
  private readonly gate: LeaseGate;
  private readonly enqueue = createSerialQueue();

  constructor(
    { workspace, sessionId }: SessionRef,
    readonly lease: SessionLease,
    private readonly stream: SessionStream,
    sender: FrameSender,
  ) {
    this.workspace = workspace;
    this.sessionId = sessionId;
    this.gate = new LeaseGate(lease, (frames) => sender.send(frames));
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
}
