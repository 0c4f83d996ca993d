import { Inject, Injectable } from '@nestjs/common';
import type { OnApplicationBootstrap } from '@nestjs/common';
import { healthContract } from '@antiphon/contracts/messaging';
import { CLOCK, HEALTH, REQUESTS, type HealthRegistry } from '@antiphon/service-host';
import type { Clock } from '@antiphon/kernel';
import type { GatewayRequests } from '../gateway.ports.js';

/** Time for which a warning is kept, ms: the health of a gateway is read every second. */
const KEPT_MS = 5_000;

/** Adds the warnings of the agent service to the health of the gateway, whose port is public. */
@Injectable()
export class AgentWarnings implements OnApplicationBootstrap {
  private at = -Infinity;
  private last: string | null = null;

  constructor(
    @Inject(REQUESTS) private readonly requests: GatewayRequests,
    @Inject(HEALTH) private readonly health: HealthRegistry,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  onApplicationBootstrap(): void {
    this.health.addWarning('agents', () => this.read());
  }

  private async read(): Promise<string | null> {
    const now = this.clock.now();
    if (now - this.at < KEPT_MS) return this.last;
    const { warnings = [] } = await this.requests.request(healthContract('agent'), {});
    this.at = now;
    this.last = warnings.length === 0 ? null : warnings.map(({ detail }) => detail).join('; ');
    return this.last;
  }
}
