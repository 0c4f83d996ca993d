import { z } from 'zod';
import { HISTORY_PLACES, HistoryEvent } from './session-history.js';
import { RunView } from './workflow-requests.js';

/** A run as of a position, and the events after it. */
export const RunHistory = z.object({
  ...HISTORY_PLACES,
  snapshot: z.object({
    run: RunView.nullable().describe('The run as of `from`; null if it had not started.'),
  }),
  events: z.array(HistoryEvent),
});
export type RunHistory = z.infer<typeof RunHistory>;

export { foldRun, foldRunHistory } from './fold-run.js';
