import { useStoreApi } from '@xyflow/react';
import { useEffect, useMemo, useRef } from 'react';
import { theme } from '../../app/theme.js';
import { pointOf, type Point, type Points } from './editor-store.js';
import type { RunNode } from './graph-card.js';
import { NODE_HEIGHT, NODE_WIDTH } from './grid-layout.js';
import type { GraphNode } from './use-cards.js';
import css from './workflow.module.css';

/** Number of nodes from which a graph is drawn as a picture where its cards cannot be read. */
export const LARGE_GRAPH = 150;
/** Zoom below which a large graph is a picture. Its cards would be smaller than 100 px. */
export const PICTURE_ZOOM = 0.45;

type Status = RunNode['status'] | 'none';

/** Paths of a graph. They are built again only after a change of the graph. */
interface Scene {
  readonly edges: Path2D;
  /** Boxes of nodes by their status. Empty while the cards are elements. */
  readonly boxes: ReadonlyMap<Status, Path2D>;
  /** Marks in the boxes: a state is never told by its colour alone. */
  readonly marks: Path2D;
  readonly current: Point | null;
}

const addEdges = (path: Path2D, { id, needs }: GraphNode, points: Points): void => {
  const to = pointOf(points, id);
  if (!to) return;
  for (const need of needs) {
    const from = pointOf(points, need);
    if (!from) continue;
    path.moveTo(from.x + NODE_WIDTH, from.y + NODE_HEIGHT / 2);
    path.lineTo(to.x, to.y + NODE_HEIGHT / 2);
  }
};

/** Draws a cross for a failed node, a triangle for one that runs, and a bar for one that is done. */
const addMark = (path: Path2D, status: Status, { x, y }: Point): void => {
  const [left, top, size] = [x + NODE_WIDTH / 2 - 24, y + NODE_HEIGHT / 2 - 24, 48];
  if (status === 'failed') {
    path.moveTo(left, top);
    path.lineTo(left + size, top + size);
    path.moveTo(left + size, top);
    path.lineTo(left, top + size);
  } else if (status === 'running') {
    path.moveTo(left, top);
    path.lineTo(left + size, top + size / 2);
    path.lineTo(left, top + size);
    path.closePath();
  } else if (status === 'completed') {
    path.moveTo(left, top + size / 2);
    path.lineTo(left + size, top + size / 2);
  }
};

interface OverviewProps {
  readonly nodes: readonly GraphNode[];
  readonly points: Points;
  readonly run: readonly RunNode[] | undefined;
  readonly current: string;
  /** True draws the nodes too. False draws the edges below the cards. */
  readonly hasBoxes: boolean;
}

const createScene = ({ nodes, points, run, current, hasBoxes }: OverviewProps): Scene => {
  const states = new Map(run?.map(({ id, status }) => [id, status]));
  const scene = { edges: new Path2D(), boxes: new Map<Status, Path2D>(), marks: new Path2D() };
  for (const node of nodes) {
    addEdges(scene.edges, node, points);
    const point = pointOf(points, node.id);
    if (!hasBoxes || !point) continue;
    const status = states.get(node.id) ?? 'none';
    const path = scene.boxes.get(status) ?? new Path2D();
    scene.boxes.set(status, path);
    path.rect(point.x, point.y, NODE_WIDTH, NODE_HEIGHT);
    addMark(scene.marks, status, point);
  }
  return { ...scene, current: hasBoxes ? (pointOf(points, current) ?? null) : null };
};

interface View {
  readonly transform: readonly [number, number, number];
  readonly width: number;
  readonly height: number;
}

type Colours = (name: string) => string;

/** Reads the colours of the theme from elements, because a canvas knows no variables. */
const readColours = (canvas: HTMLCanvasElement): Colours => {
  const found = new Map<string, string>();
  for (const element of canvas.parentElement?.querySelectorAll<HTMLElement>('[data-colour]') ?? [])
    found.set(element.dataset['colour'] ?? '', getComputedStyle(element).color);
  return (name) => found.get(name) ?? found.get('none') ?? '#888';
};

const drawBoxes = (pen: CanvasRenderingContext2D, scene: Scene, colourOf: Colours, zoom: number): void => {
  for (const [status, path] of scene.boxes) {
    pen.fillStyle = colourOf(status);
    pen.fill(path);
  }
  pen.strokeStyle = colourOf('mark');
  pen.lineWidth = 12;
  pen.stroke(scene.marks);
  if (!scene.current) return;
  pen.strokeStyle = colourOf('current');
  pen.lineWidth = 3 / zoom;
  const gap = 5 / zoom;
  const { x, y } = scene.current;
  pen.strokeRect(x - gap, y - gap, NODE_WIDTH + 2 * gap, NODE_HEIGHT + 2 * gap);
};

const draw = (canvas: HTMLCanvasElement, scene: Scene, view: View, colourOf: Colours): void => {
  const pen = canvas.getContext('2d');
  if (!pen) return;
  const ratio = devicePixelRatio;
  const [left, top, zoom] = view.transform;
  const [width, height] = [Math.round(view.width * ratio), Math.round(view.height * ratio)];
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
  pen.setTransform(1, 0, 0, 1, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.setTransform(zoom * ratio, 0, 0, zoom * ratio, left * ratio, top * ratio);
  pen.strokeStyle = colourOf('edge');
  pen.lineWidth = 1 / zoom;
  pen.stroke(scene.edges);
  drawBoxes(pen, scene, colourOf, zoom);
};

const COLOURS = [
  ...['edge', 'mark', 'current', 'none', 'waiting', 'running', 'completed', 'failed', 'skipped'],
  'cancelled',
];

/** Draws after a change of the graph, of the theme or of the view: at most once in a frame. */
const usePicture = (scene: Scene) => {
  const canvas = useRef<HTMLCanvasElement>(null);
  const store = useStoreApi();
  const request = useRef<() => void>(() => undefined);
  const latest = useRef(scene);
  latest.current = scene;
  useEffect(() => {
    let frame: number | undefined;
    let colours: Colours | null = null;
    let shown: View | null = null;
    const render = (): void => {
      frame = undefined;
      const { transform, width, height } = store.getState();
      shown = { transform, width, height };
      if (!canvas.current) return;
      colours ??= readColours(canvas.current);
      draw(canvas.current, latest.current, shown, colours);
    };
    request.current = () => void (frame ??= requestAnimationFrame(render));
    const follow = (): void => {
      const { transform, width, height } = store.getState();
      const isSame = shown?.transform === transform && shown.width === width && shown.height === height;
      if (!isSame) request.current();
    };
    const recolour = (): void => {
      colours = null;
      request.current();
    };
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    scheme.addEventListener('change', recolour);
    const stops = [store.subscribe(follow), theme.subscribe(recolour)];
    return () => {
      scheme.removeEventListener('change', recolour);
      for (const stop of stops) stop();
      if (frame !== undefined) cancelAnimationFrame(frame);
    };
  }, [store]);
  useEffect(() => request.current(), [scene]);
  return canvas;
};

/** Draws a large graph on one canvas: a move of the view renders no component. */
export const Overview = (props: OverviewProps) => {
  const { nodes, points, run, current, hasBoxes } = props;
  const scene = useMemo(() => createScene(props), [nodes, points, run, current, hasBoxes]);
  const canvas = usePicture(scene);
  return (
    <div className={css.overview} aria-hidden="true" data-overview={hasBoxes ? 'nodes' : 'edges'}>
      <canvas ref={canvas} />
      {COLOURS.map((name) => (
        <i key={name} data-colour={name} />
      ))}
    </div>
  );
};

/** Returns the node at a place of the graph, or null. */
export const nodeAt = (nodes: readonly GraphNode[], points: Points, place: Point): string | null =>
  nodes.find(({ id }) => {
    const point = pointOf(points, id);
    if (!point) return false;
    const [x, y] = [place.x - point.x, place.y - point.y];
    return x >= 0 && y >= 0 && x <= NODE_WIDTH && y <= NODE_HEIGHT;
  })?.id ?? null;
