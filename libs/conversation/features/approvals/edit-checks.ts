import type { ArgumentProblem } from '@antiphon/contracts/agent';
import type { ToolDescription } from '@antiphon/contracts/sandbox';
import type { TurnToolCall } from '@antiphon/conversation-domain';
import type { PolicyAgents } from '@antiphon/agents-features';
import { forbidden, invalid } from '@antiphon/kernel';
import type { JsonValue } from '@antiphon/kernel';
import { TEXT_DEADLINE_MS } from '@antiphon/service-host/worker-pool';
import { conversationJobs } from '../text-work.js';
import { decisionOn } from './approval-rules.js';

/** A call whose arguments a person changes. */
export interface EditedCall {
  readonly workspace: string;
  readonly agentId: string;
  readonly call: Pick<TurnToolCall, 'name'>;
  readonly input: JsonValue;
  /** Tools as the sandbox has them now. */
  readonly tools: readonly ToolDescription[];
}

/** Why changed arguments may not be approved. Both are empty for allowed ones. */
export interface EditVerdict {
  readonly problems: ArgumentProblem[];
  /** Number of the rule of the agent's policy that denies them. */
  readonly deniedByRule: number | null;
}

/** Checks arguments by the schema of their tool, and by the policy of the agent. */
export const checkEdit = async (
  agents: Pick<PolicyAgents, 'load'>,
  { workspace, agentId, call: { name }, input, tools }: EditedCall,
): Promise<EditVerdict> => {
  const description = tools.find((tool) => tool.name === name);
  if (!description)
    return { problems: [{ path: '', message: `there is no tool ${name} now` }], deniedByRule: null };
  const problems = await conversationJobs.run({
    ...{ name: 'checkArguments', input: [description.inputSchema, input] },
    ...{ owner: workspace, deadlineMs: TEXT_DEADLINE_MS },
  });
  const agent = await agents.load(workspace, agentId);
  const decided = agent && decisionOn(agent, { tool: name, input, description });
  return { problems, deniedByRule: decided?.decision === 'deny' ? decided.rule : null };
};

/** Throws `APPROVAL.ARGUMENTS_INVALID` with the places, or `APPROVAL.EDIT_DENIED` with the rule. */
export const requireAllowed = ({ problems, deniedByRule }: EditVerdict): void => {
  const [first] = problems;
  if (first) {
    const place = first.path === '' ? 'the arguments' : first.path;
    throw invalid('APPROVAL.ARGUMENTS_INVALID', `the tool does not take ${place}: ${first.message}`, {
      data: { problems },
    });
  }
  if (deniedByRule !== null)
    throw forbidden(
      'APPROVAL.EDIT_DENIED',
      `rule ${deniedByRule} of the agent's policy denies these arguments`,
      { data: { rule: deniedByRule } },
    );
};
