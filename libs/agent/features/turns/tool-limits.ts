import type { AgentConfig, ToolLimit } from '@antiphon/config';
import { DEFAULT_TOOL_RETRY, narrowRetry } from '@antiphon/contracts/sandbox';
import type { ToolDescription, ToolRetry } from '@antiphon/contracts/sandbox';

type Described = Pick<ToolDescription, 'idempotent' | 'retry' | 'timeoutMs'>;

/** What a call's request records of how it is to be made. */
export interface CallPolicy {
  readonly retry?: ToolRetry;
  /** Only where the agent is held to less than the tool, which keeps its own time itself. */
  readonly timeoutMs?: number;
}

const limitFor = (
  agent: Pick<AgentConfig, 'toolLimits'> | null,
  tool: string,
): Partial<Omit<ToolLimit, 'tool'>> => {
  const limits = agent?.toolLimits ?? [];
  return limits.find((own) => own.tool === tool) ?? limits.find((all) => all.tool === '*') ?? {};
};

/** A tool that declares nothing is tried again all the same, if it is idempotent: within the agent's limits as well. */
const retryWithin = (
  { idempotent, retry }: Described,
  { maxAttempts = null, maxBackoffMs = null }: Partial<ToolLimit>,
): ToolRetry | undefined => {
  if (maxAttempts === null && maxBackoffMs === null) return retry;
  const base = retry ?? (idempotent ? DEFAULT_TOOL_RETRY : undefined);
  return base && narrowRetry(base, { maxAttempts, maxBackoffMs });
};

/** How an agent's call of a tool is made: as the tool declares, within what the agent's configuration allows. */
export const callPolicy = (
  agent: Pick<AgentConfig, 'toolLimits'> | null,
  tool: string,
  described: Described,
): CallPolicy => {
  const limit = limitFor(agent, tool);
  const retry = retryWithin(described, limit);
  const timeoutMs = limit.timeoutMs ?? null;
  const isLess = timeoutMs !== null && timeoutMs < (described.timeoutMs ?? Infinity);
  return { ...(retry ? { retry } : {}), ...(isLess ? { timeoutMs } : {}) };
};
