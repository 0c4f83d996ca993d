import type { Cause } from '@antiphon/contracts/causes';
import type { AgentHop } from '@antiphon/contracts/agent';
import type { JsonObject, JsonValue } from '@antiphon/kernel';
import type { OpenTurn } from './session-state.js';

/** Name of the tool by which an agent gives its turn to another one. */
export const HAND_OVER = 'hand_over';
/** Error code of a hand-over or question that repeats without a new fact. */
export const HANDOVER_LOOP = 'AGENT.HANDOVER_LOOP';
/** Error code of a chain of requests from agent to agent that is too long. */
export const HOP_LIMIT = 'AGENT.LIMIT_REACHED';

/** Maximum number of hops of a chain. */
export const MAX_HOPS = 8;

/** Tools whose results tell the agent nothing new. */
const NO_FACTS: ReadonlySet<string> = new Set([HAND_OVER, 'send_message']);

/** Returns the agent that a call of a native tool names; empty if it names none. */
export const recipientOf = (input: JsonValue): string => {
  const isObject = typeof input === 'object' && input !== null && !Array.isArray(input);
  const agent = isObject ? (input as JsonObject)['agent'] : undefined;
  return typeof agent === 'string' ? agent : '';
};

/** Counts what the agents of a chain have learned so far: tool results and messages. */
export const factsOf = ({ chain, steps, received }: OpenTurn): number => {
  const results = steps
    .flatMap(({ calls }) => calls)
    .filter(({ name, status, isError }) => status === 'completed' && !isError && !NO_FACTS.has(name));
  const messages = received.reduce((sum, batch) => sum + batch.messages.length, 0);
  return (chain.at(-1)?.facts ?? 0) + results.length + messages;
};

/** Verdict on the next hop of a chain. */
export type HopVerdict =
  | { readonly allowed: true }
  | {
      readonly allowed: false;
      readonly code: string;
      readonly chain: readonly string[];
      readonly cause: Cause;
    };

const agentsOf = (hops: readonly Pick<AgentHop, 'from' | 'to'>[]): string[] =>
  hops.length === 0 ? [] : [hops[0]?.from ?? '', ...hops.map(({ to }) => to)];

const isRepeated = (hop: AgentHop, earlier: AgentHop): boolean =>
  hop.from === earlier.from &&
  hop.to === earlier.to &&
  hop.digest === earlier.digest &&
  hop.facts === earlier.facts;

/**
 * Decides whether a chain may continue with a hop. It may not after `maxHops` hops. It may not
 * repeat the same request between the same two agents unless an agent has learned a fact since.
 */
export const checkHop = (
  chain: readonly AgentHop[],
  hop: AgentHop,
  maxHops: number = MAX_HOPS,
): HopVerdict => {
  const agents = agentsOf([...chain, hop]);
  if (chain.some((earlier) => isRepeated(hop, earlier))) {
    const cause = { kind: 'request_circle', agents: agents.join(' → ') } as const;
    return { allowed: false, code: HANDOVER_LOOP, chain: agents, cause };
  }
  if (chain.length < maxHops) return { allowed: true };
  const cause = { kind: 'hop_limit', hops: maxHops, agents: agents.join(' → ') } as const;
  return { allowed: false, code: HOP_LIMIT, chain: agents, cause };
};
