import { Inject, Injectable } from '@nestjs/common';
import type { OnApplicationBootstrap, OnModuleDestroy } from '@nestjs/common';
import { observeGauges } from '@antiphon/observability';
import { HEALTH } from '@antiphon/service-host';
import type { HealthRegistry } from '@antiphon/service-host';
import { FailedAgentRows } from './failed-agent-rows.js';

/** Agents in the state `error`, as health and metrics show them. */
@Injectable()
export class FailedAgents implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly stopGauges: () => void;

  constructor(
    @Inject(HEALTH) private readonly health: Pick<HealthRegistry, 'addWarning'>,
    @Inject(FailedAgentRows) private readonly rows: Pick<FailedAgentRows, 'count'>,
  ) {
    this.stopGauges = observeGauges(
      {
        antiphon_agents_in_error: 'Agents in the state error, of all workspaces',
        antiphon_turns_blocked: 'Open turns of these agents, which wait',
      },
      async (report) => {
        const { agents, turns } = await rows.count();
        report('antiphon_agents_in_error', agents);
        report('antiphon_turns_blocked', turns);
      },
    );
  }

  onApplicationBootstrap(): void {
    this.health.addWarning('agents', async () => {
      const { agents, turns } = await this.rows.count();
      return agents === 0 ? null : `agents in the state error: ${agents}; turns that wait for them: ${turns}`;
    });
  }

  onModuleDestroy(): void {
    this.stopGauges();
  }
}
