import type { WorkflowNode } from './definition.js';
import type { Points } from './editor-store.js';

export const NODE_WIDTH = 216;
export const NODE_HEIGHT = 92;
export const GAP_X = 72;
export const GAP_Y = 36;

/** Places nodes in columns by their distance from the start: quick, without crossings in mind. */
export const gridLayout = (nodes: readonly Pick<WorkflowNode, 'id' | 'needs'>[]): Points => {
  const column = new Map<string, number>();
  const known = new Set(nodes.map(({ id }) => id));
  let left = nodes;
  for (let wave = 0; left.length > 0; wave++) {
    const ready = left.filter(({ needs }) => needs.every((id) => column.has(id) || !known.has(id)));
    const placed = ready.length > 0 ? ready : left;
    for (const { id } of placed) column.set(id, wave);
    const done = new Set(placed.map(({ id }) => id));
    left = left.filter(({ id }) => !done.has(id));
  }
  const rows = new Map<number, number>();
  return Object.fromEntries(
    nodes.map(({ id }) => {
      const wave = column.get(id) ?? 0;
      const row = rows.get(wave) ?? 0;
      rows.set(wave, row + 1);
      return [id, { x: wave * (NODE_WIDTH + GAP_X), y: row * (NODE_HEIGHT + GAP_Y) }];
    }),
  );
};
