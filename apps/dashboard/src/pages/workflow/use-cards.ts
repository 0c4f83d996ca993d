import { MarkerType, Position, type Edge } from '@xyflow/react';
import { useMemo, useRef } from 'react';
import { routeEdge, type Detour } from './edge-route.js';
import { edgeState, type EdgeState } from './edge-state.js';
import type { Agent, CardData, CardNode, RunNode } from './graph-card.js';
import { pointOf, type Point, type Points } from './editor-store.js';
import { NODE_HEIGHT, NODE_WIDTH } from './grid-layout.js';
import css from './workflow.module.css';

export interface GraphNode {
  readonly id: string;
  readonly agent: string;
  readonly needs: readonly string[];
}
export interface GraphEdge {
  readonly from: string;
  readonly to: string;
}

/** Changes that a graph offers. A graph without them only shows. */
export interface GraphActions {
  readonly move: (points: Points, step: string | null) => void;
  readonly connect: (from: string, to: string) => void;
  /** Returns why an edge cannot be drawn, and tells the reason. */
  readonly refuse: (from: string, to: string) => string | null;
  readonly remove: () => void;
  readonly add: (agent: string | null, at: Point | null) => void;
  readonly openConnect: () => void;
  readonly edit: () => void;
}

export interface GraphProps {
  readonly label: string;
  readonly nodes: readonly GraphNode[];
  readonly points: Points;
  readonly agents: ReadonlyMap<string, Agent>;
  readonly problems?: ReadonlyMap<string, readonly string[]>;
  readonly run?: readonly RunNode[] | undefined;
  readonly current: string;
  readonly currentEdge?: GraphEdge | null;
  readonly select: (id: string) => void;
  readonly selectEdge?: (edge: GraphEdge) => void;
  readonly actions?: GraphActions | null;
}

const HANDLE = 14;
const HANDLES = [
  {
    type: 'target',
    position: Position.Left,
    x: -HANDLE / 2,
    y: (NODE_HEIGHT - HANDLE) / 2,
    width: HANDLE,
    height: HANDLE,
  },
  {
    type: 'source',
    position: Position.Right,
    x: NODE_WIDTH - HANDLE / 2,
    y: (NODE_HEIGHT - HANDLE) / 2,
    width: HANDLE,
    height: HANDLE,
  },
] as const;
export const ORIGIN: Point = { x: 0, y: 0 };

const isSame = (a: CardData, b: CardData): boolean =>
  Object.keys(a).length === Object.keys(b).length && Object.keys(a).every((key) => a[key] === b[key]);

export const cardId = (id: string): string => `node-${id}`;

const labelOf = ({ id, agentId, problem, status }: CardData, needs: readonly string[]): string =>
  [
    `${id}, agent ${agentId || 'none'}`,
    needs.length > 0 ? `needs ${needs.join(', ')}` : 'needs nothing',
    status,
    problem && `problem: ${problem}`,
  ]
    .filter(Boolean)
    .join(', ');

const dataOf = (
  { id, agent }: GraphNode,
  { agents, problems, current, actions }: GraphProps,
  task: RunNode | undefined,
): CardData => ({
  id,
  agentId: agent,
  agent: agents.get(agent),
  problem: problems?.get(id)?.[0] ?? null,
  status: task?.status ?? null,
  attempt: task?.attempt ?? 0,
  isCurrent: id === current,
  isFixed: !actions,
});

const cardOf = (data: CardData, position: Point, ariaLabel: string): CardNode => ({
  id: data.id,
  type: 'card',
  position,
  data,
  // With its size and handles a node needs no measuring: the first frame draws only what is seen.
  width: NODE_WIDTH,
  height: NODE_HEIGHT,
  measured: { width: NODE_WIDTH, height: NODE_HEIGHT },
  handles: [...HANDLES],
  ariaRole: 'group',
  ariaLabel,
  domAttributes: { id: cardId(data.id) } as NonNullable<CardNode['domAttributes']>,
  draggable: !data.isFixed,
});

const isSameCard = (before: CardNode | undefined, { x, y }: Point, label: string, data: CardData): boolean =>
  before?.position.x === x &&
  before.position.y === y &&
  before.ariaLabel === label &&
  isSame(before.data, data);

/** Returns the cards. A card that has not changed is the same object as before. */
export const useCards = (props: GraphProps, dragged: Points): CardNode[] => {
  const kept = useRef(new Map<string, CardNode>());
  const { nodes, points, agents, problems, run, current, actions } = props;
  return useMemo(() => {
    const tasks = new Map(run?.map((task) => [task.id, task]));
    const next = new Map<string, CardNode>();
    for (const node of nodes) {
      const data = dataOf(node, props, tasks.get(node.id));
      const position = pointOf(dragged, node.id) ?? pointOf(points, node.id) ?? ORIGIN;
      const label = labelOf(data, node.needs);
      const before = kept.current.get(node.id);
      const isKept = before && isSameCard(before, position, label, data);
      next.set(node.id, isKept ? before : cardOf(data, position, label));
    }
    kept.current = next;
    return [...next.values()];
  }, [nodes, points, dragged, agents, problems, run, current, actions]);
};

const CLASSES: Readonly<Record<EdgeState, string | undefined>> = {
  waits: css.edgeWaits,
  active: css.edgeActive,
  taken: css.edgeDone,
  'not taken': css.edgeNever,
};

const stateOfEdge = (
  from: RunNode['status'] | undefined,
  to: RunNode['status'] | undefined,
): EdgeState | undefined => (from && to ? edgeState(from, to) : undefined);

/** Data of an edge: its state in a run, and its way around nodes. */
export interface EdgeData {
  readonly state: EdgeState | undefined;
  readonly detour: Detour | null;
}

/** Number of nodes up to which edges go around them. Each edge looks at each node. */
const MAX_ROUTED = 150;

/** Returns the ways of edges around the other nodes. */
const useRoutes = ({ nodes, points }: GraphProps): ReadonlyMap<string, Detour> =>
  useMemo(() => {
    const routes = new Map<string, Detour>();
    if (nodes.length > MAX_ROUTED) return routes;
    const places = nodes.map(({ id }) => [id, pointOf(points, id)] as const);
    for (const { id, needs } of nodes)
      for (const need of needs) {
        const [from, to] = [pointOf(points, need), pointOf(points, id)];
        const others = places.flatMap(([other, at]) => (at && other !== id && other !== need ? [at] : []));
        const detour = from && to && routeEdge(from, to, others);
        if (detour) routes.set(`${need}->${id}`, detour);
      }
    return routes;
  }, [nodes, points]);

const isSameEdge = (before: Edge, className: string | undefined, data: EdgeData): boolean => {
  const { state, detour } = before.data as unknown as EdgeData;
  return (
    before.className === className &&
    state === data.state &&
    detour?.lane === data.detour?.lane &&
    detour?.start === data.detour?.start &&
    detour?.end === data.detour?.end
  );
};

const edgeOf = (
  { from, to }: GraphEdge,
  className: string | undefined,
  { state, detour }: EdgeData,
): Edge => ({
  id: `${from}->${to}`,
  type: 'routed',
  source: from,
  target: to,
  ...(className === undefined ? {} : { className }),
  ariaLabel: `${to} needs ${from}${state ? `: ${state}` : ''}`,
  data: { state, detour },
  interactionWidth: 24,
  markerEnd: { type: MarkerType.ArrowClosed, width: 18, height: 18, color: 'var(--edge-tip)' },
});

/** Returns the edges. An edge that has not changed is the same object as before. */
export const useEdges = (props: GraphProps): Edge[] => {
  const { nodes, run, currentEdge } = props;
  const routes = useRoutes(props);
  const kept = useRef(new Map<string, Edge>());
  return useMemo(() => {
    const states = new Map(run?.map(({ id, status }) => [id, status]));
    const known = new Set(nodes.map(({ id }) => id));
    const next = new Map<string, Edge>();
    for (const { id, needs } of nodes)
      for (const need of needs) {
        if (!known.has(need)) continue;
        const isCurrent = currentEdge?.from === need && currentEdge.to === id;
        const state = stateOfEdge(states.get(need), states.get(id));
        const className = isCurrent ? css.edgeCurrent : state ? CLASSES[state] : css.edge;
        const name = `${need}->${id}`;
        const before = kept.current.get(name);
        const data: EdgeData = { state, detour: routes.get(name) ?? null };
        const isKept = before && isSameEdge(before, className, data);
        next.set(name, isKept ? before : edgeOf({ from: need, to: id }, className, data));
      }
    kept.current = next;
    return [...next.values()];
  }, [nodes, run, currentEdge, routes]);
};
