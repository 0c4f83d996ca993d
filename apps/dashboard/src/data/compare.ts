import type { Transcript, Turn } from './transcript.js';
import { partsOf, type ToolPart } from './turn-parts.js';

/** Fields of a turn in which two sessions can differ. */
export const FIELDS = ['message', 'status', 'model', 'answer', 'tools', 'cost'] as const;
export type Field = (typeof FIELDS)[number];

/** Turns of two sessions that stand for each other; null where one session has none. */
export interface TurnPair {
  readonly key: string;
  readonly a: Turn | null;
  readonly b: Turn | null;
  /** Fields that differ; empty if the turns are equal. */
  readonly differs: readonly Field[];
}

export interface Comparison {
  /** Number of turns before the fork: both sessions have them. */
  readonly shared: number;
  readonly pairs: readonly TurnPair[];
  /** Index of the first pair that differs in more than its cost; -1 if none does. */
  readonly firstDifference: number;
}

export const answerOf = (turn: Turn): string =>
  partsOf(turn)
    .flatMap((part) => (part.kind === 'text' && part.text !== '' ? [part.text] : []))
    .join('\n\n');

export const toolsOf = (turn: Turn): readonly ToolPart[] =>
  partsOf(turn).filter((part) => part.kind === 'tool');

const VALUES: Readonly<Record<Field, (turn: Turn) => unknown>> = {
  message: ({ message }) => message.text,
  status: ({ status }) => status,
  model: ({ model }) => model,
  answer: answerOf,
  tools: (turn) => toolsOf(turn).map(({ name, input, status, output }) => [name, input, status, output]),
  cost: ({ usage }) => [usage.inputTokens, usage.outputTokens, usage.costMicroUsd],
};

const differencesOf = (a: Turn | null, b: Turn | null): readonly Field[] =>
  a === null || b === null
    ? FIELDS
    : FIELDS.filter((field) => JSON.stringify(VALUES[field](a)) !== JSON.stringify(VALUES[field](b)));

/** Counts the turns of an origin before a fork of it. */
const countShared = (fork: Transcript, origin: Transcript, originId: string): number => {
  const point = fork.forkedFrom;
  if (point?.sessionId !== originId) return 0;
  return origin.turns.filter(({ firstVersion }) => firstVersion <= point.version).length;
};

type Sides = readonly (readonly [Turn | null, Turn | null])[];

const pairByOrder = (a: readonly Turn[], b: readonly Turn[]): Sides =>
  Array.from({ length: Math.max(a.length, b.length) }, (_, index) => [a[index] ?? null, b[index] ?? null]);

/** Pairs the turns of a what-if with those that they repeat; null if it is none of this origin. */
const pairRemakes = (fork: Transcript, origin: Transcript, originId: string): Sides | null => {
  const point = fork.forkedFrom;
  if (point?.sessionId !== originId || point.remakes.length === 0) return null;
  const find = ({ turns }: Transcript, wanted: string): Turn | null =>
    turns.find(({ turnId }) => turnId === wanted) ?? null;
  const repeated = point.remakes.map(({ turnId, of }) => [find(origin, of), find(fork, turnId)] as const);
  const lastOf = ({ turns }: Transcript, ids: readonly string[]): readonly Turn[] =>
    turns.slice(turns.findLastIndex(({ turnId }) => ids.includes(turnId)) + 1);
  const later = lastOf(
    origin,
    point.remakes.map(({ of }) => of),
  );
  const own = lastOf(
    fork,
    point.remakes.map(({ turnId }) => turnId),
  );
  return [...repeated, ...pairByOrder(later, own)];
};

export interface Side {
  readonly id: string;
  readonly transcript: Transcript;
}

/**
 * Compares two sessions turn by turn. Turns of a what-if stand for those that they repeat. Turns of
 * a fork stand for those of its origin after the cut. Otherwise the order of the turns decides.
 */
export const compareSessions = (a: Side, b: Side): Comparison => {
  const sharedByB = countShared(b.transcript, a.transcript, a.id);
  const sharedByA = countShared(a.transcript, b.transcript, b.id);
  const left = a.transcript.turns.slice(sharedByB);
  const right = b.transcript.turns.slice(sharedByA);
  const mirrored = pairRemakes(a.transcript, b.transcript, b.id)?.map(
    ([first, second]) => [second, first] as const,
  );
  const sides: Sides = pairRemakes(b.transcript, a.transcript, a.id) ?? mirrored ?? pairByOrder(left, right);
  const pairs = sides.map(([first, second], index) => ({
    key: `${first?.turnId ?? ''}/${second?.turnId ?? ''}/${index}`,
    a: first,
    b: second,
    differs: differencesOf(first, second),
  }));
  const firstDifference = pairs.findIndex(({ differs }) => differs.some((field) => field !== 'cost'));
  return { shared: Math.max(sharedByA, sharedByB), pairs, firstDifference };
};

/** Parts of two texts: what both begin with, what differs, and what both end with. */
export interface TextDifference {
  readonly before: string;
  readonly a: string;
  readonly b: string;
  readonly after: string;
}

const isLow = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff;

/** Finds the part in which two texts differ. It never splits a character in two. */
export const differenceOf = (a: string, b: string): TextDifference => {
  const most = Math.min(a.length, b.length);
  let start = 0;
  while (start < most && a.charCodeAt(start) === b.charCodeAt(start)) start++;
  while (start > 0 && (isLow(a.charCodeAt(start)) || isLow(b.charCodeAt(start)))) start--;
  let end = 0;
  while (end < most - start && a.charCodeAt(a.length - 1 - end) === b.charCodeAt(b.length - 1 - end)) end++;
  while (end > 0 && isLow(a.charCodeAt(a.length - end))) end--;
  return {
    before: a.slice(0, start),
    a: a.slice(start, a.length - end),
    b: b.slice(start, b.length - end),
    after: a.slice(a.length - end),
  };
};
