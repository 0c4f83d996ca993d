import { textOf } from '@antiphon/contracts/causes';
import type { Cause } from '@antiphon/contracts/causes';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { AgentConfig, AntiphonConfig } from '@antiphon/config';
import { spawnAgent } from '@antiphon/contracts/agent';
import type { AgentActor, AgentSpec } from '@antiphon/contracts/agent';
import { createTestDatabase } from '@antiphon/testing';
import { Messages } from '../messages/messages.handler.js';
import {
  WORKSPACE,
  newAddress,
  submitTo,
  testConfig,
  until,
} from '@antiphon/agent-features/testing/agent-world';
import type { TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { createTasksWorld } from '@antiphon/agent-features/testing/tasks-world';
import type { TasksProcess, TasksWorld } from '@antiphon/agent-features/testing/tasks-world';
import { asksFor, says } from '@antiphon/agent-features/testing/test-model';

jest.setTimeout(60_000);

const TALK = ['ask_agent', 'hand_over', 'send_message', 'delegate_task'];
const SECRET = `secret-${randomUUID()}`;

/** Agents of which `small` is limited, with what the configuration adds to it. */
const configOf = (small: Partial<AgentConfig> = {}): AntiphonConfig => {
  const base = testConfig();
  const [main] = base.agents;
  const agent = (id: string, more: Partial<AgentConfig>): AgentConfig =>
    ({ ...main, id, name: id, systemPrompt: `you are ${id}`, tools: [], ...more }) as AgentConfig;
  return {
    ...base,
    agents: [
      agent('small', { tools: TALK, readRoots: ['public'], ...small }),
      agent('main', { tools: ['read', ...TALK], capabilities: ['files'] }),
      agent('peer', { readRoots: ['public/docs'], writeRoots: ['public'] }),
      agent('shell', { tools: ['echo'], readRoots: ['public'], writeRoots: ['public'] }),
    ],
  };
};

let world: TasksWorld;
const process = (config: AntiphonConfig = configOf()): TestProcess => world.agents.process({ config });
beforeAll(async () => {
  world = await createTasksWorld(
    await createTestDatabase(),
    globalThis.process.env['ANTIPHON_TEST_NATS_URL'] ?? '',
  );
  const { files } = process().runtime.services;
  const { digest, size } = await files.putBytes(WORKSPACE, Buffer.from(SECRET));
  const { workspaceFiles } = process().runtime.services;
  const treeId = await workspaceFiles.treeIdOf(WORKSPACE);
  const request = { workspace: WORKSPACE, treeId, cause: { actor: 'local' } };
  await workspaceFiles.change(request, () => [{ op: 'write', path: 'private/secret.txt', digest, size }]);
});
afterAll(() => world?.close());

/** Runs one call of `small`. Returns its result, or its code and message. */
const callBy = async (own: TestProcess, name: string, input: object): Promise<string> => {
  const made = new Map<string, number>();
  world.agents.model.reply = async ({ system, messages }) => {
    const who = /you are (\w+)/.exec(system)?.[1] ?? '';
    made.set(who, (made.get(who) ?? 0) + 1);
    if (who === 'small' && made.get(who) === 1) return asksFor({ name, input: input as never });
    if (who === 'main' && made.get(who) === 1)
      return asksFor({ name: 'read', input: { path: 'private/secret.txt' } });
    return says(`${who} saw ${JSON.stringify(messages.at(-1))}`);
  };
  const { sessionId } = await submitTo(own, { address: newAddress('small') }, 'go');
  const events = await world.agents.ended(sessionId);
  const done = events.find(({ type }) => type === 'ToolCallCompleted' || type === 'ToolCallFailed');
  return String(
    done?.data['content'] ??
      `${String(done?.data['code'])}: ${textOf(done?.data['cause'] as unknown as Cause)}`,
  );
};
const question = 'what is in private/secret.txt?';

describe('an agent whose folders are limited', () => {
  it.each([
    ['ask_agent', { agent: 'main', question }],
    ['hand_over', { agent: 'main' }],
    ['send_message', { agent: 'main', text: question }],
    ['send_message', { everyone: true, text: question }],
    ['send_message', { topic: 'news', text: question }],
    // No wider folders, but a tool that it lacks.
    ['ask_agent', { agent: 'shell', question }],
  ] as const)('gets no content of others by %s %j', async (name, input) => {
    const result = await callBy(process(), name, input);
    expect(result).toMatch(/^AGENT.NOT_ALLOWED: .*`contacts` of \[\[agents\]\] "small"/);
    expect(result).not.toContain(SECRET);
  });

  it('asks itself and agents that may do nothing that it may not, and names an unknown one', async () => {
    expect(await callBy(process(), 'ask_agent', { agent: 'peer', question })).toContain('peer saw');
    expect(await callBy(process(), 'ask_agent', { agent: 'none', question })).toMatch(/^AGENT.NOT_FOUND/);
  });

  // @shows review2-12-whom-agents-reach
  it('asks, messages and hands over to agents that its contacts name, and to no other', async () => {
    const named = process(configOf({ contacts: ['main', '#news'] }));
    expect(await callBy(named, 'ask_agent', { agent: 'main', question })).toContain(SECRET);
    expect(await callBy(named, 'send_message', { agent: 'main', text: 'hi' })).toContain('messageId');
    expect(await callBy(named, 'send_message', { topic: 'news', text: 'hi' })).toContain('messageId');
    for (const input of [
      { agent: 'peer', text: 'hi' },
      { everyone: true, text: 'hi' },
      { topic: 'other', text: 'hi' },
    ])
      expect(await callBy(named, 'send_message', input)).toMatch(/^AGENT.NOT_ALLOWED/);
    const all = process(configOf({ contacts: ['*'] }));
    expect(await callBy(all, 'send_message', { everyone: true, text: 'hi' })).toContain('messageId');
  });

  it('is limited by its API key as by its tools', async () => {
    const messages = process().get(Messages);
    const send = (to: object) =>
      messages.send({
        workspace: WORKSPACE,
        message: { type: 'AgentSpoke', to: to as { agent: string }, content: { text: question } },
        actor: { caller: 'key/k', role: 'member', agentId: 'small' },
      });
    for (const to of [{ agent: 'main' }, { everyone: true }, { topic: 'everyone' }, { topic: 'news' }])
      await expect(send(to)).rejects.toMatchObject({
        code: 'AGENT.NOT_ALLOWED',
        data: { setting: 'contacts' },
      });
    await expect(send({ agent: 'peer' })).resolves.toMatchObject({ messageId: expect.any(String) });
  });
});

describe('a task that an agent delegates by capabilities', () => {
  const running: TasksProcess[] = [];
  afterAll(() => Promise.all(running.map((each) => each.stop())));

  it('waits for an agent that its delegator may turn to', async () => {
    world.agents.model.reply = async () => says('done');
    const own = world.process(configOf());
    running.push(own);
    const by = { agentId: 'small' };
    const refused = await world.send(own, { capabilities: ['files'] }, by);
    const allowed = await world.send(own, { capabilities: [] }, by);
    const wantedByClient = await world.send(own, { capabilities: ['files'] });
    expect((await world.ended(own, wantedByClient)).agentId).toBe('main');
    expect(['small', 'peer']).toContain((await world.ended(own, allowed)).agentId);
    expect((await world.get(own, refused)).state).toBe('queued');
    await expect(world.send(own, { agent: 'main' }, by)).rejects.toMatchObject({ code: 'AGENT.NOT_ALLOWED' });
    await own.stop();
    running.pop();
    const named = world.process(configOf({ contacts: ['main'] }));
    running.push(named);
    expect((await world.ended(named, refused)).agentId).toBe('main');
  });
});

describe('a model of a spawned agent', () => {
  const spawn = (config: AntiphonConfig, spec: Partial<AgentSpec>, actor: Partial<AgentActor> = {}) =>
    process(config).runtime.spawnAgent(
      spawnAgent.request.parse({
        workspace: WORKSPACE,
        spec: { name: 'Ann', ...spec },
        actor: { caller: 'key/k', role: 'member', agentId: null, ...actor },
      }),
    );

  it('is one of the configuration, one that models names, or the choice of an operator', async () => {
    const [agent] = testConfig().agents;
    const plain = configOf();
    const refused = { code: 'AGENT.NOT_ALLOWED', data: { setting: 'models', agent: 'small' } };
    for (const actor of [{}, { agentId: 'small' }, { role: 'admin' as const, agentId: 'small' }])
      await expect(spawn(plain, { model: 'dearest' }, actor)).rejects.toMatchObject(refused);
    await expect(spawn(plain, { model: agent?.model ?? '' })).resolves.toBeDefined();
    await expect(spawn(plain, { model: 'dearest' }, { role: 'operator' })).resolves.toBeDefined();
    const provider = agent?.provider ?? '';
    for (const models of [[`${provider}/dearest`], [`${provider}/*`], ['*']])
      await expect(spawn(configOf({ models }), { model: 'dearest' })).resolves.toBeDefined();
    await expect(spawn(configOf({ models: ['other/*'] }), { model: 'dearest' })).rejects.toMatchObject(
      refused,
    );
  });

  it('and its contacts limit the agents that it spawns', async () => {
    const { agent } = await spawn(configOf({ contacts: ['main', 'peer'] }), { contacts: ['peer'] });
    const actor = { agentId: agent.id };
    await until(async () => (await process().runtime.services.agents.load(WORKSPACE, agent.id)) !== null);
    const wider = spawn(configOf(), { contacts: ['main'] }, actor);
    await expect(wider).rejects.toMatchObject({ code: 'AGENT.NOT_ALLOWED' });
    await expect(spawn(configOf(), {}, actor)).resolves.toBeDefined();
  });
});
