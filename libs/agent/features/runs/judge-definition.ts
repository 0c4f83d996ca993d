import type { WorkflowDefinition } from '@antiphon/contracts/agent';
import { WORKFLOW_LIMITS } from '@antiphon/contracts/agent';
import { checkDefinition } from '@antiphon/agent-domain';
import type { ValidationResult } from '@antiphon/agent-domain';
import type { AntiphonConfig } from '@antiphon/config';
import { isAppError } from '@antiphon/kernel';

/** An order in which the nodes can run, by the agents that there are now; throws as `checkDefinition` does. */
export const orderOf = (config: AntiphonConfig, definition: WorkflowDefinition): readonly string[] =>
  checkDefinition(definition, {
    agentExists: (agentId) => config.agents.some(({ id }) => id === agentId),
    maxDepth: WORKFLOW_LIMITS.depth,
  });

/** The same as a verdict, for a draft. */
export const judge = (config: AntiphonConfig, definition: WorkflowDefinition): ValidationResult => {
  try {
    return { order: orderOf(config, definition) };
  } catch (error) {
    if (!isAppError(error) || error.kind !== 'rejected') throw error;
    return { code: error.code, message: error.message };
  }
};
