import type { AgentConfig, ApprovalRule } from '@antiphon/config';
import type { ToolDescription } from '@antiphon/contracts/sandbox';

const NOTHING: ReadonlySet<string> = new Set();

/** The rule for a tool of an agent: its own, else the one for all; null when nobody has to be asked. */
export const ruleFor = (
  { approvals }: Pick<AgentConfig, 'approvals'>,
  tool: string,
  description: Pick<ToolDescription, 'idempotent'> | undefined,
): ApprovalRule | null => {
  const rule = approvals.find((own) => own.tool === tool) ?? approvals.find((all) => all.tool === '*');
  if (!rule || rule.ask === 'never') return null;
  // Of a tool that nobody has described nothing is known to be safe.
  return rule.ask === 'always' || !description?.idempotent ? rule : null;
};

/** Tools of an agent whose calls wait for somebody's word. */
export const guardedTools = (
  agent: Pick<AgentConfig, 'approvals' | 'tools'>,
  known: (tool: string) => Pick<ToolDescription, 'idempotent'> | undefined,
): ReadonlySet<string> => {
  if (agent.approvals.length === 0) return NOTHING;
  return new Set(agent.tools.filter((tool) => ruleFor(agent, tool, known(tool)) !== null));
};
