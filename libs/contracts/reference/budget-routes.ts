import { BudgetLimitBody, BudgetsQuery, ByAgentId, ByBudgetScope, UsageQuery } from '../gateway/index.js';
import { readAgentUsage, readBudgets, setBudgetLimit } from '../metering/index.js';
import { listPlugins } from '../sandbox/index.js';
import { defineRoute } from './http-route.js';

const COST = {
  calls: 12,
  settledTokens: 48_210,
  settledMicroUsd: 215_300,
  reservedTokens: 0,
  reservedMicroUsd: 0,
};

/** Routes of `/api/v1/budgets` and `/api/v1/usage`. */
export const BUDGET_ROUTES = {
  readBudgets: defineRoute({
    method: 'get',
    path: '/api/v1/budgets',
    access: 'budgets:read',
    tag: 'Budgets',
    summary: 'Read budgets',
    description:
      'Returns limits, reservations and spending of the current day and month (UTC), and of a session or an agent ' +
      'if one is named. Money is in integer micro-USD; a limit of null means none. The key of an agent gets the ' +
      'scopes of its own tree and sessions only.',
    query: BudgetsQuery,
    reply: { schema: readBudgets.reply },
    example: {
      query: { agent: 'research-lead' },
      reply: {
        scopes: [
          {
            kind: 'agent',
            key: 'agent/research-lead',
            limitTokens: 250_000,
            limitMicroUsd: null,
            limitFrom: 'run_time' as const,
            reservedTokens: 4_500,
            settledTokens: 48_210,
            reservedMicroUsd: 20_100,
            settledMicroUsd: 215_300,
            frozen: false,
          },
        ],
      },
    },
  }),
  setAgentLimit: defineRoute({
    method: 'put',
    path: '/api/v1/budgets/agents/{id}',
    access: 'budgets:write',
    tag: 'Budgets',
    summary: 'Set the budget of an agent',
    description:
      'Sets what an agent and its descendants may spend together, as a fact. The next calls are admitted by it, in all ' +
      'processes within a second. The same limits again change nothing.',
    params: ByAgentId,
    body: BudgetLimitBody,
    reply: { schema: setBudgetLimit.reply },
    example: {
      params: { id: 'research-lead' },
      body: { limitTokens: 250_000, limitMicroUsd: null },
      reply: { changed: true },
    },
    problems: {
      403: '`AGENT.NOT_ALLOWED`: the key of an agent sets no budgets',
      404: 'there is no such agent',
    },
  }),
  setWorkspaceLimit: defineRoute({
    method: 'put',
    path: '/api/v1/budgets/{scope}',
    access: 'budgets:write',
    tag: 'Budgets',
    summary: 'Set the budget of each session, day or month',
    description:
      'Sets what each session, day (UTC) or month of the workspace may spend, as a fact. It replaces the limits of ' +
      '`[budgets]` until it is removed. Calls are admitted by it in all processes within a second. The same limits ' +
      'again change nothing.',
    params: ByBudgetScope,
    body: BudgetLimitBody,
    reply: { schema: setBudgetLimit.reply },
    example: {
      params: { scope: 'day' },
      body: { limitTokens: null, limitMicroUsd: 25_000_000 },
      reply: { changed: true },
    },
    problems: { 403: '`AGENT.NOT_ALLOWED`: the key of an agent sets no budgets' },
  }),
  removeWorkspaceLimit: defineRoute({
    method: 'delete',
    path: '/api/v1/budgets/{scope}',
    access: 'budgets:write',
    tag: 'Budgets',
    summary: 'Remove the budget of each session, day or month',
    description:
      'Removes limits that were set at run time, as a fact. The limits of `[budgets]` apply again. What was spent stays ' +
      'counted. It changes nothing where none were set.',
    params: ByBudgetScope,
    reply: { schema: setBudgetLimit.reply },
    example: { params: { scope: 'day' }, reply: { changed: true } },
    problems: { 403: '`AGENT.NOT_ALLOWED`: the key of an agent sets no budgets' },
  }),
  readUsage: defineRoute({
    method: 'get',
    path: '/api/v1/usage',
    access: 'budgets:read',
    tag: 'Budgets',
    summary: 'Read the cost by agent, model, key or day',
    description:
      'Returns what the model calls of each agent cost, most expensive first, and the sum. The figures come from the ' +
      'rows of the budgets, so the sum over all agents is what the workspace spent. Terminated agents count. ' +
      'At most 1,000 agents are listed, the most expensive first, and the total counts all of them. With `by` the same ' +
      'costs are in `groups`: by model, by the caller of the turn, or by UTC day, the newest first. Calls of archived ' +
      'sessions no longer count here, but in `GET /api/v1/budgets`.',
    query: UsageQuery,
    reply: { schema: readAgentUsage.reply },
    example: {
      query: { tree: 'research-lead' },
      reply: { agents: [{ agentId: 'research-lead', ...COST }], total: COST },
    },
  }),
  listPlugins: defineRoute({
    method: 'get',
    path: '/api/v1/plugins',
    access: 'plugins:read',
    tag: 'Operations',
    summary: 'List plug-ins',
    description:
      'Returns the plug-ins of the workspace, of the configuration and added at run time: tools, capabilities and status.',
    reply: { schema: listPlugins.reply },
    example: {
      reply: {
        plugins: [
          {
            ...{ name: 'calculator', kind: 'tool', status: 'loaded', reason: null, capabilities: [] },
            ...{
              moduleDigest: 'a'.repeat(64),
              tools: ['calculator'],
              origin: 'configuration',
              allowed: true,
            },
            ...{ version: null, addedBy: null, addedAt: null },
          },
        ],
      },
    },
  }),
} as const;
