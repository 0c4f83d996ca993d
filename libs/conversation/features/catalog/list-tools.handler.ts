import { Controller, Inject } from '@nestjs/common';
import { ReadAgents } from '@antiphon/agents-features';
import { expandTools, findApprovalRule, hasTool, isToolPattern, workspaceConfig } from '@antiphon/config';
import type { AgentConfig, AntiphonConfig } from '@antiphon/config';
import { MAX_AGENTS_OF_TOOL, MAX_AGENTS_WITH_TOOLS, listAgentTools } from '@antiphon/contracts/agent';
import type { AgentView, ToolView } from '@antiphon/contracts/agent';
import { MAX_TOOL_OUTPUT_BYTES, type ToolDescription } from '@antiphon/contracts/sandbox';
import { inWorkspace } from '@antiphon/database';
import type { Clock } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import { CLOCK, CONFIG, DATABASE_POOL } from '@antiphon/service-host';
import type pg from 'pg';
import type { z } from 'zod';
import { callPolicy, ToolCatalog } from '../turns/tool-catalog.js';
import { countToolCalls, type CallsOfDay } from './count-tool-calls.js';
import { NATIVE_MODULE } from '../tools/tool-schemas.js';

type Reply = z.input<typeof listAgentTools.reply>;

type AgentRow = Pick<AgentView, 'id' | 'name' | 'base' | 'tools'>;

const HTTP = 'http:';
const hostsOf = ({ grants }: ToolDescription): string[] =>
  grants.filter((grant) => grant.startsWith(HTTP)).map((grant) => grant.slice(HTTP.length));

const ownerOf = (
  { id, name, base }: AgentRow,
  tool: ToolDescription,
  configured: readonly AgentConfig[],
): ToolView['agents'][number] => {
  const rules = configured.find((agent) => agent.id === base) ?? null;
  const rule = rules && findApprovalRule(rules, tool.name, tool);
  const approval = rule && {
    ...{ ask: rule.ask === 'unsafe' ? ('unsafe' as const) : ('always' as const), answerBy: rule.answerBy },
    expiresAfterS: Math.ceil(rule.expiresAfterMs / 1_000),
  };
  return { id, name, approval, ...callPolicy(rules, tool.name, tool) };
};

/** Handles `cmd.agent.agent.list-tools`: returns the tools of a workspace, and who may call them. */
@Controller()
export class ListTools {
  constructor(
    @Inject(CONFIG) private readonly config: AntiphonConfig,
    @Inject(ToolCatalog) private readonly catalog: ToolCatalog,
    @Inject(ReadAgents) private readonly agents: ReadAgents,
    @Inject(DATABASE_POOL) private readonly pool: pg.Pool,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  @HandleRequest(listAgentTools)
  async handle({ workspace, at }: z.output<typeof listAgentTools.request>): Promise<Reply> {
    const { tools, hasPlugins } = await this.catalog.allTools(workspace);
    const { agents, position, head } = await this.agents.list({
      workspace,
      at,
      limit: MAX_AGENTS_WITH_TOOLS,
    });
    const moment = { now: this.clock.now(), at: position };
    const calls = await countToolCalls(inWorkspace(this.pool, workspace), workspace, moment);
    const { agents: configured } = workspaceConfig(this.config, workspace);
    const known = new Set(tools.map(({ name }) => name));
    return {
      tools: tools.map((tool) => toView(tool, agents, configured, calls)),
      // Without the sandbox it is not known which tools of plug-ins exist.
      unknown: hasPlugins ? unknownTools(agents, known) : [],
      ...{ hasPlugins, since: calls.since, isCountPartial: calls.isPartial },
      ...(position === undefined ? {} : { position, head }),
    };
  }
}

const toView = (
  tool: ToolDescription,
  agents: readonly AgentRow[],
  configured: readonly AgentConfig[],
  calls: CallsOfDay,
): ToolView => {
  const isNative = tool.moduleDigest === NATIVE_MODULE;
  const owners = agents.filter(({ tools }) => hasTool(tools, tool.name));
  return {
    ...{ name: tool.name, description: tool.description, inputSchema: tool.inputSchema },
    ...{
      source: isNative ? 'native' : (tool.source ?? 'plugin'),
      moduleDigest: isNative ? null : tool.moduleDigest,
    },
    ...{ capabilities: tool.grants, hosts: hostsOf(tool), isIdempotent: tool.idempotent },
    workers: tool.workers ?? null,
    timeoutMs: tool.timeoutMs ?? null,
    memoryMb: tool.memoryMb ?? null,
    maxOutputBytes: isNative ? null : MAX_TOOL_OUTPUT_BYTES,
    retry: tool.retry ?? null,
    agentCount: owners.length,
    agents: owners.slice(0, MAX_AGENTS_OF_TOOL).map((agent) => ownerOf(agent, tool, configured)),
    calls: calls.of(tool.name),
  };
};

/** Returns the tools that agents name and that do not exist, with these agents. */
const unknownTools = (agents: readonly AgentRow[], known: ReadonlySet<string>): Reply['unknown'] => {
  const isKnown = (name: string): boolean =>
    known.has(name) || (isToolPattern(name) && expandTools([name], known).length > 0);
  const names = new Set(agents.flatMap(({ tools }) => tools).filter((name) => !isKnown(name)));
  return [...names].sort().map((name) => ({
    name,
    agents: agents
      .filter(({ tools }) => tools.includes(name))
      .slice(0, MAX_AGENTS_OF_TOOL)
      .map(({ id }) => id),
  }));
};
