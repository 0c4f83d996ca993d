/** Origin of a message, as its channel reports it. */
export interface RoutingKey {
  readonly channel?: string | undefined;
  readonly account?: string | undefined;
  readonly peer?: string | undefined;
  readonly guild?: string | undefined;
  readonly team?: string | undefined;
}

/**
 * A routing rule. Every given field must match; the first given of peer, guild, team, account,
 * channel is its rank.
 */
export interface RoutingBinding extends RoutingKey {
  readonly agent: string;
}

export interface Router {
  /** Returns the agent of the best matching binding, else the default agent. */
  route(key: RoutingKey): string;
}

/** Ranks, strongest first. */
const RANKS = ['peer', 'guild', 'team', 'account', 'channel'] as const;
type Field = (typeof RANKS)[number];

interface Index {
  readonly fields: readonly Field[];
  readonly agents: Map<string, string>;
}

const SEPARATOR = '\0';

/** Returns the values of `fields` as one key, or undefined if one is missing. */
const keyOf = (fields: readonly Field[], from: RoutingKey): string | undefined => {
  const first = fields[0];
  if (first !== undefined && fields.length === 1) return from[first];
  let key = '';
  for (const field of fields) {
    const value = from[field];
    if (value === undefined) return undefined;
    key += value + SEPARATOR;
  }
  return key;
};

/** Returns the place of the strongest field; that after all others without a field. */
const rank = ({ fields: [strongest] }: Index): number =>
  strongest === undefined ? RANKS.length : RANKS.indexOf(strongest);

/** Sorts by rank, then by number of fields, so that the more specific binding wins. */
const byStrength = (a: Index, b: Index): number =>
  rank(a) - rank(b) || b.fields.length - a.fields.length || strengthOf(b) - strengthOf(a);

const strengthOf = (index: Index): number =>
  index.fields.reduce((sum, field) => sum + 2 ** (RANKS.length - RANKS.indexOf(field)), 0);

/**
 * Creates the router. It has one map for each combination of fields that occurs, at most 31. The
 * cost of a route does not grow with the bindings. Of two equal bindings the first one counts.
 */
export const createRouter = (bindings: readonly RoutingBinding[], defaultAgent: string): Router => {
  const byFields = new Map<string, Index>();
  for (const binding of bindings) {
    const fields = RANKS.filter((field) => binding[field] !== undefined);
    const name = fields.join();
    const index = byFields.get(name) ?? { fields, agents: new Map<string, string>() };
    byFields.set(name, index);
    const key = keyOf(fields, binding) ?? '';
    if (!index.agents.has(key)) index.agents.set(key, binding.agent);
  }
  const indexes = [...byFields.values()].sort(byStrength);
  return { route: (key) => lookUp(indexes, key) ?? defaultAgent };
};

const lookUp = (indexes: readonly Index[], from: RoutingKey): string | undefined => {
  for (const { fields, agents } of indexes) {
    const key = keyOf(fields, from);
    const agent = key === undefined ? undefined : agents.get(key);
    if (agent !== undefined) return agent;
  }
  return undefined;
};
