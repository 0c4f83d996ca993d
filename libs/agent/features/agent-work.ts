import { Inject, Injectable } from '@nestjs/common';
import { AgentUpkeep, PAST_READS } from '@antiphon/agents-features';
import { SessionWork, Shutdown, TurnEndWatcher } from '@antiphon/conversation-features';
import type { PastReads } from '@antiphon/event-store';
import { LogUsage } from '@antiphon/orchestration-features';
import { createToken } from '@antiphon/service-host';
import { AgentProjections } from './agent-projections.js';

/** Work in the background that runs until its signal aborts. */
interface Follower {
  /** Resolves after the first poll, on which other work depends. */
  readonly firstPoll?: Promise<void>;
  follow(signal: AbortSignal): Promise<void>;
}

/** Followers of the facts of other processes. */
export const FOLLOWERS = createToken<readonly Follower[]>('FOLLOWERS');

/** Work for the sessions and agents of one process, from its start to its stop. */
@Injectable()
export class AgentWork {
  private running: Promise<unknown> = Promise.resolve();
  private stopped: Promise<void> | null = null;

  constructor(
    @Inject(SessionWork) private readonly sessions: SessionWork,
    @Inject(Shutdown) private readonly shutdown: Shutdown,
    @Inject(AgentProjections) private readonly projections: AgentProjections,
    @Inject(FOLLOWERS) private readonly followers: readonly Follower[],
    @Inject(AgentUpkeep) private readonly upkeep: AgentUpkeep,
    @Inject(LogUsage) private readonly logUsage: LogUsage,
    @Inject(TurnEndWatcher) private readonly turnEnds: TurnEndWatcher,
    @Inject(PAST_READS) private readonly past: PastReads,
  ) {}

  /** Resolves when recovered turns have ended, or have had a second for themselves. */
  async start(): Promise<void> {
    const { stopping, drained } = this.shutdown;
    this.projections.start();
    const swept = this.sessions.start();
    this.running = Promise.all([
      ...this.followers.map((follower) => follower.follow(drained.signal)),
      this.upkeep.run(stopping.signal),
      this.logUsage.run(stopping.signal),
    ]);
    await Promise.all([swept, ...this.followers.map(({ firstPoll }) => firstPoll)]);
    await this.sessions.waitForRecovered();
  }

  /** Accepts no more turns, drains the running ones and releases the leases. Safe to call twice. */
  stop(): Promise<void> {
    return (this.stopped ??= this.drain());
  }

  /** Ends all loops at once, as the death of the process does. For specs that kill a process. */
  halt(): void {
    this.sessions.halt();
    this.turnEnds.close();
    void this.past.close();
    void this.projections.stop();
  }

  private async drain(): Promise<void> {
    await this.sessions.drain();
    this.turnEnds.close();
    await this.past.close();
    await Promise.all([this.running, this.sessions.ended(), this.projections.stop()]);
  }
}
