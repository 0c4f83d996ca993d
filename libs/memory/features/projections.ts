import type { ProjectionDefinition } from '@antiphon/event-store';
import { applySessionEvents } from './projections/apply-session-events.js';
import { PROJECTION_NAME } from './projections/session-memory.events.js';

/** Projection of sessions and facts, for contexts and recall. */
export const memoryFacts: ProjectionDefinition = {
  name: PROJECTION_NAME,
  service: 'memory',
  categories: ['session'],
  tables: [{ name: 'memory_sessions' }, { name: 'memory_facts' }],
  handle: applySessionEvents,
};

export const memoryProjections = [memoryFacts] as const;
