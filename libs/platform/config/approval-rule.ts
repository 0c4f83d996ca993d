import { isToolPattern, matchesTool } from './tool-names.js';
import type { AgentConfig, ApprovalRule } from './antiphon-config.js';

/** Returns the rule of a tool: by its name, else by the longest pattern, else that for all tools. */
export const ruleOfTool = <R extends { readonly tool: string }>(
  rules: readonly R[],
  tool: string,
): R | undefined => {
  const exact = rules.find((own) => own.tool === tool);
  if (exact) return exact;
  const patterns = rules.filter((own) => own.tool !== '*' && isToolPattern(own.tool));
  const [longest] = patterns
    .filter((own) => matchesTool(own.tool, tool))
    .sort((a, b) => b.tool.length - a.tool.length);
  return longest ?? rules.find((all) => all.tool === '*');
};

/** Returns an agent's approval rule for a tool; null if none is required. */
export const findApprovalRule = (
  { approvals }: Pick<AgentConfig, 'approvals'>,
  tool: string,
  description: { readonly idempotent: boolean } | undefined,
): ApprovalRule | null => {
  const rule = ruleOfTool(approvals, tool);
  if (!rule || rule.ask === 'never') return null;
  return rule.ask === 'always' || !description?.idempotent ? rule : null;
};
