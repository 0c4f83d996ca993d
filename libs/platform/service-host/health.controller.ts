import { Controller, Get, Inject } from '@nestjs/common';
import type { Type } from '@nestjs/common';
import { transient } from '@antiphon/kernel';
import { healthContract } from '@antiphon/contracts/messaging';
import type { HealthReport, ServiceName } from '@antiphon/contracts/messaging';
import { HandleRequest } from '@antiphon/messaging';
import type { HealthRegistry } from './health-registry.js';
import type { ServiceIdentity } from './service-identity.js';
import { HEALTH, SERVICE_IDENTITY } from './tokens.js';

/** `/healthz`: the process lives. `/readyz`: everything that it needs works, each asked now. */
@Controller()
export class HealthController {
  constructor(
    @Inject(HEALTH) private readonly health: HealthRegistry,
    @Inject(SERVICE_IDENTITY) private readonly identity: ServiceIdentity,
  ) {}

  @Get('healthz')
  alive(): { status: string; service: string; version: string } {
    const { service, version } = this.identity;
    return { status: 'alive', service, version };
  }

  @Get('readyz')
  async ready(): Promise<{ status: string; service: string; checks: HealthReport['checks'] }> {
    const { healthy, checks } = await this.health.report();
    if (healthy) return { status: 'ready', service: this.identity.service, checks };
    const failed = checks.filter((check) => !check.healthy);
    const detail = failed.map((check) => `${check.name}: ${check.detail ?? 'not reachable'}`).join('; ');
    throw transient('SERVICE.NOT_READY', `${this.identity.service} is not ready (${detail})`);
  }
}

/** The controller that answers `cmd.<service>.health.check`; its subject is known only with the service. */
export const healthRequestsOf = (service: ServiceName): Type => {
  const contract = healthContract(service);
  @Controller()
  class HealthRequests {
    constructor(@Inject(HEALTH) private readonly health: HealthRegistry) {}

    @HandleRequest(contract)
    check(): Promise<HealthReport> {
      return this.health.report();
    }
  }
  return HealthRequests;
};
