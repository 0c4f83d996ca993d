import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createTestDatabase } from '@antiphon/testing';
import { agentStream, spawnAgent } from '@antiphon/contracts/agent';
import type { AgentActor, AgentView } from '@antiphon/contracts/agent';
import { agentUuidOf } from '@antiphon/agent-log/derived-ids';
import {
  createAgentWorld,
  newAddress,
  submitTo,
  until,
  WORKSPACE,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { hangs, streams } from '@antiphon/agent-features/testing/test-model';
import { TRIAL_MS } from './agent-errors.js';
import { FailedAgentRows } from './failed-agent-rows.js';
import { FailedAgents } from './failed-agents.js';
import { AgentRows } from './agent-rows.js';
import { AgentUpkeep } from './agent-upkeep.js';
import { ReadAgents } from './read-agents.handler.js';

jest.setTimeout(60_000);

const OWNER: AgentActor = { caller: 'key/k1', role: 'member', agentId: null };
const LOST = 'TURN.DRIVER_LOST';
/** Time of which a held agent is certainly due, ms. */
const DAY_MS = 86_400_000;

let world: AgentWorld;
let process: TestProcess;
const clock = { aheadMs: 0, now: () => Date.now() + clock.aheadMs };

beforeAll(async () => {
  world = await createAgentWorld(
    await createTestDatabase(),
    globalThis.process.env['ANTIPHON_TEST_NATS_URL'] ?? '',
  );
  process = world.process({ clock, times: { leaseMs: 60_000, sweepMs: 50 } });
});
afterEach(() => {
  clock.aheadMs = 0;
  world.model.reply = streams('hello');
});
afterAll(() => world.close());

const errors = () => process.get(AgentUpkeep).errors;

interface FailedTurn {
  readonly sessionId: string;
  readonly turnId: string;
}
const LOST_TURN: FailedTurn = {
  sessionId: '00000000-0000-4000-8000-000000000001',
  turnId: '00000000-0000-4000-8000-000000000002',
};

/** Spawns an agent, and puts it into the state `error`. */
const spawnFailed = async () => {
  const request = { workspace: WORKSPACE, spec: { name: 'Ann' }, actor: OWNER };
  const { id: agentId } = (await process.runtime.spawnAgent(spawnAgent.request.parse(request))).agent;
  const stream = agentStream(agentUuidOf(WORKSPACE, agentId));
  const agent = {
    agentId,
    view: (): Promise<AgentView> => process.get(ReadAgents).readView(WORKSPACE, agentId),
    types: async (): Promise<string[]> =>
      (await world.store.readStream(WORKSPACE, stream)).slice(2).map(({ type }) => type),
    fail: (turn: FailedTurn) => errors().fail({ workspace: WORKSPACE, agentId, ...turn }, LOST),
    send: () => submitTo(process, { address: newAddress(agentId) }),
  };
  await agent.fail(LOST_TURN);
  // The rows, which the retries read, follow the log.
  await until(async () => {
    const [row] = await process.get(AgentRows).find(WORKSPACE, [agentId]);
    return row?.record.status === 'error';
  });
  return agent;
};
const blockedOf = async (sessionId: string, count = 1) =>
  until(async () => {
    const found = (await world.events(sessionId)).filter(({ type }) => type === 'TurnBlocked');
    return found.length >= count && found.map(({ data }) => data);
  });

describe('an agent in error', () => {
  it('has its code, its failures and the time of the next try in its view', async () => {
    const agent = await spawnFailed();
    const { error, reason, state } = await agent.view();
    expect(state).toBe('error');
    expect(reason).toMatch(/lost again and again/);
    expect(error).toMatchObject({ code: LOST, failures: 1, trialTurnId: null });
    expect(Date.parse(error?.retryAt ?? '') - Date.now()).toBeLessThanOrEqual(5_000);
  });

  it('tells the client of each waiting turn why it waits and until when', async () => {
    const agent = await spawnFailed();
    const { error } = await agent.view();
    const { sessionId } = await agent.send();
    const [first] = await blockedOf(sessionId);
    expect(first).toMatchObject({
      ...{ code: 'AGENT.ERROR', until: error?.retryAt },
      cause: { kind: 'agent_in_error', agentId: agent.agentId, code: LOST, failures: 1 },
    });
    // A turn behind it in the same session waits for the same reason.
    const second = await submitTo(process, { sessionId });
    const blocked = await blockedOf(sessionId, 2);
    expect(blocked.at(-1)).toMatchObject({ turnId: second.turnId, code: 'AGENT.ERROR' });
  });

  it('is resumed by a trial that ends, and then takes the others', async () => {
    const agent = await spawnFailed();
    world.model.reply = hangs();
    const turns = [await agent.send(), await agent.send()];
    for (const { sessionId } of turns) await blockedOf(sessionId);
    clock.aheadMs = 6_000;
    await errors().retry();
    await until(async () => (await agent.types()).includes('AgentTrialStarted'));
    const calls = async () =>
      (await Promise.all(turns.map(({ sessionId }) => world.types(sessionId))))
        .flat()
        .filter((type) => type === 'ModelCallStarted').length;
    await until(async () => (await calls()) === 1);
    const tried = (await agent.view()).error?.trialTurnId;
    expect(turns.map(({ turnId }) => turnId)).toContain(tried);
    // A second round tries no other turn.
    await errors().retry();
    expect(await calls()).toBe(1);
    world.model.reply = streams('hello');
    const { sessionId = '' } = turns.find(({ turnId }) => turnId === tried) ?? {};
    await process.runtime.cancelTurn({ workspace: WORKSPACE, sessionId, caller: 'spec' });
    for (const turn of turns) await world.ended(turn.sessionId);
    expect(await agent.types()).toEqual(['AgentFailed', 'AgentTrialStarted', 'AgentResumed']);
    expect((await agent.view()).error).toBeUndefined();
  });

  it('is held for twice as long after a trial that fails, and its clients see the new time', async () => {
    const agent = await spawnFailed();
    world.model.reply = hangs();
    const turns = [await agent.send(), await agent.send()];
    for (const { sessionId } of turns) await blockedOf(sessionId);
    clock.aheadMs = 6_000;
    await errors().retry();
    const tried = await until(async () => (await agent.view()).error?.trialTurnId);
    const [trial, other] = turns[0]?.turnId === tried ? turns : [...turns].reverse();
    await agent.fail(trial as { sessionId: string; turnId: string });
    const { error } = await agent.view();
    expect(error).toMatchObject({ failures: 2, trialTurnId: null });
    const heldMs = Date.parse(error?.retryAt ?? '') - clock.now();
    expect(heldMs).toBeGreaterThan(5_000);
    expect(heldMs).toBeLessThanOrEqual(10_000);
    expect((await blockedOf(other?.sessionId ?? '', 2)).at(-1)).toMatchObject({ until: error?.retryAt });
    for (const { sessionId } of turns)
      await process.runtime.cancelTurn({ workspace: WORKSPACE, sessionId, caller: 'spec' });
    for (const { sessionId } of turns) await world.ended(sessionId);
  });

  it('ends its error by itself when no turn waits', async () => {
    const agent = await spawnFailed();
    await errors().retry();
    expect(await agent.types()).toEqual(['AgentFailed']);
    clock.aheadMs = 6_000;
    await until(async () => {
      await errors().retry();
      return (await agent.types()).length === 2;
    });
    expect(await agent.types()).toEqual(['AgentFailed', 'AgentResumed']);
  });

  it('ends its error when its trial has not failed after two minutes', async () => {
    const agent = await spawnFailed();
    world.model.reply = hangs();
    const { sessionId } = await agent.send();
    await blockedOf(sessionId);
    clock.aheadMs = 6_000;
    await errors().retry();
    await until(async () => (await agent.view()).error?.trialTurnId);
    clock.aheadMs += TRIAL_MS;
    await until(async () => {
      await errors().retry();
      return (await agent.view()).error === undefined;
    });
    expect(await agent.types()).toEqual(['AgentFailed', 'AgentTrialStarted', 'AgentResumed']);
    await process.runtime.cancelTurn({ workspace: WORKSPACE, sessionId, caller: 'spec' });
  });

  it('stays paused for a person who paused it', async () => {
    const agent = await spawnFailed();
    const control = { workspace: WORKSPACE, agentId: agent.agentId, actor: OWNER } as const;
    await process.runtime.controlAgent({ ...control, action: 'resume' });
    await process.runtime.controlAgent({ ...control, action: 'pause', reason: 'lunch' });
    const { sessionId } = await agent.send();
    expect((await blockedOf(sessionId))[0]).toMatchObject({
      ...{
        code: 'AGENT.PAUSED',
        until: null,
        cause: { kind: 'agent_held', agentId: agent.agentId, reason: 'lunch' },
      },
    });
    await agent.fail({ ...LOST_TURN, sessionId });
    clock.aheadMs = DAY_MS;
    await errors().retry();
    expect((await agent.view()).state).toBe('paused');
  });

  it('is a warning in the health of its service', async () => {
    await spawnFailed();
    const warnings = new Map<string, () => Promise<string | null>>();
    const failed = new FailedAgents(
      { addWarning: (name, warn) => void warnings.set(name, warn) },
      process.get(FailedAgentRows),
    );
    failed.onApplicationBootstrap();
    expect(await warnings.get('agents')?.()).toMatch(
      /^agents in the state error: [1-9]\d*; turns that wait for them: \d+$/,
    );
    failed.onModuleDestroy();
  });
});
