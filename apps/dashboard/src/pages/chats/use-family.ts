import type { RouteReply } from '@antiphon/client';
import { useMemo } from 'react';
import { client } from '../../data/gateway.js';
import { isAbout } from '../../data/event-pages.js';
import { useIdentity } from '../../data/identity.js';
import { foldEvents, type Turn } from '../../data/transcript.js';
import { useFetched, useRead } from '../../data/use-read.js';
import { filesByTurn, type AttachedFile } from './attached-files.js';

export type FamilyChat = RouteReply<'listChatBranches'>['chats'][number];

/** A turn of a chat that the chat has from its origin. */
export interface InheritedTurn {
  readonly turn: Turn;
  readonly sessionId: string;
}

/** Turns and files that a branch has from its origins, the oldest first. */
export interface Lineage {
  readonly turns: readonly InheritedTurn[];
  readonly files: ReadonlyMap<string, readonly AttachedFile[]>;
  /** True if an origin has more turns than were read. */
  readonly isCut: boolean;
}

const NONE: Lineage = { turns: [], files: new Map(), isCut: false };
/** Events of an origin that are read. */
const EVENTS = 1_000;

type Point = NonNullable<FamilyChat['branchOf']>;

/** Reads the turns of an origin before the message that the branch replaces. */
const readOrigin = async ({ sessionId, turnId, position }: Point, signal: AbortSignal): Promise<Lineage> => {
  const query = { stream: `session-${sessionId}`, order: 'desc', at: position, limit: EVENTS } as const;
  const { events } = await client.http.readEvents({ query, signal });
  const own = events.toReversed();
  const { turns } = foldEvents(own, null);
  const end = turns.findIndex((turn) => turn.turnId === turnId);
  const shown = end < 0 ? turns : turns.slice(0, end);
  return {
    turns: shown.map((turn) => ({ turn, sessionId })),
    files: filesByTurn(own),
    isCut: (own[0]?.streamVersion ?? 1) > 1,
  };
};

/** Returns the points at which a chat and its origins began, the first origin first. */
const pointsOf = (chat: FamilyChat, family: readonly FamilyChat[]): readonly Point[] => {
  const points: Point[] = [];
  for (let next: FamilyChat | undefined = chat; next?.branchOf && points.length < 50;) {
    const point: Point = next.branchOf;
    points.unshift(point);
    next = family.find(({ id }) => id === point.chatId);
  }
  return points;
};

/** Reads all that a branch has from its origins. It never changes. */
const useLineage = (chat: FamilyChat | undefined, family: readonly FamilyChat[]) => {
  const points = chat ? pointsOf(chat, family) : [];
  const key = points.map(({ sessionId, turnId }) => `${sessionId} ${turnId}`).join(' ');
  const read = useFetched(key === '' ? null : `lineage ${key}`, async (signal) => {
    const origins = await Promise.all(points.map((point) => readOrigin(point, signal)));
    return {
      turns: origins.flatMap(({ turns }) => turns),
      files: new Map(origins.flatMap(({ files }) => [...files])),
      isCut: origins.some(({ isCut }) => isCut),
    };
  });
  return { lineage: read.data ?? NONE, isLoading: read.isLoading, problem: read.problem };
};

/** Reads a chat with the branches of its family. */
export const useFamily = (id: string) => {
  const { workspace } = useIdentity();
  const { data, problem, refresh } = useRead(
    'listChatBranches',
    { params: { id: workspace, chat: id } },
    { changesOn: isAbout('chat') },
  );
  const family = useMemo(() => data?.chats ?? [], [data]);
  const chat = family.find((each) => each.id === id) ?? family.find(({ name }) => name === id);
  return {
    family,
    chat,
    ...useLineage(chat, family),
    failure: problem,
    isKnown: data !== undefined,
    refresh,
  };
};

/** Place in a chat at which there are several branches. */
export interface Fork {
  /** The chats that continue there: the origin first. */
  readonly chats: readonly FamilyChat[];
  /** Index of the one that the page shows. */
  readonly index: number;
  /** Number of messages on the others from here on. */
  readonly hidden: number;
}

/** Place of a turn in the thread of a chat. */
interface Place extends InheritedTurn {
  /** Chat whose first own turn it is; undefined for a later one. */
  readonly first: FamilyChat | undefined;
  /** Number of turns of the session before it in the thread, and of the one before it. */
  readonly before: ReadonlyMap<string, number>;
}

/** Returns the branches that begin with a turn, or in place of it; null for none. */
const forkAt = (
  { turn: { turnId }, sessionId, first, before }: Place,
  family: readonly FamilyChat[],
): Fork | null => {
  const point = first?.branchOf ?? { sessionId, turnId };
  const origin = family.find((chat) => chat.sessionId === point.sessionId);
  const branches = family
    .filter(({ branchOf }) => branchOf?.sessionId === point.sessionId && branchOf.turnId === point.turnId)
    .toSorted((a, b) => a.createdAt.localeCompare(b.createdAt));
  const chats = [...(origin ? [origin] : []), ...branches];
  if (branches.length === 0 || chats.length < 2) return null;
  const index = Math.max(0, first ? chats.findIndex(({ id }) => id === first.id) : 0);
  // The messages before the fork are on every branch.
  const shared = index > 0 && origin ? (before.get(origin.sessionId) ?? 0) : 0;
  const others = chats.filter((_, at) => at !== index);
  const hidden = others.reduce((sum, { turns }) => sum + turns, 0) - shared;
  return { chats, index, hidden: Math.max(0, hidden) };
};

/** Returns the branches at each turn of a thread. */
export const forksOf = (
  turns: readonly InheritedTurn[],
  family: readonly FamilyChat[],
): ReadonlyMap<string, Fork> => {
  const found = new Map<string, Fork>();
  const before = new Map<string, number>();
  for (const each of turns) {
    const { sessionId } = each;
    const count = before.get(sessionId) ?? 0;
    // The first own turn of a branch is in the place of the message that it replaced.
    const owner = count === 0 ? family.find((chat) => chat.sessionId === sessionId) : undefined;
    const fork = forkAt({ ...each, first: owner?.branchOf ? owner : undefined, before }, family);
    if (fork) found.set(each.turn.turnId, fork);
    before.set(sessionId, count + 1);
  }
  return found;
};
