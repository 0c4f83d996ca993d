import type { RouteReply } from '@antiphon/client';

type Agent = Pick<RouteReply<'listAgents'>['agents'][number], 'state' | 'phase' | 'name'>;

/** Places of states: what a person may have to act on, then what works. */
const PLACES: Readonly<Record<Agent['state'], number>> = {
  ...{ error: 0, working: 2, paused: 3, spawning: 4, idle: 5, terminated: 6 },
};
const placeOf = ({ state, phase }: Agent): number => (phase === 'waiting' ? 1 : PLACES[state]);

/** Returns agents with an error first, then those that wait for an approval, then those that work. */
export const orderAgents = <T extends Agent>(agents: readonly T[]): T[] =>
  agents.toSorted((a, b) => placeOf(a) - placeOf(b));

/** Returns the number of agents in each state that occurs, such as `2 working`. */
export const countStates = (agents: readonly Agent[]): readonly { state: string; count: number }[] => {
  const counts = new Map<string, number>();
  for (const agent of orderAgents(agents)) {
    const state = agent.phase === 'waiting' ? 'waiting' : agent.state;
    counts.set(state, (counts.get(state) ?? 0) + 1);
  }
  return [...counts].map(([state, count]) => ({ state, count }));
};
