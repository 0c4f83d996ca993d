import type { AgentBudget } from '@antiphon/contracts/agent';
import { setBudgetLimit } from '@antiphon/contracts/metering';
import { requestWithRetry } from '@antiphon/messaging';
import type { RequestClient } from '@antiphon/messaging';

export interface AgentBudgetToSet {
  readonly workspace: string;
  readonly agentId: string;
  /** Null for no limit. */
  readonly budget: AgentBudget | null;
  readonly actor: string;
}

/**
 * Sets what an agent and its descendants may spend together. Call it before `AgentSpawned` is
 * committed; a repeat changes nothing.
 */
export const setAgentBudget = async (
  requests: RequestClient,
  { workspace, agentId, budget, actor }: AgentBudgetToSet,
): Promise<void> => {
  const limits = { limitTokens: budget?.tokens ?? null, limitMicroUsd: budget?.microUsd ?? null };
  const request = { workspace, agentId, ...limits, actor };
  await requestWithRetry((options) => requests.request(setBudgetLimit, request, options));
};
