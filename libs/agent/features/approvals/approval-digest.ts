import type { ToolDescription } from '@antiphon/contracts/sandbox';
import type { JsonValue } from '@antiphon/kernel';
import { digestOf } from '../derived-ids.js';

/** What somebody agrees to. */
export interface ApprovedCall {
  readonly workspace: string;
  readonly sessionId: string;
  readonly callId: string;
  readonly tool: string;
  readonly input: JsonValue;
}

/** The module that would run, and what it may do. A tool that the sandbox does not have has neither. */
export const moduleOf = (
  tools: readonly ToolDescription[],
  name: string,
): { readonly moduleDigest: string; readonly grants: string[] } => {
  const tool = tools.find((described) => described.name === name);
  return { moduleDigest: tool?.moduleDigest ?? '', grants: [...(tool?.grants ?? [])].sort() };
};

/** SHA-256 (hex) of the RFC 8785 form of everything that an approval is bound to. */
export const approvalDigestOf = (
  { workspace, sessionId, callId, tool, input }: ApprovedCall,
  { moduleDigest, grants }: ReturnType<typeof moduleOf>,
): string =>
  digestOf({ workspace, session: sessionId, call: callId, tool, moduleDigest, arguments: input, grants });
