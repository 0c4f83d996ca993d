import {
  Background,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
  useStore as useFlowStore,
  type Connection,
  type Edge,
  type NodeChange,
} from '@xyflow/react';
import '@xyflow/react/dist/base.css';
import {
  useCallback,
  useMemo,
  useRef,
  useState,
  type DragEvent,
  type KeyboardEvent,
  type MouseEvent,
} from 'react';
import { hasSingleKeys } from '../../app/keys.js';
import { IconButton } from '../../ui/ui.js';
import { Card, IsFar, type CardNode } from './graph-card.js';
import { pointOf, type Point, type Points } from './editor-store.js';
import { NODE_HEIGHT, NODE_WIDTH } from './grid-layout.js';
import { nearestNode, STEPS } from './graph-keys.js';
import { useOwnFit, useFit, useShowCurrent } from './graph-fit.js';
import { LARGE_GRAPH, nodeAt, Overview, PICTURE_ZOOM } from './graph-overview.js';
import { RoutedEdge } from './routed-edge.js';
import { cardId, useCards, useEdges, type GraphProps } from './use-cards.js';
import css from './workflow.module.css';

const NODE_TYPES = { card: Card };
const EDGE_TYPES = { routed: RoutedEdge };

/** Returns the next node that failed or has a problem, from the current one on. */
const nextProblem = ({ nodes, problems, run, current }: GraphProps): string | null => {
  const failed = new Set(run?.filter(({ status }) => status === 'failed').map(({ id }) => id));
  const start = nodes.findIndex(({ id }) => id === current) + 1;
  const ordered = [...nodes.slice(start), ...nodes.slice(0, start)];
  return ordered.find(({ id }) => failed.has(id) || problems?.has(id))?.id ?? null;
};

/** Returns what a key without a direction does. */
const useKeyWork = (props: GraphProps): Readonly<Record<string, (() => void) | undefined>> => {
  const flow = useReactFlow();
  const fit = useFit(props);
  const { select, actions } = props;
  const goToProblem = (): void => {
    const found = nextProblem(props);
    if (found !== null) select(found);
  };
  const always = { Delete: actions?.remove, Backspace: actions?.remove, Enter: actions?.edit };
  if (!hasSingleKeys.get()) return always;
  return {
    ...always,
    n: goToProblem,
    a: actions ? () => actions.add(null, null) : undefined,
    c: actions?.openConnect,
    '+': () => void flow.zoomIn(),
    '-': () => void flow.zoomOut(),
    '0': fit,
  };
};

const useGraphKeys = (props: GraphProps): ((event: KeyboardEvent) => void) => {
  const { nodes, points, current, select, actions } = props;
  const keys = useKeyWork(props);
  const go = (step: Point, isMove: boolean): void => {
    const at = pointOf(points, current);
    if (isMove && at && actions) {
      const place = { x: at.x + step.x * 20, y: at.y + step.y * 20 };
      return actions.move({ ...points, [current]: place }, `move ${current}`);
    }
    const next = nearestNode(nodes, points, current, step);
    if (next !== null) select(next);
  };
  return (event) => {
    if (event.target !== event.currentTarget || event.ctrlKey || event.metaKey) return;
    const step = STEPS[event.key];
    const work = keys[event.key];
    if (!step && !work) return;
    event.preventDefault();
    if (work) return work();
    if (step) go(step, event.altKey);
  };
};

interface ZoomProps {
  readonly fit: () => void;
  readonly choose: () => void;
}

const Zoom = ({ fit, choose }: ZoomProps) => {
  const flow = useReactFlow();
  const zoom = (by: 'zoomIn' | 'zoomOut') => (): void => {
    choose();
    void flow[by]();
  };
  return (
    <div className={css.zoom}>
      <IconButton icon="plus" label="Zoom in" onClick={zoom('zoomIn')} />
      <IconButton icon="minus" label="Zoom out" onClick={zoom('zoomOut')} />
      <IconButton icon="fit" label="Show the whole graph" onClick={fit} />
    </div>
  );
};

/** Returns the handlers by which the pointer changes the graph. */
const usePointer = ({ points, actions }: GraphProps) => {
  const [dragged, setDragged] = useState<Points>({});
  const flow = useReactFlow();
  const changeNodes = useCallback(
    (changes: NodeChange<CardNode>[]) => {
      const moved = changes.filter((change) => change.type === 'position');
      const next: Record<string, Point> = {};
      for (const { id, position } of moved) if (position) next[id] = position;
      if (moved.some(({ dragging }) => dragging)) return setDragged(next);
      if (moved.length === 0) return;
      setDragged({});
      actions?.move({ ...points, ...next }, null);
    },
    [actions, points],
  );
  const drop = (event: DragEvent): void => {
    const agent = event.dataTransfer.getData('text/plain');
    if (!actions || agent === '') return;
    event.preventDefault();
    const { x, y } = flow.screenToFlowPosition({ x: event.clientX, y: event.clientY });
    actions.add(agent, { x: Math.round(x - NODE_WIDTH / 2), y: Math.round(y - NODE_HEIGHT / 2) });
  };
  return { dragged, changeNodes, drop };
};

/** Zoom below which no text of a card can be read. */
const FAR_ZOOM = 0.35;

interface FlowView {
  readonly transform: readonly [number, number, number];
  readonly width: number;
}
const isFarOff = ({ transform }: FlowView): boolean => transform[2] < FAR_ZOOM;
const isPictureZoom = ({ transform, width }: FlowView): boolean => width === 0 || transform[2] < PICTURE_ZOOM;

/** View of a large graph until it is fitted. */
const WHOLE = { x: 0, y: 0, zoom: 0.1 };
const NO_NODES: CardNode[] = [];
const NO_EDGES: Edge[] = [];

/** Returns what the library renders. A large graph is a picture where no card can be read. */
const useElements = (props: GraphProps, dragged: Points) => {
  const isLarge = props.nodes.length >= LARGE_GRAPH;
  // Before it has a size the graph is not yet fitted: its cards would be made to be thrown away.
  const isSmall = useFlowStore(isPictureZoom);
  const isPicture = isLarge && isSmall;
  const hasEdges = !isLarge || (!isPicture && Boolean(props.actions));
  const { nodes, current } = props;
  // The current node stays an element: the graph names it as its active one.
  const shown = useMemo(
    () => (isPicture ? nodes.filter(({ id }) => id === current) : nodes),
    [isPicture, isPicture ? current : '', nodes],
  );
  const cards = useCards({ ...props, nodes: shown }, dragged);
  const edges = useEdges(hasEdges ? props : { ...props, nodes: NO_NODES_OF });
  return {
    cards: shown.length === 0 ? NO_NODES : cards,
    edges: hasEdges ? edges : NO_EDGES,
    isPicture,
    hasOverview: !hasEdges,
  };
};
const NO_NODES_OF: GraphProps['nodes'] = [];

/** Chooses the node of a picture that was clicked, or none. */
const usePaneClick = ({ nodes, points, select }: GraphProps, isPicture: boolean) => {
  const flow = useReactFlow();
  const latest = useRef({ nodes, points, select, isPicture });
  latest.current = { nodes, points, select, isPicture };
  return useCallback(
    ({ clientX, clientY }: MouseEvent) => {
      const given = latest.current;
      const place = flow.screenToFlowPosition({ x: clientX, y: clientY });
      given.select((given.isPicture && nodeAt(given.nodes, given.points, place)) || '');
    },
    [flow],
  );
};

const Canvas = (props: GraphProps) => {
  const { label, current, select, selectEdge, actions, nodes, points, run } = props;
  const { dragged, changeNodes, drop } = usePointer(props);
  const { cards, edges, isPicture, hasOverview } = useElements(props, dragged);
  const isFar = useFlowStore(isFarOff);
  const fit = useFit(props);
  const onKeyDown = useGraphKeys(props);
  const onPaneClick = usePaneClick(props, isPicture);
  const { onMoveStart, choose } = useOwnFit(props, fit);
  useShowCurrent(props, fit);
  const isValid = useCallback(
    ({ source, target }: Connection | Edge) => actions?.refuse(source, target) === null,
    [actions],
  );
  return (
    <IsFar.Provider value={isFar}>
      <ReactFlow
        className={css.canvas}
        tabIndex={0}
        aria-label={label}
        aria-activedescendant={current === '' ? undefined : cardId(current)}
        onKeyDown={onKeyDown}
        onDrop={drop}
        onDragOver={(event) => event.preventDefault()}
        nodes={cards}
        edges={edges}
        nodeTypes={NODE_TYPES}
        edgeTypes={EDGE_TYPES}
        onNodesChange={changeNodes}
        onNodeClick={(_, { id }) => select(id)}
        onEdgeClick={(_, { source, target }) => selectEdge?.({ from: source, to: target })}
        onPaneClick={onPaneClick}
        onMoveStart={onMoveStart}
        isValidConnection={isValid}
        onConnect={({ source, target }) => actions?.connect(source, target)}
        nodesDraggable={Boolean(actions)}
        nodesConnectable={Boolean(actions)}
        nodesFocusable={false}
        edgesFocusable={false}
        disableKeyboardA11y
        deleteKeyCode={null}
        selectionKeyCode={null}
        multiSelectionKeyCode={null}
        zoomActivationKeyCode={null}
        panActivationKeyCode={null}
        connectionRadius={28}
        autoPanOnConnect={false}
        onlyRenderVisibleElements
        {...(nodes.length >= LARGE_GRAPH ? { defaultViewport: WHOLE } : {})}
        minZoom={0.1}
        maxZoom={1.5}
        proOptions={{ hideAttribution: true }}
      >
        {!hasOverview && <Background gap={20} size={1.2} color="var(--grid-dot)" />}
        {hasOverview && <Overview {...{ nodes, points, run, current }} hasBoxes={isPicture} />}
        <Zoom fit={fit} choose={choose} />
      </ReactFlow>
    </IsFar.Provider>
  );
};

/** A graph of nodes. It is one tab stop: arrows go from node to node. */
export const Graph = (props: GraphProps) => (
  <ReactFlowProvider>
    <Canvas {...props} />
  </ReactFlowProvider>
);
