import { findApprovalRule } from '@antiphon/config';
import type { AgentConfig } from '@antiphon/config';
import type { ToolDescription } from '@antiphon/contracts/sandbox';
import type { JsonValue } from '@antiphon/kernel';
import { digestOf } from '@antiphon/event-store';

const NOTHING: ReadonlySet<string> = new Set();

/** Returns the tools of an agent whose calls require an approval. */
export const guardedTools = (
  agent: Pick<AgentConfig, 'approvals' | 'tools'>,
  known: (tool: string) => Pick<ToolDescription, 'idempotent'> | undefined,
): ReadonlySet<string> => {
  if (agent.approvals.length === 0) return NOTHING;
  return new Set(agent.tools.filter((tool) => findApprovalRule(agent, tool, known(tool)) !== null));
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
