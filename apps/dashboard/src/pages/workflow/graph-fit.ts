import { useReactFlow, useStore, useStoreApi, type OnMove } from '@xyflow/react';
import { useCallback, useEffect, useRef } from 'react';
import { pointOf, type Points } from './editor-store.js';
import { NODE_HEIGHT, NODE_WIDTH } from './grid-layout.js';
import type { GraphNode, GraphProps } from './use-cards.js';

/** Returns the smallest rectangle around the nodes; null if none has a place. */
const boundsOf = (nodes: readonly GraphNode[], points: Points) => {
  const places = nodes.map(({ id }) => pointOf(points, id)).filter((point) => point !== undefined);
  if (places.length === 0) return null;
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const { x, y } of places) {
    [left, top] = [Math.min(left, x), Math.min(top, y)];
    [right, bottom] = [Math.max(right, x + NODE_WIDTH), Math.max(bottom, y + NODE_HEIGHT)];
  }
  return { x: left, y: top, width: right - left, height: bottom - top };
};

const FIT_PADDING = 0.05;

/** Shows the whole graph. A picture has no nodes that the library could measure. */
export const useFit = ({ nodes, points }: GraphProps): (() => void) => {
  const flow = useReactFlow();
  const store = useStoreApi();
  const latest = useRef({ nodes, points });
  latest.current = { nodes, points };
  return useCallback(() => {
    const { width, height } = store.getState();
    const bounds = boundsOf(latest.current.nodes, latest.current.points);
    if (bounds === null || width === 0) return;
    const zoom = Math.min(width / bounds.width, height / bounds.height) / (1 + 2 * FIT_PADDING);
    if (zoom <= 1) return void flow.fitBounds(bounds, { padding: FIT_PADDING });
    void flow.setCenter(bounds.x + bounds.width / 2, bounds.y + bounds.height / 2, { zoom: 1 });
  }, [flow, store]);
};

interface OwnFit {
  /** Follows the pointer. */
  readonly onMoveStart: OnMove;
  /** Says that a person has chosen the view, which then stays. */
  readonly choose: () => void;
}

/**
 * Shows the whole graph once its nodes have places and the box has a size, and again when the size
 * changes. A view that a person has chosen stays.
 */
export const useOwnFit = ({ points }: GraphProps, fit: () => void): OwnFit => {
  const isPlaced = Object.keys(points).length > 0;
  const size = useStore(({ width, height }) => (width > 0 ? `${width} ${height}` : ''));
  const isChosen = useRef(false);
  useEffect(() => {
    if (isPlaced && size !== '' && !isChosen.current) fit();
  }, [fit, isPlaced, size]);
  const choose = useCallback(() => void (isChosen.current = true), []);
  // A view that the graph itself sets has no event of a pointer.
  const onMoveStart = useCallback<OnMove>((event) => event !== null && choose(), [choose]);
  return { onMoveStart, choose };
};

/** Largest graph that is shown as a whole when its current node is out of sight. */
const MAX_WHOLE = 16;

/** Brings the current node into sight. */
export const useShowCurrent = ({ nodes, points, current }: GraphProps, fit: () => void): void => {
  const flow = useReactFlow();
  const store = useStoreApi();
  const at = pointOf(points, current);
  useEffect(() => {
    if (!at) return;
    const { width, height, transform } = store.getState();
    const [left, top, zoom] = transform;
    const [x, y] = [at.x * zoom + left, at.y * zoom + top];
    const isSeen = x >= 0 && y >= 0 && x + NODE_WIDTH * zoom <= width && y + NODE_HEIGHT * zoom <= height;
    if (isSeen || width === 0) return;
    if (nodes.length <= MAX_WHOLE) fit();
    else void flow.setCenter(at.x + NODE_WIDTH / 2, at.y + NODE_HEIGHT / 2, { zoom: Math.max(zoom, 0.7) });
  }, [current]);
};
