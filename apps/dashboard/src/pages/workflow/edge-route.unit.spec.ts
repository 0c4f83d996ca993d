import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { curvePoints, endsOf, isIn, pathOfDetour, routeEdge, type Detour } from './edge-route.js';
import type { Point } from './editor-store.js';
import { GAP_X, GAP_Y, gridLayout, NODE_HEIGHT, NODE_WIDTH } from './grid-layout.js';

const at = (column: number, row: number): Point => ({
  x: column * (NODE_WIDTH + GAP_X),
  y: row * (NODE_HEIGHT + GAP_Y),
});

/** Points of the whole way of an edge. */
const wayOf = (from: Point, to: Point, detour: Detour | null): readonly Point[] => {
  const { source, target } = endsOf(from, to);
  if (!detour) return curvePoints(source, target);
  const [first, last] = [
    { x: detour.start, y: detour.lane },
    { x: detour.end, y: detour.lane },
  ];
  const line = Array.from({ length: 40 }, (_, index) => ({
    x: first.x + ((last.x - first.x) * index) / 39,
    y: detour.lane,
  }));
  return [...curvePoints(source, first), ...line, ...curvePoints(last, target)];
};

describe('the way of an edge', () => {
  it('is the curve itself where no node is between', () => {
    expect(routeEdge(at(0, 0), at(1, 0), [at(1, 1), at(0, 1)])).toBeNull();
    expect(routeEdge(at(2, 0), at(0, 0), [at(1, 0)])).toBeNull();
  });

  it('passes a node between its ends on the shorter side', () => {
    const detour = routeEdge(at(0, 0), at(2, 0), [at(1, 0)]);
    expect([detour?.lane, detour?.start, detour?.end]).toEqual([
      -14,
      at(1, 0).x - 14,
      at(1, 0).x + NODE_WIDTH + 14,
    ]);
    expect(routeEdge(at(0, 0), at(2, 1), [at(1, 0), at(1, 1)])?.lane).toBeGreaterThan(NODE_HEIGHT);
    const { source, target } = endsOf(at(0, 0), at(2, 0));
    expect(pathOfDetour(source, target, { lane: -14, start: 260, end: 540 })).toMatch(
      /^M216 46C.*L540 -14C.* 576 46$/,
    );
  });

  it('touches no other node of a layout in columns, for any graph', () => {
    const graphs = fc.array(fc.array(fc.nat(30), { maxLength: 3 }), { minLength: 2, maxLength: 14 });
    fc.assert(
      fc.property(graphs, (needs) => {
        const nodes = needs.map((before, index) => ({
          id: String(index),
          needs: index === 0 ? [] : [...new Set(before.map((need) => String(need % index)))],
        }));
        const points = gridLayout(nodes);
        const pointAt = (id: string): Point => points[id] ?? { x: 0, y: 0 };
        for (const node of nodes)
          for (const need of node.needs) {
            const others = nodes
              .filter(({ id }) => id !== need && id !== node.id)
              .map(({ id }) => pointAt(id));
            const way = wayOf(
              pointAt(need),
              pointAt(node.id),
              routeEdge(pointAt(need), pointAt(node.id), others),
            );
            expect(others.filter((box) => way.some((point) => isIn(box, point)))).toEqual([]);
          }
      }),
      { numRuns: 300 },
    );
  });
});
