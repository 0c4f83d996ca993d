import { Graph, layout } from '@dagrejs/dagre';
import type { LayoutRequest } from './layout.js';
import type { Points } from './editor-store.js';

const layOut = ({ nodes, width, height, gapX, gapY }: LayoutRequest): Points => {
  const graph = new Graph();
  graph.setGraph({ rankdir: 'LR', ranksep: gapX, nodesep: gapY });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id } of nodes) graph.setNode(id, { width, height });
  for (const { id, needs } of nodes)
    for (const need of needs) if (graph.hasNode(need)) graph.setEdge(need, id);
  layout(graph);
  return Object.fromEntries(
    nodes.map(({ id }) => {
      const { x, y } = graph.node(id) as { x: number; y: number };
      return [id, { x: Math.round(x - width / 2), y: Math.round(y - height / 2) }];
    }),
  );
};

self.onmessage = ({ data }: MessageEvent<LayoutRequest>) => self.postMessage(layOut(data));
