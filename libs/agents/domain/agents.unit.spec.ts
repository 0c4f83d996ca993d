import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { AGENT_STATES, DEFAULT_TREE_LIMITS } from '@antiphon/contracts/agent';
import type { AgentDefinition, AgentEvent } from '@antiphon/contracts/agent';
import { isAppError } from '@antiphon/kernel';
import { AGENT_RULES, AGENT_STATUSES, agentDecider, agentStateOf, initialAgent } from './agent.decider.js';
import type { AgentCommand } from './agent-commands.js';
import type { AgentRecord, AgentStatus } from './agent.decider.js';
import { agentTreeDecider, initialTree, subtreeOf, treeQueue } from './agent-tree.decider.js';
import type { AgentTree, AgentTreeCommand } from './agent-tree.decider.js';

/** 100,000 at night. */
const HISTORIES = Number(process.env['ANTIPHON_AGENT_HISTORIES'] ?? 10_000);
const NOW = '2026-11-22T12:00:00.000Z';
const DEFINITION: AgentDefinition = {
  name: 'Ann',
  role: null,
  provider: 'first',
  model: 'm',
  systemPrompt: null,
  capabilities: [],
  tools: [],
  project: null,
  position: null,
  maxIterations: 4,
  fallback: null,
  identity: null,
  base: 'main',
  budget: null,
};

const common = { agentId: 'ann', actor: 'key/k1', reason: 'because', now: NOW };
const id = '00000000-0000-7000-8000-000000000001';
const COMMANDS: Readonly<Record<AgentCommand['type'], AgentCommand>> = {
  Spawn: {
    ...common,
    type: 'Spawn',
    data: { definition: DEFINITION, origin: 'request', parentId: null, rootId: 'ann', depth: 0 },
  },
  MarkReady: { ...common, type: 'MarkReady', data: {} },
  Redefine: { ...common, type: 'Redefine', data: { definition: { ...DEFINITION, name: 'Bob' } } },
  SetOverrides: { ...common, type: 'SetOverrides', data: { overrides: { model: 'other' } } },
  Pause: { ...common, type: 'Pause', data: {} },
  Resume: { ...common, type: 'Resume', data: {} },
  Fail: {
    ...common,
    type: 'Fail',
    data: { code: 'TURN.DRIVER_LOST', sessionId: id, turnId: id, retryAt: NOW },
  },
  StartTrial: { ...common, type: 'StartTrial', data: { sessionId: id, turnId: id } },
  MarkUnresponsive: { ...common, type: 'MarkUnresponsive', data: { lastSeenAt: NOW } },
  MarkResponsive: { ...common, type: 'MarkResponsive', data: {} },
  Block: {
    ...common,
    type: 'Block',
    data: { code: 'AGENT.HANDOVER_LOOP', sessionId: id, turnId: id, chain: [] },
  },
  Terminate: { ...common, type: 'Terminate', data: { result: null } },
};
const ALL = Object.values(COMMANDS);
const WAY: Readonly<Record<AgentStatus, readonly AgentCommand[]>> = {
  none: [],
  spawning: [COMMANDS.Spawn],
  ready: [COMMANDS.Spawn, COMMANDS.MarkReady],
  paused: [COMMANDS.Spawn, COMMANDS.MarkReady, COMMANDS.Pause],
  error: [COMMANDS.Spawn, COMMANDS.MarkReady, COMMANDS.Fail],
  terminated: [COMMANDS.Spawn, COMMANDS.Terminate],
};
const { decide, evolve } = agentDecider;
const apply = (agent: AgentRecord, command: AgentCommand): AgentRecord =>
  decide(command, agent).reduce(evolve, agent);
const agentIn = (status: AgentStatus): AgentRecord => WAY[status].reduce(apply, initialAgent());
const conflictOf = (work: () => unknown): unknown => {
  try {
    work();
    return null;
  } catch (error) {
    return isAppError(error) && error.code === 'AGENT.STATE_CONFLICT' ? error.data : error;
  }
};

/** A generator of numbers that a seed determines (mulberry32). */
const seeded = (seed: number) => (): number => {
  seed = (seed + 0x6d2b79f5) | 0;
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
};

// Refusals are counted by the hundred thousand: their stacks would take most of the time.
const { stackTraceLimit } = Error;
beforeAll(() => void (Error.stackTraceLimit = 0));
afterAll(() => void (Error.stackTraceLimit = stackTraceLimit));

/** Eight steps of two actors. Each decides on what it read, and commits at the version it read. */
const runHistory = (random: () => number, onRefused: () => void): AgentEvent[] => {
  const pick = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)] as T;
  const log: AgentEvent[] = [];
  const actors = [
    { seen: initialAgent(), version: 0 },
    { seen: initialAgent(), version: 0 },
  ];
  for (let step = 0; step < 8; step++) {
    const actor = pick(actors);
    if (random() < 0.5)
      Object.assign(actor, { seen: log.reduce(evolve, initialAgent()), version: log.length });
    const events = allow(() => decide(pick(ALL), actor.seen)) ?? (onRefused(), []);
    if (actor.version === log.length) log.push(...events);
  }
  return log;
};
const allow = <T>(work: () => T): T | null => {
  try {
    return work();
  } catch (error) {
    if (isAppError(error) && /^AGENT\.(STATE_CONFLICT|LIMIT_REACHED)$/.test(error.code)) return null;
    throw error;
  }
};
const checkStatus = (log: readonly AgentEvent[]): void => {
  const { status } = log.reduce(evolve, initialAgent());
  const shown = agentStateOf(status, false);
  if (!AGENT_STATUSES.includes(status) || (shown !== null && !AGENT_STATES.includes(shown)))
    throw new Error(`undeclared state ${status}`);
};

const PAIRS = AGENT_STATUSES.flatMap((status) => ALL.map((command) => ({ status, command })));

describe('the lifecycle of an agent', () => {
  // @shows agents-A1
  it.each(PAIRS)('decides $command.type from $status as declared', ({ status, command }) => {
    const agent = agentIn(status);
    expect(agent.status).toBe(status);
    const { from, repeats, to } = AGENT_RULES[command.type];
    if (from.includes(status)) {
      const next = apply(agent, command);
      if (to !== null) expect(agentStateOf(next.status, false)).toBe(to);
      else expect(next.status).toBe(status);
    } else if (repeats.includes(status)) expect(decide(command, agent)).toEqual([]);
    else {
      const shown = agentStateOf(status, false) ?? 'none';
      expect(conflictOf(() => decide(command, agent))).toMatchObject({ from: shown, to: to ?? shown });
    }
  });

  // @shows agents-A1
  it('records the actor, the reason and the time of each change', () => {
    const agent = apply(agentIn('ready'), { ...COMMANDS.Pause, actor: 'key/k2', reason: 'lunch' });
    expect(agent).toMatchObject({ status: 'paused', actor: 'key/k2', reason: 'lunch', changedAt: NOW });
  });

  it(`stays in a declared state over ${HISTORIES} random histories of two actors`, () => {
    const random = seeded(13);
    let refused = 0;
    for (let history = 0; history < HISTORIES; history++) {
      const log = runHistory(random, () => void refused++);
      checkStatus(log);
      // A fold of the facts in any order, as a damaged log could have them, stays declared too.
      checkStatus([...log].sort(() => random() - 0.5));
    }
    expect(refused).toBeGreaterThan(0);
  });
});

const open = (limits = DEFAULT_TREE_LIMITS): AgentTree =>
  run(initialTree(), { type: 'Open', data: { rootId: 'root', limits }, now: NOW });
const run = (tree: AgentTree, command: AgentTreeCommand): AgentTree =>
  agentTreeDecider.decide(command, tree).reduce(agentTreeDecider.evolve, tree);
const admit = (
  agentId: string,
  parentId: string,
  whenFull: 'refuse' | 'queue' = 'refuse',
): AgentTreeCommand => ({
  type: 'Admit',
  data: { agentId, parentId, whenFull },
  now: NOW,
});
const leave = (...agentIds: string[]): AgentTreeCommand => ({ type: 'Leave', data: { agentIds }, now: NOW });
const codeAndLimit = (work: () => unknown): unknown => {
  try {
    work();
    return null;
  } catch (error) {
    return isAppError(error) ? `${error.code} ${String(error.data['limit'] ?? '')}`.trim() : error;
  }
};
const living = (tree: AgentTree): string[] =>
  [...tree.members.values()].filter(({ waitsFor }) => waitsFor === null).map(({ agentId }) => agentId);

const checkLimits = (tree: AgentTree): void => {
  const { limits } = tree;
  const alive = [...tree.members.values()].filter(({ waitsFor }) => waitsFor === null);
  const childrenOf = (name: string | null): number =>
    alive.filter(({ parentId }) => parentId === name).length;
  const isOver = alive.some(
    ({ agentId, depth }) => childrenOf(agentId) > limits.children || depth > limits.depth,
  );
  if (isOver || alive.length > limits.size) throw new Error('over a limit');
  const isFree = ({ parentId }: { parentId: string | null }): boolean =>
    alive.length < limits.size && childrenOf(parentId) < limits.children;
  if (treeQueue(tree).some(isFree)) throw new Error('a free place');
};

describe('a tree of agents', () => {
  it('refuses a child over each limit with the name of the limit', () => {
    const children = run(open({ depth: 3, children: 1, size: 9 }), admit('a', 'root'));
    expect(codeAndLimit(() => run(children, admit('b', 'root')))).toBe('AGENT.LIMIT_REACHED children');
    const size = run(open({ depth: 3, children: 9, size: 2 }), admit('a', 'root'));
    expect(codeAndLimit(() => run(size, admit('b', 'root')))).toBe('AGENT.LIMIT_REACHED size');
    const depth = run(open({ depth: 1, children: 9, size: 9 }), admit('a', 'root'));
    expect(codeAndLimit(() => run(depth, admit('b', 'a', 'queue')))).toBe('AGENT.LIMIT_REACHED depth');
  });

  it('refuses a child of an agent that left or waits', () => {
    const tree = run(
      run(open({ depth: 3, children: 1, size: 9 }), admit('a', 'root')),
      admit('b', 'root', 'queue'),
    );
    expect(codeAndLimit(() => run(tree, admit('c', 'b')))).toBe('AGENT.STATE_CONFLICT');
    expect(codeAndLimit(() => run(run(tree, leave('a')), admit('c', 'a')))).toBe('AGENT.STATE_CONFLICT');
  });

  it('admits waiting agents in the order of the queue when a place is free', () => {
    let tree = open({ depth: 3, children: 9, size: 2 });
    for (const name of ['a', 'b', 'c']) tree = run(tree, admit(name, 'root', 'queue'));
    expect(treeQueue(tree).map(({ agentId }) => agentId)).toEqual(['b', 'c']);
    tree = run(tree, leave('a'));
    expect(living(tree)).toEqual(['root', 'b']);
    expect(treeQueue(tree).map(({ agentId }) => agentId)).toEqual(['c']);
  });

  it('passes an agent that waits for children of another parent', () => {
    let tree = open({ depth: 3, children: 1, size: 3 });
    tree = run(run(tree, admit('a', 'root')), admit('b', 'root', 'queue'));
    tree = run(run(tree, admit('c', 'a')), admit('d', 'c', 'queue'));
    tree = run(tree, leave('c', 'd'));
    expect(living(tree)).toEqual(['root', 'a']);
    expect(treeQueue(tree).map(({ agentId }) => agentId)).toEqual(['b']);
  });

  it('lists an agent and its descendants with the ancestors first', () => {
    let tree = open();
    for (const [child, parent] of [
      ['a', 'root'],
      ['b', 'a'],
      ['c', 'root'],
      ['d', 'b'],
    ] as const)
      tree = run(tree, admit(child, parent));
    expect(subtreeOf(tree, 'a').map(({ agentId }) => agentId)).toEqual(['a', 'b', 'd']);
  });

  it('never exceeds a limit, nor leaves a free place unused, over 2,000 random histories', () => {
    const random = seeded(7);
    for (let history = 0; history < 2_000; history++) {
      const limits = { depth: 3, children: 1 + Math.floor(random() * 3), size: 2 + Math.floor(random() * 6) };
      let tree = open(limits);
      for (let step = 0; step < 30; step++) {
        const names = [...tree.members.keys()];
        const one = names[Math.floor(random() * names.length)] ?? 'root';
        const command =
          random() < 0.7
            ? admit(`a${step}`, one, random() < 0.5 ? 'queue' : 'refuse')
            : leave(
                ...subtreeOf(tree, one)
                  .map(({ agentId }) => agentId)
                  .filter((name) => name !== 'root'),
              );
        const events = allow(() => agentTreeDecider.decide(command, tree)) ?? [];
        tree = events.reduce(agentTreeDecider.evolve, tree);
        checkLimits(tree);
      }
    }
  });
});
