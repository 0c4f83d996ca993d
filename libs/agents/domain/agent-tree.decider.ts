import { causedError } from '@antiphon/contracts/causes';
import type { AgentTreeEvent, TreeLimits } from '@antiphon/contracts/agent';
import { assertNever, rejected } from '@antiphon/kernel';
import type { Decider } from '@antiphon/kernel';

const schemaVersion = 1 as const;

/** Maximum number of agents that wait for a place in one tree. */
export const MAX_TREE_QUEUE = 1_000;

/** A limit of a tree that keeps an agent waiting. */
export type WaitLimit = 'children' | 'size';

/** A living or waiting agent of a tree. */
export interface TreeMember {
  readonly agentId: string;
  readonly parentId: string | null;
  readonly depth: number;
  /** Limit that the agent waits for; null for a living one. */
  readonly waitsFor: WaitLimit | null;
}

/** A tree of agents. Members that left are not part of the state. */
export interface AgentTree {
  readonly rootId: string | null;
  readonly limits: TreeLimits;
  /** In the order of their events; waiting ones in the order of the queue. */
  readonly members: ReadonlyMap<string, TreeMember>;
}

export const initialTree = (): AgentTree => ({
  rootId: null,
  limits: { depth: 0, children: 0, size: 0 },
  members: new Map(),
});

interface Command<T extends string, Data> {
  readonly type: T;
  readonly data: Data;
  readonly now: string;
}
export type OpenTree = Command<'Open', { readonly rootId: string; readonly limits: TreeLimits }>;
export type AdmitMember = Command<
  'Admit',
  { readonly agentId: string; readonly parentId: string; readonly whenFull: 'refuse' | 'queue' }
>;
export type LeaveTree = Command<'Leave', { readonly agentIds: readonly string[] }>;
export type AgentTreeCommand = OpenTree | AdmitMember | LeaveTree;

const livingMembers = ({ members }: AgentTree): TreeMember[] =>
  [...members.values()].filter(({ waitsFor }) => waitsFor === null);

/** Returns the waiting agents of a tree, first in the queue first. */
export const treeQueue = ({ members }: AgentTree): TreeMember[] =>
  [...members.values()].filter(({ waitsFor }) => waitsFor !== null);

/** Returns the agent and its descendants, ancestors first. Empty if it is not in the tree. */
export const subtreeOf = ({ members }: AgentTree, agentId: string): TreeMember[] => {
  const root = members.get(agentId);
  const found = root ? [root] : [];
  // The list grows while it is read: first children, then their children.
  for (const { agentId: parent } of found)
    for (const member of members.values()) if (member.parentId === parent) found.push(member);
  return found;
};

/** Returns the limit that keeps a child of this parent out of the tree; null if there is a place. */
const reachedLimit = (tree: AgentTree, parentId: string): WaitLimit | null => {
  const living = livingMembers(tree);
  if (living.length >= tree.limits.size) return 'size';
  const children = living.filter((member) => member.parentId === parentId).length;
  return children >= tree.limits.children ? 'children' : null;
};

const refuse = (tree: AgentTree, limit: WaitLimit | 'depth' | 'queue', agentId: string): never => {
  const max = limit === 'queue' ? MAX_TREE_QUEUE : tree.limits[limit];
  const cause = { kind: 'tree_full', rootId: tree.rootId ?? '', limit, max } as const;
  throw causedError(rejected, 'AGENT.LIMIT_REACHED', cause, { limit, max, agentId, rootId: tree.rootId });
};

const openTree = ({ data, now: at }: OpenTree, tree: AgentTree): AgentTreeEvent[] => {
  if (tree.rootId !== null) return [];
  const { rootId, limits } = data;
  return [
    { type: 'TreeOpened', schemaVersion, data: { rootId, limits, at } },
    {
      type: 'TreeMemberAdmitted',
      schemaVersion,
      data: { rootId, agentId: rootId, parentId: null, depth: 0, at },
    },
  ];
};

const admitMember = ({ data, now: at }: AdmitMember, tree: AgentTree): AgentTreeEvent[] => {
  const { agentId, parentId, whenFull } = data;
  const rootId = tree.rootId ?? '';
  if (tree.members.has(agentId)) return [];
  const parent = tree.members.get(parentId);
  if (parent?.waitsFor !== null) {
    const from = parent ? 'spawning' : 'terminated';
    const cause = { kind: 'parent_without_children', agentId: parentId, from } as const;
    throw causedError(rejected, 'AGENT.STATE_CONFLICT', cause, { from, to: 'working', agentId: parentId });
  }
  const depth = parent.depth + 1;
  if (depth > tree.limits.depth) return refuse(tree, 'depth', agentId);
  const member = { rootId, agentId, parentId, depth, at };
  const limit = reachedLimit(tree, parentId);
  if (limit === null) return [{ type: 'TreeMemberAdmitted', schemaVersion, data: member }];
  if (whenFull === 'refuse') return refuse(tree, limit, agentId);
  if (treeQueue(tree).length >= MAX_TREE_QUEUE) return refuse(tree, 'queue', agentId);
  return [{ type: 'TreeMemberQueued', schemaVersion, data: { ...member, limit } }];
};

const evolve = (tree: AgentTree, { type, data }: AgentTreeEvent): AgentTree => {
  if (type === 'TreeOpened') return { ...tree, rootId: data.rootId, limits: data.limits };
  const members = new Map(tree.members);
  // An admitted agent goes to the end, so that the order is that of the admissions.
  members.delete(data.agentId);
  if (type === 'TreeMemberLeft') return { ...tree, members };
  const { agentId, parentId, depth } = data;
  const waitsFor = type === 'TreeMemberQueued' ? data.limit : null;
  members.set(agentId, { agentId, parentId, depth, waitsFor });
  return { ...tree, members };
};

/** Removes members, and admits those that wait, in order, to the places that become free. */
const leaveTree = ({ data, now: at }: LeaveTree, tree: AgentTree): AgentTreeEvent[] => {
  const rootId = tree.rootId ?? '';
  const left = data.agentIds
    .filter((agentId) => tree.members.has(agentId))
    .map((agentId) => ({ type: 'TreeMemberLeft' as const, schemaVersion, data: { rootId, agentId, at } }));
  const events: AgentTreeEvent[] = [...left];
  let next = left.reduce(evolve, tree);
  for (const { agentId, parentId, depth } of treeQueue(next)) {
    if (parentId === null || reachedLimit(next, parentId) !== null) continue;
    const admitted = {
      type: 'TreeMemberAdmitted' as const,
      schemaVersion,
      data: { rootId, agentId, parentId, depth, at },
    };
    events.push(admitted);
    next = evolve(next, admitted);
  }
  return events;
};

const decide = (command: AgentTreeCommand, tree: AgentTree): AgentTreeEvent[] => {
  switch (command.type) {
    case 'Open':
      return openTree(command, tree);
    case 'Admit':
      return admitMember(command, tree);
    case 'Leave':
      return leaveTree(command, tree);
    default:
      return assertNever(command);
  }
};

/**
 * Decides who has a place in a tree of agents. Throws `AGENT.LIMIT_REACHED` with the limit, and
 * `AGENT.STATE_CONFLICT` for a parent that does not live.
 */
export const agentTreeDecider: Decider<AgentTree, AgentTreeCommand, AgentTreeEvent> = {
  initialState: initialTree,
  decide,
  evolve,
};
