import workerUrl from './layout.worker.ts?worker&url';
import type { WorkflowNode } from './definition.js';
import type { Points } from './editor-store.js';
import { GAP_X, GAP_Y, gridLayout, NODE_HEIGHT, NODE_WIDTH } from './grid-layout.js';

const DEADLINE_MS = 2_000;

export interface LayoutRequest {
  readonly nodes: readonly { readonly id: string; readonly needs: readonly string[] }[];
  readonly width: number;
  readonly height: number;
  readonly gapX: number;
  readonly gapY: number;
}

interface Policy {
  createScriptURL(url: string): string;
}
interface PolicyFactory {
  createPolicy(name: string, rules: { createScriptURL: (url: string) => string }): Policy;
}

/** Only this worker's own file may become a script. */
const onlyWorker = (url: string): string => {
  if (url !== workerUrl) throw new Error('not the worker of the layout');
  return url;
};
const factory = (globalThis as { trustedTypes?: PolicyFactory }).trustedTypes;
const policy: Policy = factory?.createPolicy('antiphon-worker', { createScriptURL: onlyWorker }) ?? {
  createScriptURL: onlyWorker,
};

/** Lays a graph out in a worker. After a deadline it ends the worker and returns the grid. */
export const layOut = (nodes: readonly Pick<WorkflowNode, 'id' | 'needs'>[]): Promise<Points> =>
  new Promise((resolve) => {
    const worker = new Worker(policy.createScriptURL(workerUrl), { type: 'module' });
    const finish = (points: Points): void => {
      clearTimeout(timer);
      worker.terminate();
      resolve(points);
    };
    const timer = setTimeout(() => finish(gridLayout(nodes)), DEADLINE_MS);
    worker.onmessage = ({ data }: MessageEvent<Points>) => finish(data);
    worker.onerror = () => finish(gridLayout(nodes));
    const request: LayoutRequest = {
      nodes: nodes.map(({ id, needs }) => ({ id, needs })),
      width: NODE_WIDTH,
      height: NODE_HEIGHT,
      gapX: GAP_X,
      gapY: GAP_Y,
    };
    worker.postMessage(request);
  });
