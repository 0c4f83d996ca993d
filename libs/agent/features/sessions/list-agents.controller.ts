import { Controller, Inject } from '@nestjs/common';
import { listAgents } from '@antiphon/contracts/agent';
import type { z } from 'zod';
import { HandleRequest } from '@antiphon/messaging';
import { AGENT_RUNTIME } from '../agent-runtime.js';
import type { AgentRuntime } from '../agent-runtime.js';
import type { ListAgentsReply } from './list-agents.handler.js';

@Controller()
export class ListAgentsController {
  constructor(@Inject(AGENT_RUNTIME) private readonly runtime: AgentRuntime) {}

  @HandleRequest(listAgents)
  list({ workspace }: z.output<typeof listAgents.request>): Promise<ListAgentsReply> {
    return this.runtime.listAgents(workspace);
  }
}
