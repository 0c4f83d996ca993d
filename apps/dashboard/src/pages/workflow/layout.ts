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

export interface Layout {
  readonly points: Points;
  /** Says why the nodes are in a grid; null if they were laid out by their edges. */
  readonly notice: string | null;
}

const LATE = 'The layout took longer than 2 s, so the nodes are in a grid';
const FAILED = 'The layout failed, so the nodes are in a grid';

const startWorker = (): Worker | null => {
  try {
    return new Worker(policy.createScriptURL(workerUrl), { type: 'module' });
  } catch {
    return null;
  }
};

/** Lays a graph out in a worker. If it fails, or after a deadline, the nodes are in a grid. */
export const layOut = (nodes: readonly Pick<WorkflowNode, 'id' | 'needs'>[]): Promise<Layout> =>
  new Promise((resolve) => {
    const worker = startWorker();
    if (!worker) return resolve({ points: gridLayout(nodes), notice: FAILED });
    const finish = (layout: Layout): void => {
      clearTimeout(timer);
      worker.terminate();
      resolve(layout);
    };
    const fallBack = (notice: string): void => finish({ points: gridLayout(nodes), notice });
    const timer = setTimeout(() => fallBack(LATE), DEADLINE_MS);
    worker.onmessage = ({ data }: MessageEvent<Points>) => finish({ points: data, notice: null });
    worker.onerror = () => fallBack(FAILED);
    const request: LayoutRequest = {
      nodes: nodes.map(({ id, needs }) => ({ id, needs })),
      width: NODE_WIDTH,
      height: NODE_HEIGHT,
      gapX: GAP_X,
      gapY: GAP_Y,
    };
    worker.postMessage(request);
  });
