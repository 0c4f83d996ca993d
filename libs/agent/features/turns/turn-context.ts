import { assembleContext } from '@antiphon/contracts/memory';
import type { ToolDescription } from '@antiphon/contracts/sandbox';
import type { MemoryContext } from '@antiphon/agent-domain';
import type { AgentConfig, AntiphonConfig } from '@antiphon/config';
import { requestWithRetry } from '@antiphon/messaging';
import type { RequestClient } from '@antiphon/messaging';
import type { ToolCatalog } from './tool-catalog.js';
import type { SessionActor } from '../sessions/session-actor.js';

/** What a turn is answered with, besides the session itself: asked for once a turn. */
export interface TurnContext {
  readonly remembered: MemoryContext;
  readonly tools: readonly ToolDescription[];
}

export interface ContextDeps {
  readonly requests: RequestClient;
  readonly config: AntiphonConfig;
  readonly tools: ToolCatalog;
}

/** Memory may fill this part of the whole context; the rest is for recent turns, the open one and tools. */
const MEMORY_SHARE = 0.5;

const assemble = async (
  { requests, config }: ContextDeps,
  actor: SessionActor,
  session: { readonly sessionKey: string; readonly agentId: string; readonly seen: number },
  query: string,
): Promise<MemoryContext> => {
  const wanted = {
    workspace: actor.workspace,
    sessionId: actor.sessionId,
    sessionKey: session.sessionKey,
    agentId: session.agentId,
    atLeast: session.seen,
    query,
    budgetTokens: Math.max(1, Math.floor(config.memory.contextTokens * MEMORY_SHARE)),
  };
  const { soul, facts } = await requestWithRetry((options) =>
    requests.request(assembleContext, wanted, options),
  );
  return { soul: soul?.text ?? null, facts };
};

/** Asks memory and the list of tools side by side. `seen`: the version of the session that memory must have seen. */
export const askContext = async (
  services: ContextDeps,
  actor: SessionActor,
  agent: AgentConfig,
  session: { readonly sessionKey: string; readonly seen: number },
  query: string,
): Promise<TurnContext> => {
  const [remembered, tools] = await Promise.all([
    assemble(services, actor, { ...session, agentId: agent.id }, query),
    services.tools.toolsOf(actor.workspace, agent.tools),
  ]);
  return { remembered, tools };
};
