import {
  Background,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
  useStoreApi,
  type Connection,
  type Edge,
  type NodeChange,
} from '@xyflow/react';
import '@xyflow/react/dist/base.css';
import { useCallback, useEffect, useState, type DragEvent, type KeyboardEvent } from 'react';
import { hasSingleKeys } from '../../app/keys.js';
import { IconButton } from '../../ui/ui.js';
import { Card, type CardNode } from './graph-card.js';
import { pointOf, type Point, type Points } from './editor-store.js';
import { NODE_HEIGHT, NODE_WIDTH } from './grid-layout.js';
import { nearestNode, STEPS } from './graph-keys.js';
import { cardId, useCards, useEdges, type GraphProps } from './use-cards.js';
import css from './workflow.module.css';

const NODE_TYPES = { card: Card };

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
    '0': () => void flow.fitView(),
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

const Zoom = () => {
  const flow = useReactFlow();
  return (
    <div className={css.zoom}>
      <IconButton icon="plus" label="Zoom in" onClick={() => void flow.zoomIn()} />
      <IconButton icon="minus" label="Zoom out" onClick={() => void flow.zoomOut()} />
      <IconButton icon="fit" label="Show the whole graph" onClick={() => void flow.fitView()} />
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

/** Largest graph that is shown as a whole when its current node is out of sight. */
const MAX_WHOLE = 16;

/** Brings the current node into sight. */
const useShowCurrent = ({ nodes, points, current }: GraphProps): void => {
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
    if (nodes.length <= MAX_WHOLE) void flow.fitView({ maxZoom: 1 });
    else void flow.setCenter(at.x + NODE_WIDTH / 2, at.y + NODE_HEIGHT / 2, { zoom: Math.max(zoom, 0.7) });
  }, [current]);
};

const Canvas = (props: GraphProps) => {
  const { label, current, select, selectEdge, actions, points } = props;
  const { dragged, changeNodes, drop } = usePointer(props);
  const nodes = useCards(props, dragged);
  const edges = useEdges(props);
  const onKeyDown = useGraphKeys(props);
  const flow = useReactFlow();
  const isPlaced = Object.keys(points).length > 0;
  useEffect(() => {
    if (isPlaced) void flow.fitView({ maxZoom: 1 });
  }, [flow, isPlaced]);
  useShowCurrent(props);
  const isValid = useCallback(
    ({ source, target }: Connection | Edge) => actions?.refuse(source, target) === null,
    [actions],
  );
  return (
    <ReactFlow
      className={css.canvas}
      tabIndex={0}
      aria-label={label}
      aria-activedescendant={current === '' ? undefined : cardId(current)}
      onKeyDown={onKeyDown}
      onDrop={drop}
      onDragOver={(event) => event.preventDefault()}
      nodes={nodes}
      edges={edges}
      nodeTypes={NODE_TYPES}
      onNodesChange={changeNodes}
      onNodeClick={(_, { id }) => select(id)}
      onEdgeClick={(_, { source, target }) => selectEdge?.({ from: source, to: target })}
      onPaneClick={() => select('')}
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
      minZoom={0.1}
      maxZoom={1.5}
      proOptions={{ hideAttribution: true }}
    >
      <Background gap={20} size={1.2} color="var(--grid-dot)" />
      <Zoom />
    </ReactFlow>
  );
};

/** A graph of nodes. It is one tab stop: arrows go from node to node. */
export const Graph = (props: GraphProps) => (
  <ReactFlowProvider>
    <Canvas {...props} />
  </ReactFlowProvider>
);
