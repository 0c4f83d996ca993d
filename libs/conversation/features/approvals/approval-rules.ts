import { decideCall, hasTool } from '@antiphon/config';
import type { AgentConfig, PolicyCall, PolicyDecision } from '@antiphon/config';
import type { ToolDescription } from '@antiphon/contracts/sandbox';
import type { JsonValue } from '@antiphon/kernel';
import type { Guards } from '@antiphon/conversation-domain';
import { digestOf } from '@antiphon/event-store';
import { mayCall } from '../tools/tool-schemas.js';

const NOTHING: Guards = { has: () => false };

type Rules = Pick<AgentConfig, 'approvals' | 'policy' | 'tools'>;
type Known = (tool: string) => PolicyCall['description'];

/**
 * Decides on a call of an agent by its policy and approval rules. Approval rules for all tools do
 * not mean those that an agent has without a name.
 */
export const decisionOn = (agent: Rules, call: PolicyCall): PolicyDecision => {
  if (!mayCall(agent, call.tool)) return { decision: 'allow' };
  if (hasTool(agent.tools, call.tool)) return decideCall(agent, call);
  const named = agent.approvals.filter((rule) => rule.tool === call.tool);
  return decideCall({ ...agent, approvals: named }, call);
};

/** Returns the calls of an agent that require an approval. */
export const guardsOf = (agent: Rules, known: Known): Guards =>
  agent.approvals.length === 0 && !agent.policy?.length
    ? NOTHING
    : {
        has: (tool, input) => decisionOn(agent, { tool, input, description: known(tool) }).decision === 'ask',
      };

/** A tool call that an approval is about. */
export interface ApprovedCall {
  readonly workspace: string;
  readonly sessionId: string;
  readonly callId: string;
  readonly tool: string;
  readonly input: JsonValue;
}

/** Returns the module that would run and its grants. Both are empty for an unknown tool. */
export const moduleOf = (
  tools: readonly ToolDescription[],
  name: string,
): { readonly moduleDigest: string; readonly grants: string[] } => {
  const tool = tools.find((described) => described.name === name);
  return { moduleDigest: tool?.moduleDigest ?? '', grants: [...(tool?.grants ?? [])].sort() };
};

/** Returns the SHA-256 (hex) of the RFC 8785 form of all that an approval is bound to. */
export const approvalDigestOf = (
  { workspace, sessionId, callId, tool, input }: ApprovedCall,
  { moduleDigest, grants }: ReturnType<typeof moduleOf>,
): string =>
  digestOf({ workspace, session: sessionId, call: callId, tool, moduleDigest, arguments: input, grants });
