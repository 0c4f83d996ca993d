import type { Point } from './editor-store.js';
import { NODE_HEIGHT, NODE_WIDTH } from './grid-layout.js';

/** Way of an edge around the nodes that are between its two ends. */
export interface Detour {
  /** Height at which it passes them. */
  readonly lane: number;
  /** Beginning and end of the part at this height. */
  readonly start: number;
  readonly end: number;
}

/** Distance of an edge from the nodes that it passes, px. */
const MARGIN = 14;
/** Distance from which on a curve counts as one that touches a node, px. */
const TOUCH = 4;
const SAMPLES = 32;

const bend = (from: number, first: number, second: number, to: number, t: number): number =>
  (1 - t) ** 3 * from + 3 * (1 - t) ** 2 * t * first + 3 * (1 - t) * t ** 2 * second + t ** 3 * to;

/** Returns points of the curve that the library draws: it leaves and arrives horizontally. */
export const curvePoints = (from: Point, to: Point): readonly Point[] => {
  const half = (to.x - from.x) / 2;
  return Array.from({ length: SAMPLES + 1 }, (_, index) => ({
    x: bend(from.x, from.x + half, to.x - half, to.x, index / SAMPLES),
    y: bend(from.y, from.y, to.y, to.y, index / SAMPLES),
  }));
};

/** Returns true if a point is in the box of a node, or nearer to it than a distance. */
export const isIn = (box: Point, { x, y }: Point, distance = 0): boolean =>
  x > box.x - distance &&
  x < box.x + NODE_WIDTH + distance &&
  y > box.y - distance &&
  y < box.y + NODE_HEIGHT + distance;

/** Returns the places at which an edge leaves a node and arrives at the next. */
export const endsOf = (from: Point, to: Point) => ({
  source: { x: from.x + NODE_WIDTH, y: from.y + NODE_HEIGHT / 2 },
  target: { x: to.x, y: to.y + NODE_HEIGHT / 2 },
});

/**
 * Returns the shortest way around the other nodes, or null where the curve touches none of them.
 * An edge that goes back has none.
 */
export const routeEdge = (from: Point, to: Point, others: readonly Point[]): Detour | null => {
  const { source, target } = endsOf(from, to);
  const between = others.filter((box) => box.x < target.x && box.x + NODE_WIDTH > source.x);
  const curve = curvePoints(source, target);
  if (target.x <= source.x || !between.some((box) => curve.some((point) => isIn(box, point, TOUCH))))
    return null;
  const isFree = (lane: number): boolean =>
    between.every(({ y }) => lane <= y - MARGIN || lane >= y + NODE_HEIGHT + MARGIN);
  const lengthOf = (lane: number): number => Math.abs(lane - source.y) + Math.abs(lane - target.y);
  const lanes = between.flatMap(({ y }) => [y - MARGIN, y + NODE_HEIGHT + MARGIN]).filter(isFree);
  const lane = lanes.reduce((best, next) => (lengthOf(next) < lengthOf(best) ? next : best), lanes[0] ?? 0);
  return {
    lane,
    start: Math.max(source.x, Math.min(...between.map(({ x }) => x)) - MARGIN),
    end: Math.min(target.x, Math.max(...between.map(({ x }) => x + NODE_WIDTH)) + MARGIN),
  };
};

/** Returns the path of an edge with a detour: two curves, and a line past the nodes. */
export const pathOfDetour = (source: Point, target: Point, { lane, start, end }: Detour): string => {
  const curve = (from: Point, to: Point): string => {
    const half = (to.x - from.x) / 2;
    return `C${from.x + half} ${from.y} ${to.x - half} ${to.y} ${to.x} ${to.y}`;
  };
  const [first, last] = [
    { x: start, y: lane },
    { x: end, y: lane },
  ];
  return `M${source.x} ${source.y}${curve(source, first)}L${last.x} ${last.y}${curve(last, target)}`;
};
