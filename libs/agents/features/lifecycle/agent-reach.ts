import { coversTool } from '@antiphon/config';
import { causedError } from '@antiphon/contracts/causes';
import { isBelow, normalizeFolder } from '@antiphon/files-domain';
import { forbidden } from '@antiphon/kernel';
import type { AgentDirectory } from './agent-directory.js';

/** The part of an agent that decides which agents it may turn to. */
export interface AgentReach {
  readonly id: string;
  /** Configured agent whose settings apply. */
  readonly base: string;
  readonly rootId: string;
  readonly tools: readonly string[];
  readonly readRoots?: readonly string[] | undefined;
  readonly writeRoots?: readonly string[] | undefined;
  readonly readChats?: boolean | undefined;
  /** Agents that the configuration names; absent for the default. */
  readonly contacts?: readonly string[] | undefined;
  /** Agents that a spawn request limits it to; absent for no limit. */
  readonly ownContacts?: readonly string[] | undefined;
}

/** Name of a list for every agent, and for messages to all of them. */
const ANY = '*';
/** Tools by which an agent reaches other agents, whose own limits apply, or writes a plan. */
const FREE_TOOLS: ReadonlySet<string> = new Set([
  ...['send_message', 'ask_agent', 'hand_over', 'spawn_agent', 'delegate_task', 'make_plan', 'plan_step'],
]);
const WHOLE_TREE = [''];

const names = (list: readonly string[], { id, base }: AgentReach): boolean =>
  [ANY, id, base].some((name) => list.includes(name));

const isInRoots = (inner: readonly string[] = WHOLE_TREE, outer: readonly string[] = WHOLE_TREE): boolean =>
  inner.every((root) => outer.some((own) => isBelow(normalizeFolder(root), normalizeFolder(own))));

/** Returns true for an agent whose folders the configuration limits. */
const isLimited = ({ readRoots, writeRoots }: AgentReach): boolean =>
  readRoots !== undefined || writeRoots !== undefined;

/** Returns true if an agent may do nothing that the other one may not. */
const isNoWider = (target: AgentReach, than: AgentReach): boolean =>
  isInRoots(target.readRoots, than.readRoots) &&
  isInRoots(target.writeRoots, than.writeRoots) &&
  (than.readChats === true || target.readChats !== true) &&
  // Without limits of its folders an agent asks specialists that have other tools.
  (!isLimited(than) || target.tools.every((tool) => FREE_TOOLS.has(tool) || coversTool(than.tools, tool)));

/**
 * Returns true if an agent may ask, message and delegate to another one: itself, the agents of its
 * tree, and those that `contacts` names. Without a list, those that may do nothing that it may not.
 */
export const canReach = (from: AgentReach, to: AgentReach): boolean => {
  if (from.id === to.id || from.rootId === to.rootId) return true;
  if (from.ownContacts && !names(from.ownContacts, to)) return false;
  return from.contacts ? names(from.contacts, to) : isNoWider(to, from);
};

/**
 * Returns true if an agent may send messages to agents that it does not name. Null stands for all
 * agents, a topic for its subscribers. A list names a topic as `#topic`.
 */
export const canBroadcast = (from: AgentReach, topic: string | null): boolean => {
  const { contacts, ownContacts } = from;
  const isNamed = (list: readonly string[]): boolean =>
    list.includes(ANY) || (topic !== null && list.includes(`#${topic}`));
  if (ownContacts && !isNamed(ownContacts)) return false;
  return contacts ? isNamed(contacts) : !isLimited(from);
};

const refusal = (
  { id, base, ownContacts }: AgentReach,
  attempt: 'contact' | 'topic' | 'everyone',
  to: string,
  name: string,
): Error => {
  const who = { agentId: id, base, isSpawnList: Boolean(ownContacts) };
  const cause = { kind: 'contact_not_allowed', ...who, attempt, to, name } as const;
  return causedError(forbidden, 'AGENT.NOT_ALLOWED', cause, { setting: 'contacts', agent: base, name });
};

type Directory = Pick<AgentDirectory, 'load'>;

/** Throws `AGENT.NOT_ALLOWED` unless an agent may turn to another one. An unknown one passes. */
export const requireReach = async (
  agents: Directory,
  workspace: string,
  from: string,
  to: string,
): Promise<void> => {
  const [own, other] = await Promise.all([agents.load(workspace, from), agents.load(workspace, to)]);
  if (own && other && !canReach(own, other)) throw refusal(own, 'contact', to, other.base);
};

/** Throws `AGENT.NOT_ALLOWED` unless an agent may send messages to agents that it does not name. */
export const requireBroadcast = async (
  agents: Directory,
  workspace: string,
  from: string,
  topic: string | null,
): Promise<void> => {
  const own = await agents.load(workspace, from);
  if (!own || canBroadcast(own, topic)) return;
  throw topic === null ? refusal(own, 'everyone', ANY, ANY) : refusal(own, 'topic', topic, `#${topic}`);
};
