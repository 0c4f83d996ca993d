import type { RunNode } from './graph-card.js';
import type { GraphNode } from './use-cards.js';

/** State of an edge of a run: `active` edges give a node that works now its input. */
export type EdgeState = 'waits' | 'active' | 'taken' | 'not taken';

type Status = RunNode['status'];
const NEVER: ReadonlySet<Status> = new Set(['failed', 'cancelled', 'skipped']);

/** Returns the state of an edge by the states of its two nodes. */
export const edgeState = (from: Status, to: Status): EdgeState => {
  if (from !== 'completed') return NEVER.has(from) || NEVER.has(to) ? 'not taken' : 'waits';
  if (to === 'skipped') return 'not taken';
  return to === 'running' || to === 'ready' ? 'active' : 'taken';
};

const ORDER: readonly EdgeState[] = ['active', 'taken', 'waits', 'not taken'];
const WORDS: Readonly<Record<EdgeState, readonly [one: string, many: string]>> = {
  active: ['active', 'active'],
  taken: ['taken', 'taken'],
  waits: ['waits', 'wait'],
  'not taken': ['not taken', 'not taken'],
};

/** Returns the number of edges in each state that occurs, such as `1 active`, `3 taken`. */
export const countEdges = (
  nodes: readonly GraphNode[],
  run: readonly RunNode[],
): readonly { readonly state: EdgeState; readonly text: string }[] => {
  const statuses = new Map(run.map(({ id, status }) => [id, status]));
  const counts = new Map<EdgeState, number>();
  for (const { id, needs } of nodes)
    for (const need of needs) {
      const [from, to] = [statuses.get(need), statuses.get(id)];
      if (!from || !to) continue;
      const state = edgeState(from, to);
      counts.set(state, (counts.get(state) ?? 0) + 1);
    }
  return ORDER.flatMap((state) => {
    const count = counts.get(state) ?? 0;
    return count === 0 ? [] : [{ state, text: `${count} ${WORDS[state][count === 1 ? 0 : 1]}` }];
  });
};
