import { createStore } from '../../data/store.js';
import type { Definition } from './definition.js';

export interface Point {
  readonly x: number;
  readonly y: number;
}
export type Points = Readonly<Record<string, Point>>;

/** Returns the place of a node. A node may have the name of a method, such as `constructor`. */
export const pointOf = (points: Points, id: string): Point | undefined =>
  Object.hasOwn(points, id) ? points[id] : undefined;

/** State that undo and redo restore. */
export interface Drawing {
  readonly definition: Definition;
  readonly points: Points;
}

export interface Editing extends Drawing {
  readonly past: readonly Drawing[];
  readonly future: readonly Drawing[];
  /** Changes with the same name follow each other as one step of undo. */
  readonly lastChange: string | null;
  /** Definition of the saved version; null for a new workflow. */
  readonly saved: Definition | null;
}

const MAX_STEPS = 200;

const drawingOf = ({ definition, points }: Drawing): Drawing => ({ definition, points });

/** Creates the state of an editor. Every change is a step that undo takes back. */
export const createEditor = (first: Drawing, saved: Definition | null) => {
  const state = createStore<Editing>({ ...first, past: [], future: [], lastChange: null, saved });
  const change = (next: Partial<Drawing>, name: string | null = null): void =>
    state.update((before) => {
      const isSameStep = name !== null && name === before.lastChange;
      const past = isSameStep ? before.past : [...before.past, drawingOf(before)].slice(-MAX_STEPS);
      return { ...before, ...next, past, future: [], lastChange: name };
    });
  const undo = (): void =>
    state.update((before) => {
      const previous = before.past.at(-1);
      if (!previous) return before;
      const future = [drawingOf(before), ...before.future];
      return { ...before, ...previous, past: before.past.slice(0, -1), future, lastChange: null };
    });
  const redo = (): void =>
    state.update((before) => {
      const [next, ...future] = before.future;
      if (!next) return before;
      return { ...before, ...next, past: [...before.past, drawingOf(before)], future, lastChange: null };
    });
  return {
    state,
    change,
    undo,
    redo,
    /** Places nodes without a step: a layout without a request has no undo. */
    place: (points: Points): void => state.update((before) => ({ ...before, points })),
    markSaved: (saved: Definition): void => state.update((before) => ({ ...before, saved })),
  };
};
export type Editor = ReturnType<typeof createEditor>;

/** True if the definition differs from the saved version. Positions are not part of a version. */
export const isChanged = ({ definition, saved }: Editing): boolean =>
  saved === null ? definition.nodes.length > 0 : JSON.stringify(definition) !== JSON.stringify(saved);
