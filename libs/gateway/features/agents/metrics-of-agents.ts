import { Inject, Injectable } from '@nestjs/common';
import { listAgentMetrics } from '@antiphon/contracts/agent';
import type { AgentMetricsReply, UsageOfDay } from '@antiphon/contracts/gateway';
import { readAgentUsage } from '@antiphon/contracts/metering';
import { REQUESTS } from '@antiphon/service-host';
import type { z } from 'zod';
import type { GatewayRequests } from '../gateway.ports.js';

const NOTHING: UsageOfDay = { calls: 0, settledTokens: 0, settledMicroUsd: 0 };

/** Reads the samples of agents, and their tokens and cost of the day: two services, two requests. */
@Injectable()
export class MetricsOfAgents {
  constructor(@Inject(REQUESTS) private readonly requests: GatewayRequests) {}

  async read(
    query: z.input<typeof listAgentMetrics.request>,
    { withCosts }: { readonly withCosts: boolean },
  ): Promise<AgentMetricsReply> {
    const { workspace, at } = query;
    const page = await this.requests.request(listAgentMetrics, query);
    const costs = withCosts ? await this.#costsOf(workspace, page.day, at) : null;
    const agents = page.agents.map((agent) => ({
      ...agent,
      today: costs && (costs.get(agent.agentId) ?? NOTHING),
    }));
    return { ...page, agents };
  }

  async #costsOf(
    workspace: string,
    day: string,
    at: number | undefined,
  ): Promise<ReadonlyMap<string, UsageOfDay>> {
    const { agents } = await this.requests.request(readAgentUsage, { workspace, day, at });
    return new Map(
      agents.map(({ agentId, calls, settledTokens, settledMicroUsd }) => [
        agentId,
        { calls, settledTokens, settledMicroUsd },
      ]),
    );
  }
}
