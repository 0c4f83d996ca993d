import { Controller, Inject } from '@nestjs/common';
import { MAX_CAPABILITIES, MAX_CAPABLE_AGENTS, listCapabilities } from '@antiphon/contracts/agent';
import { agentStateOf } from '@antiphon/agents-domain';
import type { AgentStatus } from '@antiphon/agents-domain';
import { translateDatabaseError } from '@antiphon/database';
import type { PastReads } from '@antiphon/event-store';
import { HandleRequest } from '@antiphon/messaging';
import type { z } from 'zod';
import { PAST_READS } from '../agents.tokens.js';
import { ConfiguredAgents } from './configured-agents.js';

const CAPABILITIES_SQL = `select name, count, agent_id, agent_name, status, is_working from (
    select c.name, a.agent_id, a.record -> 'definition' ->> 'name' as agent_name, a.status,
      coalesce(t.open_turns, 0) > 0 as is_working, count(*) over (partition by c.name)::int as count,
      row_number() over (partition by c.name order by a.first_position) as nth,
      dense_rank() over (order by c.name) as nth_name
    from agent_agents a
    cross join lateral jsonb_array_elements_text(a.record -> 'definition' -> 'capabilities') as c (name)
    left join agent_activity t on t.workspace = a.workspace and t.agent_id = a.agent_id
    where a.workspace = $1 and a.status <> 'terminated') found
  where nth <= ${MAX_CAPABLE_AGENTS} and nth_name <= ${MAX_CAPABILITIES} order by name, nth`;

interface Row {
  readonly name: string;
  readonly count: number;
  readonly agent_id: string;
  readonly agent_name: string;
  readonly status: AgentStatus;
  readonly is_working: boolean;
}

/** Handles `cmd.agent.agent.list-capabilities`: returns what tasks may need, and who can do it. */
@Controller()
export class ListCapabilities {
  constructor(
    @Inject(ConfiguredAgents) private readonly configured: ConfiguredAgents,
    @Inject(PAST_READS) private readonly past: PastReads,
  ) {}

  @HandleRequest(listCapabilities)
  async handle({
    workspace,
    at,
  }: z.output<typeof listCapabilities.request>): Promise<z.input<typeof listCapabilities.reply>> {
    if (at === undefined) await this.configured.record(workspace);
    return this.past.readAsOf(workspace, at, async (queries) => {
      const query = { name: 'agent_capabilities', text: CAPABILITIES_SQL, values: [workspace] };
      const { rows } = await queries.query<Row>(query).catch((error: unknown) => {
        throw translateDatabaseError(error);
      });
      const names = new Set(rows.map(({ name }) => name));
      return {
        capabilities: [...names].map((name) => {
          const own = rows.filter((row) => row.name === name);
          return { name, count: own[0]?.count ?? own.length, agents: own.map(toAgent) };
        }),
      };
    });
  }
}

const toAgent = ({ agent_id: id, agent_name: name, status, is_working: isWorking }: Row) => ({
  ...{ id, name },
  state: agentStateOf(status, isWorking) ?? 'idle',
});
