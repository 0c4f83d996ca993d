import type { AgentConfig, ApprovalRule } from './antiphon-config.js';

/** Returns an agent's approval rule for a tool, else its rule for all; null if none is required. */
export const findApprovalRule = (
  { approvals }: Pick<AgentConfig, 'approvals'>,
  tool: string,
  description: { readonly idempotent: boolean } | undefined,
): ApprovalRule | null => {
  const rule = approvals.find((own) => own.tool === tool) ?? approvals.find((all) => all.tool === '*');
  if (!rule || rule.ask === 'never') return null;
  return rule.ask === 'always' || !description?.idempotent ? rule : null;
};
