import { Controller, Get, Inject, Param } from '@nestjs/common';
import { listAgents, type AgentView } from '@antiphon/contracts/agent';
import { notFound } from '@antiphon/kernel';
import { REQUESTS } from '@antiphon/service-host';
import type { GatewayRequests } from '../gateway-requests.port.js';
import { WORKSPACE } from '../gateway.tokens.js';
import { rememberAnswers, type Remembered } from '../show-status/remembered.js';

/** `GET /api/v1/agents` and `/:id`: read-only in this version; agents come from the configuration. */
@Controller('api/v1/agents')
export class ListAgentsController {
  private readonly agents: () => Promise<Remembered<AgentView[]>>;

  constructor(@Inject(REQUESTS) requests: GatewayRequests, @Inject(WORKSPACE) workspace: string) {
    this.agents = rememberAnswers(async () => (await requests.request(listAgents, { workspace })).agents);
  }

  @Get()
  async list(): Promise<{ agents: AgentView[]; nextCursor: null; stale?: true }> {
    const { value, stale } = await this.agents();
    return { agents: value, nextCursor: null, ...(stale ? { stale } : {}) };
  }

  @Get(':id')
  async get(@Param('id') id: string): Promise<AgentView> {
    const { value } = await this.agents();
    const agent = value.find((candidate) => candidate.id === id);
    if (!agent) throw notFound('GATEWAY.AGENT_NOT_FOUND', 'there is no agent with this id');
    return agent;
  }
}
