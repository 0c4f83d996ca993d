import { Controller, Get, Inject, Param } from '@nestjs/common';
import { listAgents, type AgentView } from '@antiphon/contracts/agent';
import { notFound } from '@antiphon/kernel';
import { REQUESTS } from '@antiphon/service-host';
import type { GatewayRequests } from '../gateway-requests.port.js';
import { WORKSPACE } from '../gateway.tokens.js';

/** `GET /api/v1/agents` and `/:id`: read-only in this version; agents come from the configuration. */
@Controller('api/v1/agents')
export class ListAgentsController {
  constructor(
    @Inject(REQUESTS) private readonly requests: GatewayRequests,
    @Inject(WORKSPACE) private readonly workspace: string,
  ) {}

  @Get()
  async list(): Promise<{ agents: AgentView[]; nextCursor: null }> {
    const { agents } = await this.requests.request(listAgents, { workspace: this.workspace });
    return { agents, nextCursor: null };
  }

  @Get(':id')
  async get(@Param('id') id: string): Promise<AgentView> {
    const { agents } = await this.requests.request(listAgents, { workspace: this.workspace });
    const agent = agents.find((candidate) => candidate.id === id);
    if (!agent) throw notFound('GATEWAY.AGENT_NOT_FOUND', 'there is no agent with this id');
    return agent;
  }
}
