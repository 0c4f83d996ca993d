import { describe, expect, it } from '@jest/globals';
import type { AgentHop } from '@antiphon/contracts/agent';
import fc from 'fast-check';
import { HANDOVER_LOOP, HOP_LIMIT, checkHop } from './hand-over.js';

const hop = (from: string, to: string, facts = 0, digest = 'd'): AgentHop => ({
  ...{ kind: 'hand_over', from, to, digest, facts },
  ...{ sessionId: 's', turnId: 't', callId: 'c' },
});

/** Follows a path until a hop is refused. Returns the number of that hop and its verdict. */
const walk = (hops: readonly AgentHop[], maxHops = 100) => {
  const chain: AgentHop[] = [];
  for (const next of hops) {
    const verdict = checkHop(chain, next, maxHops);
    if (!verdict.allowed) return { at: chain.length + 1, verdict };
    chain.push(next);
  }
  return null;
};

const NAMES = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
const cycle = (agents: readonly string[], rounds: number): AgentHop[] =>
  Array.from({ length: agents.length * rounds }, (_, index) =>
    hop(agents[index % agents.length] ?? '', agents[(index + 1) % agents.length] ?? ''),
  );

describe('checkHop', () => {
  // @shows agents-A7
  it.each([1, 2, 3, 4, 5, 6])('stops a circle of %d agents at the hop after it', (length) => {
    const stopped = walk(cycle(NAMES.slice(0, length), 3));
    expect(stopped?.at).toBe(length + 1);
    expect(stopped?.verdict).toMatchObject({ code: HANDOVER_LOOP });
  });

  it('names the whole chain', () => {
    expect(walk(cycle(['a', 'b'], 2))?.verdict).toMatchObject({ chain: ['a', 'b', 'a', 'b'] });
  });

  it('stops any path that repeats a pair without a new fact, and never before', () =>
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...NAMES), { minLength: 2, maxLength: 40 }), (agents) => {
        const hops = agents.slice(1).map((to, index) => hop(agents[index] ?? '', to));
        const pairs = hops.map(({ from, to }) => `${from} ${to}`);
        const repeated = pairs.findIndex((pair, index) => pairs.indexOf(pair) < index);
        expect(walk(hops)?.at ?? 0).toBe(repeated + 1);
      }),
      { numRuns: 2_000 },
    ));

  // @shows agents-A7
  it('stops none of 1,000 legal chains, in which a pair repeats only after a new fact', () =>
    fc.assert(
      fc.property(
        fc.array(fc.record({ to: fc.constantFrom(...NAMES), learned: fc.nat({ max: 2 }) }), {
          maxLength: 40,
        }),
        (steps) => {
          const seen = new Set<string>();
          let from = 'a';
          let facts = 0;
          const legal = steps.map(({ to, learned }) => {
            facts += learned;
            if (seen.has(`${from} ${to} ${facts}`)) facts++;
            seen.add(`${from} ${to} ${facts}`);
            const next = hop(from, to, facts);
            from = to;
            return next;
          });
          expect(walk(legal)).toBeNull();
        },
      ),
      { numRuns: 1_000 },
    ));

  it('lets the same agents pass another request', () =>
    expect(walk([hop('a', 'b', 0, 'x'), hop('b', 'a', 0, 'x'), hop('a', 'b', 0, 'y')])).toBeNull());

  it('ends a chain that only grows, at the limit of hops', () => {
    const hops = Array.from({ length: 9 }, (_, index) => hop(`n${index}`, `n${index + 1}`));
    expect(walk(hops, 8)).toMatchObject({ at: 9, verdict: { code: HOP_LIMIT } });
  });
});
