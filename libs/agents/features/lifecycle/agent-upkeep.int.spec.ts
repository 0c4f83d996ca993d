import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createTestDatabase } from '@antiphon/testing';
import { agentStream, spawnAgent } from '@antiphon/contracts/agent';
import type { AgentActor, AgentSpec, AgentView } from '@antiphon/contracts/agent';
import type { AgentConfig, AntiphonConfig } from '@antiphon/config';
import { setBudgetLimit } from '@antiphon/contracts/metering';
import { acrossWorkspaces } from '@antiphon/database';
import { armFailpoints } from '@antiphon/kernel';
import { agentUuidOf } from '@antiphon/agent-log/derived-ids';
import {
  createAgentWorld,
  newAddress,
  submitTo,
  testConfig,
  until,
  WORKSPACE,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { hangs, streams } from '@antiphon/agent-features/testing/test-model';
import { UNRESPONSIVE_MS } from './agent-upkeep.js';
import { ReadAgents } from './read-agents.handler.js';

jest.setTimeout(60_000);

let world: AgentWorld;
beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
});
afterEach(async () => {
  armFailpoints(null);
  world.model.reply = streams('hello');
  await world.stopAll();
});
afterAll(() => world.close());

const OWNER: AgentActor = { caller: 'key/k1', role: 'member', agentId: null };
const spawn = async ({ runtime }: TestProcess, spec: Partial<AgentSpec> = {}): Promise<AgentView> => {
  const request = { workspace: WORKSPACE, spec: { name: 'Ann', ...spec }, actor: OWNER };
  return (await runtime.spawnAgent(spawnAgent.request.parse(request))).agent;
};
const factsOf = async (agentId: string) => {
  const events = await world.store.readStream(WORKSPACE, agentStream(agentUuidOf(WORKSPACE, agentId)));
  return events.filter(({ type }) => !['AgentSpawned', 'AgentReady'].includes(type));
};
const typesOf = async (agentId: string): Promise<string[]> =>
  (await factsOf(agentId)).map(({ type }) => type);
const viewOf = ({ get }: TestProcess, agentId: string): Promise<AgentView> =>
  get(ReadAgents).readView(WORKSPACE, agentId);
/** Starts a process whose clock is ahead of the others by a time that a spec sets, ms. */
const processAhead = (): { process: TestProcess; clock: { aheadMs: number } } => {
  const clock = { aheadMs: 0 };
  const now = (): number => Date.now() + clock.aheadMs;
  return { process: world.process({ clock: { now }, times: { leaseMs: 60_000, sweepMs: 50 } }), clock };
};
/** Submits a turn whose model call does not end, and waits until lists show the work. */
const beginTurn = async (process: TestProcess, agentId: string): Promise<string> => {
  world.model.reply = hangs();
  const { sessionId } = await submitTo(process, { address: newAddress(agentId) });
  await until(async () => (await viewOf(process, agentId)).phase === 'thinking');
  return sessionId;
};

describe('a working agent whose process is gone', () => {
  it('is unresponsive after 60 seconds without a heartbeat, and responsive when another continues', async () => {
    const dead = world.process({ times: { leaseMs: 60_000, sweepMs: 50 } });
    const { process, clock } = processAhead();
    const agent = await spawn(dead);
    const sessionId = await beginTurn(dead, agent.id);
    await dead.runtime.checkHeartbeats();
    const { lastSeenAt } = await viewOf(process, agent.id);
    expect(lastSeenAt).not.toBeNull();
    dead.kill();
    clock.aheadMs = UNRESPONSIVE_MS - 5_000;
    await process.runtime.checkHeartbeats();
    expect(await typesOf(agent.id)).toEqual([]);
    clock.aheadMs = UNRESPONSIVE_MS + 5_000;
    await process.runtime.checkHeartbeats();
    await process.runtime.checkHeartbeats();
    const [unresponsive, ...more] = await factsOf(agent.id);
    expect(more).toEqual([]);
    expect(unresponsive).toMatchObject({
      type: 'AgentUnresponsive',
      data: { actor: 'runtime', cause: { kind: 'agent_silent', lastSeenAt: expect.stringMatching(/^20/) } },
    });
    // The row of the agent follows the log.
    await until(
      async () =>
        (await process.runtime.services.agentRows.find(WORKSPACE, [agent.id]))[0]?.record.isUnresponsive,
    );
    await world.handleExit(dead);
    await until(async () => {
      await process.runtime.takeOver();
      await process.runtime.checkHeartbeats();
      return (await typesOf(agent.id)).length === 2;
    });
    expect(await typesOf(agent.id)).toEqual(['AgentUnresponsive', 'AgentResponsive']);
    await process.runtime.cancelTurn({ workspace: WORKSPACE, sessionId, caller: 'spec' });
  });

  it('is responsive again when its turn has ended between two heartbeats', async () => {
    const dead = world.process({ times: { leaseMs: 60_000, sweepMs: 50 } });
    const { process, clock } = processAhead();
    const agent = await spawn(dead);
    const sessionId = await beginTurn(dead, agent.id);
    dead.kill();
    clock.aheadMs = UNRESPONSIVE_MS + 5_000;
    await process.runtime.checkHeartbeats();
    expect(await typesOf(agent.id)).toEqual(['AgentUnresponsive']);
    world.model.reply = streams('done');
    await world.handleExit(dead);
    await process.runtime.takeOver();
    await world.ended(sessionId);
    await until(async () => (await viewOf(process, agent.id)).state === 'idle');
    await until(async () => {
      await process.runtime.checkHeartbeats();
      return (await typesOf(agent.id)).length === 2;
    });
    expect(await typesOf(agent.id)).toEqual(['AgentUnresponsive', 'AgentResponsive']);
  });
});

describe('an agent that works again after an idle hour', () => {
  it('is not unresponsive before its process had 60 seconds for a heartbeat', async () => {
    const [worker, other] = [world.process(), world.process()];
    const agent = await spawn(worker);
    const sessionId = await beginTurn(worker, agent.id);
    await acrossWorkspaces(world.pool).query(
      `insert into agent_heartbeats (workspace, agent_id, owner, last_seen_at)
       values ($1, $2, 'spec', now() - interval '1 hour')
       on conflict (workspace, agent_id) do update set last_seen_at = excluded.last_seen_at`,
      [WORKSPACE, agent.id],
    );
    await other.runtime.checkHeartbeats();
    expect(await typesOf(agent.id)).toEqual([]);
    await worker.runtime.cancelTurn({ workspace: WORKSPACE, sessionId, caller: 'spec' });
  });
});

describe('an agent whose turn lost its process five times', () => {
  it('is in the state error with its reason, and takes turns again without an operator', async () => {
    // One process at a time: each sweeps often at its start, and could take the turn of another.
    const times = { leaseMs: 60_000, sweepMs: 60_000 };
    let process = world.process({ times });
    const agent = await spawn(process);
    world.model.reply = hangs();
    const { sessionId } = await submitTo(process, { address: newAddress(agent.id) });
    for (let lost = 1; lost <= 5; lost++) {
      await until(async () => {
        await process.runtime.takeOver();
        return (await world.types(sessionId)).filter((type) => type === 'ModelCallStarted').length === lost;
      });
      // Fewer lost processes are no error: the turn was taken over.
      await until(async () => (await viewOf(process, agent.id)).state === 'working');
      expect(await typesOf(agent.id)).toEqual([]);
      process.kill();
      await world.handleExit(process);
      if (lost < 5) process = world.process({ times });
    }
    const survivor = world.process({ times });
    world.model.reply = streams('hello');
    await until(async () => {
      await survivor.runtime.takeOver();
      return (await world.types(sessionId)).includes('TurnFailed');
    });
    const [failed] = await until(async () => {
      const facts = await factsOf(agent.id);
      return facts.length > 0 && facts;
    });
    expect(failed).toMatchObject({
      type: 'AgentFailed',
      data: { code: 'TURN.DRIVER_LOST', actor: 'runtime', cause: { kind: 'agent_processes_lost' } },
    });
    const view = await until(async () => {
      const read = await viewOf(survivor, agent.id);
      return read.state === 'error' && read;
    });
    expect(view.reason).toMatch(/lost again/);
    // A turn that is accepted in this state waits, and runs without an operator.
    const again = await submitTo(survivor, { address: newAddress(agent.id) });
    expect((await world.ended(again.sessionId, 1, 20_000)).at(-1)).toMatchObject({ type: 'TurnCompleted' });
    // It was the trial, whose end resumes the agent.
    await until(async () => (await typesOf(agent.id)).length === 3);
    expect(await factsOf(agent.id)).toMatchObject([
      { type: 'AgentFailed', data: { failures: 1 } },
      { type: 'AgentTrialStarted', data: { turnId: again.turnId } },
      { type: 'AgentResumed', data: { actor: 'runtime', cause: { kind: 'agent_turn_ended' } } },
    ]);
    await until(async () => (await viewOf(survivor, agent.id)).state === 'idle');
  });
});

describe('the end of a subtree of more than 31 agents', () => {
  it('is completed by another process when its process dies between two appends', async () => {
    const [dying, survivor] = [world.process(), world.process()];
    const limits = { children: 40, size: 60, depth: 3 };
    const root = await spawn(dying, { limits });
    const lead = await spawn(dying, { parent: root.id });
    const children: AgentView[] = [];
    for (let index = 0; index < 34; index++) children.push(await spawn(dying, { parent: lead.id }));
    armFailpoints(async (name) => {
      if (name !== 'agent.end.recorded') return;
      armFailpoints(null);
      dying.kill();
      throw new Error('killed');
    });
    const end = { workspace: WORKSPACE, agentId: lead.id, action: 'terminate', actor: OWNER } as const;
    await expect(dying.runtime.controlAgent(end)).rejects.toThrow('killed');
    const ended = async (): Promise<number> => {
      const facts = await Promise.all([lead, ...children].map(({ id }) => typesOf(id)));
      expect(facts.every((types) => types.length <= 1)).toBe(true);
      return facts.flat().filter((type) => type === 'AgentTerminated').length;
    };
    expect(await ended()).toBe(31);
    await until(async () => {
      await survivor.runtime.checkHeartbeats();
      return (await ended()) === 35;
    });
    expect(await typesOf(root.id)).toEqual([]);
    const tree = await survivor.runtime.services.trees.read(WORKSPACE, root.id);
    expect([...tree.members.keys()]).toEqual([root.id]);
  });
});

describe('an agent of the configuration', () => {
  const [main] = testConfig().agents as [AgentConfig];
  const configOf = (...agents: Partial<AgentConfig>[]): AntiphonConfig => ({
    ...testConfig(),
    agents: agents.map((agent) => ({ ...main, ...agent })),
  });
  const restart = async (config: AntiphonConfig): Promise<TestProcess> => {
    await world.stopAll();
    return world.process({ config });
  };
  const waitForFacts = async (agentId: string, ...types: string[]) => {
    await until(async () => (await typesOf(agentId)).length >= types.length);
    expect(await typesOf(agentId)).toEqual(types);
  };

  it('is redefined at a restart, paused when it is removed, and resumed when it is back', async () => {
    const [kept, moved] = [{ id: 'kept' }, { id: 'moved', model: 'm' }];
    let process = await restart(configOf(kept, moved));
    const first = process;
    await until(async () => (await first.runtime.services.agentRows.find(WORKSPACE, ['moved'])).length === 1);
    process = await restart(configOf(kept, { ...moved, model: 'm2' }));
    await waitForFacts('moved', 'AgentRedefined');
    expect((await factsOf('moved'))[0]?.data).toMatchObject({
      actor: 'configuration',
      definition: { model: 'm2' },
    });
    const restarted = process;
    await until(async () => (await viewOf(restarted, 'moved')).model === 'm2');
    await restart(configOf(kept));
    await waitForFacts('moved', 'AgentRedefined', 'AgentPaused');
    expect((await factsOf('moved'))[1]?.data).toMatchObject({ cause: { kind: 'agent_not_configured' } });
    process = await restart(configOf(kept, { ...moved, model: 'm2' }));
    await waitForFacts('moved', 'AgentRedefined', 'AgentPaused', 'AgentResumed');
    const { sessionId } = await submitTo(process, { address: newAddress('moved') });
    await world.ended(sessionId);
    expect(world.model.requests.at(-1)).toMatchObject({ model: 'm2' });
    // A restart without a change adds no fact.
    process = await restart(configOf(kept, { ...moved, model: 'm2' }));
    await process.runtime.services.configuredAgents.record(WORKSPACE);
    expect([await typesOf('kept'), (await typesOf('moved')).length]).toEqual([[], 3]);
  });

  it('has the budget of the configuration, which a restart changes and takes away', async () => {
    const limits: unknown[] = [];
    const served = world.nats.connection.subscribe(setBudgetLimit.subject, {
      callback: (_error, message) => {
        limits.push(message.json());
        message.respond(JSON.stringify({ ok: true, result: { changed: true } }));
      },
    });
    const budget = { tokens: 5_000, microUsd: null };
    for (const own of [budget, budget, { ...budget, microUsd: 10 }, null]) {
      const process = await restart(configOf({ id: 'rich', budget: own }));
      await process.runtime.services.configuredAgents.record(WORKSPACE);
      const facts = await process.runtime.services.agents.readFacts(WORKSPACE, 'rich');
      expect(facts.record.definition?.budget).toEqual(own);
    }
    served.unsubscribe();
    const of = { workspace: WORKSPACE, agentId: 'rich', actor: 'configuration' };
    expect(limits).toEqual([
      { ...of, limitTokens: 5_000, limitMicroUsd: null },
      { ...of, limitTokens: 5_000, limitMicroUsd: 10 },
      { ...of, limitTokens: null, limitMicroUsd: null },
    ]);
  });

  it('stays terminated, or paused by a person, at a restart', async () => {
    const config = configOf({ id: 'ended' }, { id: 'held' });
    let process = await restart(config);
    for (const [agentId, action] of [
      ['ended', 'terminate'],
      ['held', 'pause'],
    ] as const)
      await process.runtime.controlAgent({ workspace: WORKSPACE, agentId, action, actor: OWNER });
    process = await restart(configOf({ id: 'ended', model: 'm3' }, { id: 'held' }));
    await process.runtime.services.configuredAgents.record(WORKSPACE);
    expect(await typesOf('ended')).toEqual(['AgentTerminated']);
    expect(await typesOf('held')).toEqual(['AgentPaused']);
    await expect(submitTo(process, { address: newAddress('ended') })).rejects.toMatchObject({
      code: 'AGENT.TERMINATED',
    });
  });
});
