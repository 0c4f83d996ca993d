import { planDecider, renderPlan } from '@antiphon/orchestration-domain';
import type { WorkJobs } from './text-work.js';

/** Functions that run in the threads of `text-work.ts`. They are pure. */
export const jobs: WorkJobs = {
  decidePlan: ([command, state]) => planDecider.decide(command, state),
  renderPlan: (document) => new TextEncoder().encode(renderPlan(document)),
  // The schemas of definitions are loaded by the first definition only.
  parseDefinition: async (source) => {
    const { parseDefinition } = await import('./runs/parse-definition.js');
    return parseDefinition(source);
  },
};
