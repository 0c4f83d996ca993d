import { findApprovalRule, hasTool } from '@antiphon/config';
import type { AgentConfig, ApprovalRule } from '@antiphon/config';
import type { ToolDescription } from '@antiphon/contracts/sandbox';
import type { JsonValue } from '@antiphon/kernel';
import type { Guards } from '@antiphon/conversation-domain';
import { digestOf } from '@antiphon/event-store';
import { mayCall } from '../tools/tool-schemas.js';

const NOTHING: Guards = { has: () => false };

/** Returns the rule by which a call of a tool requires an approval; null for a tool without one. */
export const approvalRuleOf = (
  agent: Pick<AgentConfig, 'approvals' | 'tools'>,
  tool: string,
  description: Pick<ToolDescription, 'idempotent'> | undefined,
): ApprovalRule | null => {
  if (!mayCall(agent, tool)) return null;
  // A rule for all tools does not mean those that an agent has without a name.
  const isNamed = hasTool(agent.tools, tool) || agent.approvals.some((rule) => rule.tool === tool);
  return isNamed ? findApprovalRule(agent, tool, description) : null;
};

/** Returns the calls of an agent that require an approval. */
export const guardsOf = (
  agent: Pick<AgentConfig, 'approvals' | 'tools'>,
  known: (tool: string) => Pick<ToolDescription, 'idempotent'> | undefined,
): Guards =>
  agent.approvals.length === 0
    ? NOTHING
    : { has: (tool) => approvalRuleOf(agent, tool, known(tool)) !== null };

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
