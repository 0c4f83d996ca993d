import { BudgetsQuery, UsageQuery } from '../gateway/index.js';
import { readAgentUsage, readBudgets } from '../metering/index.js';
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
      'if one is named. Money is in integer micro-USD; a limit of null means none.',
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
  readUsage: defineRoute({
    method: 'get',
    path: '/api/v1/usage',
    access: 'budgets:read',
    tag: 'Budgets',
    summary: 'Read the cost of agents',
    description:
      'Returns what the model calls of each agent cost, most expensive first, and the sum. The figures come from the ' +
      'rows of the budgets, so the sum over all agents is what the workspace spent. Terminated agents count. ' +
      'At most 1,000 agents are listed, the most expensive first, and the total counts all of them.',
    query: UsageQuery,
    reply: { schema: readAgentUsage.reply },
    example: {
      query: { tree: 'research-lead' },
      reply: { agents: [{ agentId: 'research-lead', ...COST }], total: COST },
    },
  }),
} as const;
