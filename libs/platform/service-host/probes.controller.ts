import { Controller, Get, Header, Inject } from '@nestjs/common';
import type { Type } from '@nestjs/common';
import { transient } from '@antiphon/kernel';
import { healthContract } from '@antiphon/contracts/messaging';
import type { HealthReport, ServiceName } from '@antiphon/contracts/messaging';
import { HandleRequest } from '@antiphon/messaging';
import { METRICS_MEDIA_TYPE, renderMetrics } from '@antiphon/observability';
import type { Logger } from '@antiphon/observability';
import type { HealthRegistry } from './health-registry.js';
import type { ServiceIdentity } from './service-env.js';
import { HEALTH, LOGGER, SERVICE_IDENTITY } from './tokens.js';

/**
 * Serves `/healthz` (the process runs), `/readyz` (its dependencies work; `degraded` if a part of
 * its work waits) and `/metrics`.
 */
@Controller()
export class ProbesController {
  constructor(
    @Inject(HEALTH) private readonly health: HealthRegistry,
    @Inject(SERVICE_IDENTITY) private readonly identity: ServiceIdentity,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  @Get('healthz')
  alive(): { status: string; service: string; version: string } {
    const { service, version } = this.identity;
    return { status: 'alive', service, version };
  }

  @Get('readyz')
  async ready(): Promise<{ status: string; service: string } & Pick<HealthReport, 'checks' | 'warnings'>> {
    const { healthy, checks, warnings } = await this.health.report();
    const { service } = this.identity;
    if (healthy && warnings) return { status: 'degraded', service, checks, warnings };
    if (healthy) return { status: 'ready', service, checks };
    const failed = checks.filter((check) => !check.healthy);
    const detail = failed.map((check) => `${check.name}: ${check.detail ?? 'not reachable'}`).join('; ');
    throw transient('SERVICE.NOT_READY', `${this.identity.service} is not ready (${detail})`);
  }

  /** Renders the metrics for Prometheus. A metric that cannot be read is left out and logged. */
  @Get('metrics')
  @Header('content-type', METRICS_MEDIA_TYPE)
  async metrics(): Promise<string> {
    const { text, errors } = await renderMetrics();
    for (const err of errors) this.logger.warn({ err }, 'metric not readable');
    return text;
  }
}

/** Makes the controller of `cmd.<service>.health.check`; its subject depends on the service. */
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
