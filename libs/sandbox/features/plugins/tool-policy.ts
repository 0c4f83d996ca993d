import { DEFAULT_TOOL_RETRY, narrowRetry } from '@antiphon/contracts/sandbox';
import type { ToolRetry } from '@antiphon/contracts/sandbox';
import type { PluginDescription } from '@antiphon/sandbox-domain';
import type { PluginSource } from './plugin-source.js';

/** How a tool's calls are made: what it declares, within what the operator allows. */
export interface ToolPolicy {
  /** For one try. */
  readonly timeoutMs: number;
  /** Null where neither the tool nor the operator says anything. */
  readonly retry: ToolRetry | null;
}

type Allowed = Pick<PluginSource, 'timeoutMs' | 'retry'>;

/** An idempotent tool that declares nothing is tried again all the same, and so within the caps as well. */
const retryWithin = (
  { idempotent, declares }: Pick<PluginDescription, 'idempotent' | 'declares'>,
  { retry: caps }: Allowed,
): ToolRetry | null => {
  if (declares.retry) return narrowRetry(declares.retry, caps);
  if (!idempotent || (caps.maxAttempts === null && caps.maxBackoffMs === null)) return null;
  return narrowRetry(DEFAULT_TOOL_RETRY, caps);
};

export const policyWithin = (
  description: Pick<PluginDescription, 'idempotent' | 'declares'>,
  allowed: Allowed,
): ToolPolicy => ({
  timeoutMs: Math.min(description.declares.timeoutMs ?? allowed.timeoutMs, allowed.timeoutMs),
  retry: retryWithin(description, allowed),
});

/** The operator's keys that keep a tool from what it declares, with what they would have to be. */
export const cappedKeys = (
  { declares }: Pick<PluginDescription, 'declares'>,
  { timeoutMs, retry }: ToolPolicy,
): string[] => {
  const { timeoutMs: wanted = 0, retry: declared } = declares;
  const keys = wanted > timeoutMs ? [`timeout_ms = ${wanted}`] : [];
  if (!declared || !retry) return keys;
  if (declared.maxAttempts > retry.maxAttempts) keys.push(`retry.max_attempts = ${declared.maxAttempts}`);
  if (declared.maxBackoffMs > retry.maxBackoffMs)
    keys.push(`retry.max_backoff_ms = ${declared.maxBackoffMs}`);
  return keys;
};
