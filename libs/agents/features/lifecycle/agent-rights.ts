import { causedError } from '@antiphon/contracts/causes';
import type { AgentActor } from '@antiphon/contracts/agent';
import { forbidden } from '@antiphon/kernel';
import type { AgentDirectory } from './agent-directory.js';

/** Returns the actor of a change, as facts record it. */
export const actorName = ({ caller, agentId }: AgentActor): string =>
  agentId === null ? caller : `agent/${agentId}`;

/** Returns true if `agentId` is the agent itself or one of its descendants. */
export const isInSubtree = async (
  agents: Pick<AgentDirectory, 'load'>,
  workspace: string,
  agentId: string,
  ancestor: string,
): Promise<boolean> => {
  for (let id: string | null = agentId; id !== null;) {
    if (id === ancestor) return true;
    id = (await agents.load(workspace, id))?.parentId ?? null;
  }
  return false;
};

/**
 * Checks that the key of an agent is used for a session of this agent or of its descendants. Throws
 * `AGENT.NOT_ALLOWED`. Other callers are not limited.
 */
export const requireOwnSession = async (
  agents: Pick<AgentDirectory, 'load'>,
  { workspace, callerAgent }: { readonly workspace: string; readonly callerAgent?: string | undefined },
  agentId: string,
): Promise<void> => {
  if (callerAgent === undefined || (await isInSubtree(agents, workspace, agentId, callerAgent))) return;
  throw causedError(forbidden, 'AGENT.NOT_ALLOWED', { kind: 'sessions_not_own', agentId: callerAgent });
};

/**
 * Checks that the actor may change this agent, or give it a child. Throws `AGENT.NOT_ALLOWED`: a
 * viewer changes nothing, and an agent changes only itself and its descendants.
 */
export const requireRights = async (
  agents: Pick<AgentDirectory, 'load'>,
  workspace: string,
  { role, agentId: own }: AgentActor,
  agentId: string | null,
): Promise<void> => {
  if (role === 'viewer')
    throw causedError(forbidden, 'AGENT.NOT_ALLOWED', { kind: 'viewer_changes_no_agent' });
  if (own === null) return;
  if (agentId !== null && (await isInSubtree(agents, workspace, agentId, own))) return;
  throw causedError(forbidden, 'AGENT.NOT_ALLOWED', { kind: 'agents_not_own', agentId: own });
};
