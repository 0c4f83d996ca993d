import { pointOf, type Point, type Points } from './editor-store.js';

export const STEPS: Readonly<Record<string, Point>> = {
  ArrowLeft: { x: -1, y: 0 },
  ArrowRight: { x: 1, y: 0 },
  ArrowUp: { x: 0, y: -1 },
  ArrowDown: { x: 0, y: 1 },
};

/** Distance across the direction counts more, so that an arrow stays in its row or column. */
const ACROSS = 3;

interface Linked {
  readonly id: string;
  readonly needs: readonly string[];
}

/** Returns the node that an arrow key leads to: along an edge if there is one, else the nearest. */
export const nearestNode = (
  nodes: readonly Linked[],
  points: Points,
  current: string,
  step: Point,
): string | null => {
  const from = pointOf(points, current);
  const here = nodes.find(({ id }) => id === current);
  if (!from || !here) return nodes[0]?.id ?? null;
  const isLinked = ({ id, needs }: Linked): boolean =>
    step.y === 0 && (step.x > 0 ? needs.includes(current) : here.needs.includes(id));
  let best: string | null = null;
  let bestCost = Number.POSITIVE_INFINITY;
  for (const node of nodes) {
    const to = pointOf(points, node.id);
    if (!to || node.id === current) continue;
    const along = (to.x - from.x) * step.x + (to.y - from.y) * step.y;
    if (along <= 0) continue;
    const across = Math.abs((to.x - from.x) * step.y) + Math.abs((to.y - from.y) * step.x);
    const cost = (along + across * ACROSS) * (isLinked(node) ? 0.2 : 1);
    if (cost < bestCost) [best, bestCost] = [node.id, cost];
  }
  return best;
};
