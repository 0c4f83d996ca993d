import { Inject, Injectable, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { isoTime, sleep, type Clock } from '@antiphon/kernel';
import { CLOCK, HEALTH, type HealthRegistry } from '@antiphon/service-host';
import type { ClientConnection } from './client-connection.js';
import { ALL_HEALTHY, judgeEngines } from './engine-status.js';

/** Interval between two checks of the engines, ms. A check itself takes at most a second. */
const POLL_MS = 1_000;

/**
 * Notifies every authenticated client when an engine becomes unreachable and when it is reachable
 * again.
 */
@Injectable()
export class EngineStatusBroadcaster implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly clients = new Set<ClientConnection>();
  private readonly shutdown = new AbortController();
  private state = ALL_HEALTHY;

  constructor(
    @Inject(HEALTH) private readonly health: HealthRegistry,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  onApplicationBootstrap(): void {
    void this.pollUntilShutdown();
  }

  onModuleDestroy(): void {
    this.shutdown.abort();
  }

  /** Sends status changes to a client until its socket closes, and the current change at once. */
  subscribe(client: ClientConnection): void {
    this.clients.add(client);
    client.addCleanup(() => this.clients.delete(client));
    if (this.state.announced) client.send(this.state.announced);
  }

  private async pollUntilShutdown(): Promise<void> {
    const { signal } = this.shutdown;
    while (!signal.aborted) {
      await sleep(POLL_MS, signal, { unref: true }).catch(() => undefined);
      if (!signal.aborted) await this.poll();
    }
  }

  private async poll(): Promise<void> {
    const { checks } = await this.health.report();
    const { state, change } = judgeEngines(this.state, checks, isoTime(this.clock));
    this.state = state;
    if (!change || this.shutdown.signal.aborted) return;
    for (const client of this.clients) client.send(change);
  }
}
