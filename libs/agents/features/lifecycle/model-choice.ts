import { causedError } from '@antiphon/contracts/causes';
import { workspaceConfig } from '@antiphon/config';
import type { AntiphonConfig } from '@antiphon/config';
import { forbidden, notFound } from '@antiphon/kernel';
import type { AgentDirectory } from './agent-directory.js';

/** A provider and one of its models. */
interface ModelChoice {
  readonly provider: string;
  readonly model: string;
}

/** The part of an agent that decides which models may be chosen for it. */
interface ChoosingAgent extends ModelChoice {
  readonly base: string;
  readonly fallback: ModelChoice | null;
  readonly models?: readonly string[] | undefined;
}

const isSame = (a: ModelChoice, b: ModelChoice | null): boolean =>
  a.provider === b?.provider && a.model === b.model;

const isListed = ({ provider, model }: ModelChoice, list: readonly string[]): boolean =>
  ['*', `${provider}/*`, `${provider}/${model}`].some((name) => list.includes(name));

/**
 * Throws `AGENT.NOT_ALLOWED` unless a member or an agent may choose a model. It is one that a
 * configured agent has, or that `models` of the agent names: others cost what no operator chose.
 */
export const requireModel = (
  config: AntiphonConfig,
  workspace: string,
  agent: ChoosingAgent,
  chosen: ModelChoice,
): void => {
  const configured = [agent, ...workspaceConfig(config, workspace).agents];
  if (configured.some((one) => isSame(chosen, one) || isSame(chosen, one.fallback))) return;
  if (isListed(chosen, agent.models ?? [])) return;
  const name = `${chosen.provider}/${chosen.model}`;
  const cause = { kind: 'model_not_allowed', name, base: agent.base } as const;
  throw causedError(forbidden, 'AGENT.NOT_ALLOWED', cause, { setting: 'models', agent: agent.base, name });
};

/** Throws `PROVIDER.NOT_FOUND` unless a provider is configured or connected. */
export const requireProvider = async (
  agents: Pick<AgentDirectory, 'knowsProvider'>,
  workspace: string,
  name: string,
): Promise<void> => {
  if (await agents.knowsProvider(workspace, name)) return;
  throw causedError(notFound, 'PROVIDER.NOT_FOUND', { kind: 'provider_missing', name });
};
