import type { Turn } from './transcript.js';

type Item = Turn['items'][number];
type ToolItem = Extract<Item, { kind: 'tool' }>;

export interface TextPart {
  readonly kind: 'text';
  readonly key: string;
  readonly text: string;
  readonly thought: string;
}
export interface ToolPart extends Pick<ToolItem, 'callId' | 'name' | 'input' | 'durationMs' | 'approval'> {
  readonly kind: 'tool';
  readonly key: string;
  readonly status: 'running' | 'pending' | 'completed' | 'failed' | 'denied' | 'unknown';
  readonly output: string | null;
}
/** Something that a reader has to know: a failed try, a returned answer, messages of other agents. */
export interface NotePart {
  readonly kind: 'note';
  readonly key: string;
  readonly text: string;
  readonly isBad: boolean;
}
export type Part = TextPart | ToolPart | NotePart;

const CUT_NOTES = {
  length: 'The answer was cut: it reached its output limit.',
  content_filter: 'The answer was cut: a filter of the provider ended it.',
} as const;

const statusOf = ({ status, isError, approval }: ToolItem): ToolPart['status'] => {
  if (status === 'asked' || status === 'running')
    return approval?.status === 'pending' ? 'pending' : 'running';
  if (approval && !['granted', 'pending'].includes(approval.status)) return 'denied';
  return isError && status === 'completed' ? 'failed' : status;
};

const toTool = (item: ToolItem): ToolPart => {
  const { callId, name, input, durationMs, approval, result } = item;
  const answeredBy = approval && (approval.answeredByName ?? approval.answeredBy);
  return {
    ...{ kind: 'tool', key: callId, callId, name, input, durationMs },
    ...{ approval: approval && { ...approval, answeredBy } },
    ...{ status: statusOf(item), output: result?.text ?? null },
  };
};

const note = (key: string | number, text: string, isBad: boolean): NotePart => ({
  ...{ kind: 'note', key: `note ${key}`, text, isBad },
});

const failure = (message: string): string => `Model call failed: ${message}`;

/** Returns the parts of the items of one event, or of one tool call. */
const toParts = (items: readonly Item[], isEdited: boolean): readonly Part[] => {
  const [first] = items;
  if (!first) return [];
  const { position } = first;
  if (first.kind === 'tool') return first.requestPosition === null ? [] : [toTool(first)];
  if (first.kind === 'aborted') return [note(position, failure(first.message), true)];
  if (first.kind === 'returned') return [note(position, first.text, false)];
  if (first.kind === 'blocked')
    return [note(position, `The turn ${first.isOver ? 'waited' : 'waits'}: ${first.text}`, false)];
  if (first.kind === 'received') return [note(position, `${items.length} messages of other agents`, false)];
  const text = items.find((item) => item.kind === 'text')?.text;
  const thought = items.find((item) => item.kind === 'thought')?.text;
  if (text === undefined && isEdited) return [];
  return [{ kind: 'text', key: `text ${position}`, text: text ?? '', thought: thought ?? '' }];
};

const endNotes = ({ error, cutBy }: Turn): readonly NotePart[] => {
  if (error) return [note('end', `${error.message} (${error.code})`, true)];
  return cutBy ? [note('end', CUT_NOTES[cutBy], true)] : [];
};

/** Position of the event that shows an item. A tool call is shown from its request on. */
const placeOf = (item: Item): number =>
  item.kind === 'tool' ? (item.requestPosition ?? item.position) : item.position;

/** Returns the items in the order of a page: those of one event together, and each tool call alone. */
const groupItems = (items: readonly Item[]): readonly (readonly Item[])[] => {
  const groups: Item[][] = [];
  for (const item of items.toSorted((a, b) => placeOf(a) - placeOf(b))) {
    const last = groups.at(-1);
    const isSame = item.kind !== 'tool' && last?.[0]?.position === item.position;
    if (isSame && last[0]?.kind !== 'tool') last.push(item);
    else groups.push([item]);
  }
  return groups;
};

const createParts = (turn: Turn): readonly Part[] => {
  if (turn.isAnswerDeleted) return [];
  const parts = groupItems(turn.items).flatMap((items) => toParts(items, turn.answerEditedAt !== null));
  // A last failed model call with the reason of the turn's end would say it twice.
  const last = parts.at(-1);
  const isSame = turn.error && last?.kind === 'note' && last.text === failure(turn.error.message);
  return [...(isSame ? parts.slice(0, -1) : parts), ...endNotes(turn)];
};

const known = new WeakMap<Turn, readonly Part[]>();

/**
 * Returns the parts of a turn in the order in which a page shows them. A turn never changes, so its
 * parts are created once.
 */
export const partsOf = (turn: Turn): readonly Part[] => {
  const parts = known.get(turn) ?? createParts(turn);
  known.set(turn, parts);
  return parts;
};

/** Returns the length of the text of ended model calls: frames have the rest. */
export const textLengthOf = ({ items }: Turn): number =>
  items.reduce((total, item) => total + (item.kind === 'text' ? item.length : 0), 0);
