import { BaseEdge, getBezierPath, type EdgeProps } from '@xyflow/react';
import { pathOfDetour } from './edge-route.js';
import type { EdgeData } from './use-cards.js';

/** An edge that goes around the nodes between its ends. Without any it is the usual curve. */
export const RoutedEdge = (edge: EdgeProps) => {
  const { sourceX, sourceY, targetX, targetY, data, markerEnd, interactionWidth } = edge;
  const detour = (data as EdgeData | undefined)?.detour ?? null;
  const path = detour
    ? pathOfDetour({ x: sourceX, y: sourceY }, { x: targetX, y: targetY }, detour)
    : getBezierPath(edge)[0];
  return (
    <BaseEdge
      path={path}
      {...(markerEnd === undefined ? {} : { markerEnd })}
      {...(interactionWidth === undefined ? {} : { interactionWidth })}
    />
  );
};
