import { Inject, Injectable, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import type { Clock } from '@antiphon/kernel';
import { CLOCK, HEALTH, type HealthRegistry } from '@antiphon/service-host';
import type { ClientConnection } from '../answer-rpc/client-connection.js';
import { watchEngines, type EngineWatch } from './engine-watch.js';

/** Tells every client that may speak when an engine goes and when it is back; one that comes meanwhile, at once. */
@Injectable()
export class EngineTeller implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly clients = new Set<ClientConnection>();
  private watch: EngineWatch | null = null;

  constructor(
    @Inject(HEALTH) private readonly health: HealthRegistry,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  onApplicationBootstrap(): void {
    this.watch = watchEngines(
      () => this.health.report(),
      this.clock,
      (news) => {
        for (const client of this.clients) client.send(news);
      },
    );
  }

  onModuleDestroy(): void {
    this.watch?.stop();
  }

  /** From now on until its socket closes. */
  keepTold(client: ClientConnection): void {
    this.clients.add(client);
    client.hold(() => this.clients.delete(client));
    const news = this.watch?.current();
    if (news) client.send(news);
  }
}
