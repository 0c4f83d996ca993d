import { useEffect, useMemo, useRef, useState } from 'react';
import { guardLeave, setParams, useParam } from '../../data/router.js';
import { isAbout } from '../../data/event-pages.js';
import { useStore } from '../../data/store.js';
import { useRead } from '../../data/use-read.js';
import {
  addEdge,
  addNode,
  changeNode,
  nodeOfMessage,
  problemsOf,
  refuseEdge,
  removeEdges,
  removeNodes,
  EMPTY,
  type Definition,
  type Problems,
  type Workflow,
  type WorkflowNode,
} from './definition.js';
import { createEditor, isChanged, pointOf, type Editor, type Point, type Points } from './editor-store.js';
import { GAP_X, GAP_Y, NODE_HEIGHT, NODE_WIDTH } from './grid-layout.js';
import type { GraphActions, GraphEdge } from './use-cards.js';
import type { Agent } from './graph-card.js';
import { layOut } from './layout.js';

const placesName = (id: string): string => `antiphon.places.${id}`;

/** Places of the nodes are a matter of this browser: they are no part of a version. */
export const keepPlaces = (id: string, points: Points): void => {
  try {
    localStorage.setItem(placesName(id), JSON.stringify(points));
  } catch {
    // Without storage the graph is laid out again.
  }
};

const isPoint = (value: unknown): boolean => {
  const { x, y } = (value ?? {}) as Partial<Point>;
  return Number.isFinite(x) && Number.isFinite(y);
};

/** Reads the places that this browser keeps. Anything else in the storage is left out. */
export const readPlaces = (id: string): Points => {
  try {
    const kept = Object.entries(JSON.parse(localStorage.getItem(placesName(id)) ?? '{}') ?? {});
    return Object.fromEntries(kept.filter(([, point]) => isPoint(point))) as Points;
  } catch {
    return {};
  }
};

export const useAgents = (): ReadonlyMap<string, Agent> | null => {
  const { data } = useRead('listAgents', { query: {} }, { changesOn: isAbout('agent') });
  return useMemo(() => data && new Map(data.agents.map((agent) => [agent.id, agent])), [data]) ?? null;
};

/** Returns a free place for a new node: after those that it needs, or below the others. */
const placeFor = (points: Points, after: string): Point => {
  const before = pointOf(points, after);
  const all = Object.values(points);
  if (!before && all.length === 0) return { x: 0, y: 0 };
  const start = before
    ? { x: before.x + NODE_WIDTH + GAP_X, y: before.y }
    : { x: Math.min(...all.map(({ x }) => x)), y: Math.max(...all.map(({ y }) => y)) + NODE_HEIGHT + GAP_Y };
  const isTaken = ({ x, y }: Point): boolean =>
    all.some((at) => Math.abs(at.x - x) < NODE_WIDTH && Math.abs(at.y - y) < NODE_HEIGHT);
  let place = start;
  while (isTaken(place)) place = { x: place.x, y: place.y + NODE_HEIGHT + GAP_Y };
  return place;
};

const without = (points: Points, id: string): Points =>
  Object.fromEntries(Object.entries(points).filter(([key]) => key !== id));

/** Lays the nodes out that have no place yet, and keeps the places in this browser. */
const usePlaces = (editor: Editor, id: string, setNotice: (text: string) => void): void => {
  const { definition, points } = useStore(editor.state);
  const isMissing = definition.nodes.some((node) => !pointOf(points, node.id));
  useEffect(() => {
    if (!isMissing) return;
    let isGone = false;
    void layOut(definition.nodes).then((layout) => {
      if (isGone) return;
      editor.place({ ...layout.points });
      if (layout.notice !== null) setNotice(layout.notice);
    });
    return () => {
      isGone = true;
    };
  }, [isMissing, definition.nodes, editor]);
  useEffect(() => {
    if (!isMissing && id !== 'new' && definition.nodes.length > 0) keepPlaces(id, points);
  }, [id, points, isMissing, definition.nodes.length]);
};

/** Asks before the page is left with changes that are not saved. */
const useLeaveGuard = (editor: Editor): { leave: (() => void) | null; stay: () => void } => {
  const [leave, setLeave] = useState<(() => void) | null>(null);
  useEffect(() => {
    const hasChanges = (): boolean => isChanged(editor.state.get());
    const onUnload = (event: BeforeUnloadEvent): void => {
      if (hasChanges()) event.preventDefault();
    };
    addEventListener('beforeunload', onUnload);
    const stop = guardLeave((proceed) => {
      if (!hasChanges()) return true;
      setLeave(() => proceed);
      return false;
    });
    return () => {
      removeEventListener('beforeunload', onUnload);
      stop();
    };
  }, [editor]);
  return { leave, stay: () => setLeave(null) };
};

interface Selection {
  readonly current: string;
  readonly edge: GraphEdge | null;
  readonly select: (id: string) => void;
  readonly selectEdge: (edge: GraphEdge | null) => void;
}

const useSelection = (nodes: readonly WorkflowNode[]): Selection => {
  const wanted = useParam('node');
  const [edge, selectEdge] = useState<GraphEdge | null>(null);
  const current = nodes.some(({ id }) => id === wanted) ? wanted : '';
  const select = (id: string): void => {
    selectEdge(null);
    setParams({ node: id });
  };
  return { current, edge, select, selectEdge };
};

const defaultAgent = (agents: ReadonlyMap<string, Agent> | null): string => {
  const all = [...(agents?.values() ?? [])];
  return (all.find(({ isDefault }) => isDefault) ?? all[0])?.id ?? '';
};

interface Parts {
  readonly editor: Editor;
  readonly agents: ReadonlyMap<string, Agent> | null;
  readonly selection: Selection;
  readonly setNotice: (text: string) => void;
}

/** Returns the changes that graph, table and fields share. Each says what it did. */
const useEdits = ({ editor, agents, selection, setNotice }: Parts) => {
  const { definition, points } = useStore(editor.state);
  const { current, edge, select, selectEdge } = selection;
  const change = (next: Definition, step: string | null = null): void =>
    editor.change({ definition: next }, step);
  const removeNode = (id: string): void => {
    editor.change({ definition: removeNodes(definition, new Set([id])), points: without(points, id) });
    setNotice(`“${id}” is deleted. Undo brings it back`);
    if (id !== current) return;
    const index = definition.nodes.findIndex((node) => node.id === id);
    const rest = definition.nodes.filter((node) => node.id !== id);
    select(rest[Math.min(index, rest.length - 1)]?.id ?? '');
  };
  const remove = (): void => {
    if (!edge) return current === '' ? undefined : removeNode(current);
    change(removeEdges(definition, [edge]));
    selectEdge(null);
    setNotice(`“${edge.to}” no longer needs “${edge.from}”`);
  };
  const add = (agent: string | null, at: Point | null): void => {
    if (!agents) return setNotice('The agents are being read: add the node in a moment');
    const here = definition.nodes.find((node) => node.id === current);
    const needs = at === null && here ? [here.id] : [];
    const [next, added] = addNode(definition, agent ?? here?.agent ?? defaultAgent(agents), needs);
    editor.change({ definition: next, points: { ...points, [added]: at ?? placeFor(points, current) } });
    select(added);
    setNotice(needs.length > 0 ? `“${added}” is added after “${needs[0]}”` : `“${added}” is added`);
  };
  const rename = (from: string, to: string): void => {
    const place = pointOf(points, from);
    const places = place ? { ...without(points, from), [to]: place } : points;
    editor.change({ definition: changeNode(definition, from, { id: to }), points: places });
    select(to);
  };
  const connect = (from: string, to: string): void => {
    const reason = refuseEdge(definition.nodes, from, to);
    if (reason !== null) return setNotice(reason);
    change(addEdge(definition, from, to));
    setNotice(`“${to}” now needs “${from}”`);
  };
  const refuse = (from: string, to: string): string | null => {
    const reason = refuseEdge(definition.nodes, from, to);
    if (reason !== null && !reason.includes('already needs')) setNotice(reason);
    return reason;
  };
  return { change, removeNode, remove, add, rename, connect, refuse };
};

/** State and actions of an editor page. */
export const useEditor = (id: string, workflow: Workflow | null) => {
  const [editor] = useState(() => {
    const definition = workflow?.definition ?? EMPTY;
    return createEditor({ definition, points: readPlaces(id) }, workflow?.definition ?? null);
  });
  const editing = useStore(editor.state);
  const { definition } = editing;
  const agents = useAgents();
  const selection = useSelection(definition.nodes);
  const [notice, setNotice] = useState('');
  const [isConnecting, setConnecting] = useState(false);
  const [editRequests, setEditRequests] = useState(0);
  usePlaces(editor, id, setNotice);
  const leaving = useLeaveGuard(editor);
  const problems: Problems = useMemo(
    () => problemsOf(definition, agents && new Set(agents.keys())),
    [definition, agents],
  );
  const edits = useEdits({ editor, agents, selection, setNotice });
  const actions = useStableActions({
    move: (next, step) => editor.change({ points: next }, step),
    connect: edits.connect,
    refuse: edits.refuse,
    remove: edits.remove,
    add: edits.add,
    openConnect: () => setConnecting(true),
    edit: () => setEditRequests((count) => count + 1),
  });
  return {
    id,
    editor,
    editing,
    definition,
    agents,
    problems,
    ...selection,
    notice,
    setNotice,
    isConnecting,
    closeConnect: () => setConnecting(false),
    /** Number of requests to edit the current node: each moves the focus into its fields. */
    editRequests,
    leaving,
    change: edits.change,
    rename: edits.rename,
    removeNode: edits.removeNode,
    actions,
    layOutAgain: () =>
      void layOut(definition.nodes).then((layout) => {
        editor.change({ points: layout.points });
        setNotice(layout.notice ?? 'The nodes are laid out');
      }),
    nodeOf: (message: string) => nodeOfMessage(message, definition.nodes),
  };
};
export type EditorModel = ReturnType<typeof useEditor>;

/** Keeps one object of actions, so that the cards of the graph do not render for each change. */
const useStableActions = (actions: GraphActions): GraphActions => {
  const latest = useRef(actions);
  latest.current = actions;
  return useMemo(
    () => ({
      move: (...given) => latest.current.move(...given),
      connect: (...given) => latest.current.connect(...given),
      refuse: (...given) => latest.current.refuse(...given),
      remove: () => latest.current.remove(),
      add: (...given) => latest.current.add(...given),
      openConnect: () => latest.current.openConnect(),
      edit: () => latest.current.edit(),
    }),
    [],
  );
};
