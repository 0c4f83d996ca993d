import type { WorkflowDefinition, WorkflowSource } from '@antiphon/contracts/agent';
import { TEXT_DEADLINE_MS } from '@antiphon/service-host/worker-pool';
import { workJobs } from '../text-work.js';
import { parseDefinition } from './parse-definition.js';

/**
 * Parses a definition as `parseDefinition` does. A thread parses YAML: its parser compares each key
 * with all others, six seconds for 180 KB.
 */
export const parseInThread = async (owner: string, source: WorkflowSource): Promise<WorkflowDefinition> =>
  typeof source === 'string'
    ? workJobs.run({ name: 'parseDefinition', input: source, owner, deadlineMs: TEXT_DEADLINE_MS })
    : parseDefinition(source);
