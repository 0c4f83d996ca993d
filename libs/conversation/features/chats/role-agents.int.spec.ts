import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { ChatView } from '@antiphon/contracts/agent';
import { createTestDatabase } from '@antiphon/testing';
import { fileTreeIdOf } from '@antiphon/agent-log/derived-ids';
import {
  WORKSPACE,
  createAgentWorld,
  submitTo,
  testConfig,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { says } from '@antiphon/agent-features/testing/test-model';
import { rolePath, splitRole } from '../turns/role-text.js';
import { Chats } from './chats.handler.js';
import { parseRoleSettings } from './role-settings.js';

jest.setTimeout(30_000);

let world: AgentWorld;
let agent: TestProcess;
let chats: Chats;
const caller = 'ada';

beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  agent = world.process({ config: testConfig({ tools: ['echo', 'calculator'] }) });
  chats = agent.get(Chats);
  world.model.reply = async () => says('an answer');
});
afterAll(() => world?.close());

const write = async (role: string, text: string): Promise<string> => {
  const { files, workspaceFiles } = agent.runtime.services;
  const { digest, size } = await files.putBytes(WORKSPACE, Buffer.from(text));
  const path = rolePath(role);
  const cause = { actor: caller };
  const request = { workspace: WORKSPACE, treeId: fileTreeIdOf(WORKSPACE), cause };
  await workspaceFiles.change(request, () => [{ op: 'write', path, digest, size }]);
  return digest;
};
const create = (role: string, callerAgent?: string): Promise<ChatView> =>
  chats.create({ workspace: WORKSPACE, spec: { role }, caller, callerAgent });
const definitionOf = async (id: string) =>
  (await agent.runtime.services.agents.readFacts(WORKSPACE, id)).record.definition;

describe('a chat with a role that only a file defines', () => {
  it('has the default agent as its base and the text of the file as its prompt, at the version of each turn', async () => {
    const first = await write('poet', 'Rhyme.');
    const chat = await create('poet');
    expect(chat).toMatchObject({ role: 'poet', agentId: 'poet' });
    await submitTo(agent, { sessionId: chat.sessionId });
    await world.ended(chat.sessionId);
    const second = await write('poet', 'Rhyme well.');
    await submitTo(agent, { sessionId: chat.sessionId });
    await world.ended(chat.sessionId, 2);
    expect(world.model.requests.map(({ system }) => system)).toEqual(['Rhyme.', 'Rhyme well.']);
    const turns = (await world.events(chat.sessionId)).filter(({ type }) => type === 'TurnRequested');
    const path = rolePath('poet');
    expect(turns.map(({ data }) => data['role'])).toEqual(
      [first, second].map((digest) => ({ path, digest })),
    );
    expect(await definitionOf('poet')).toMatchObject({ base: 'main', tools: ['echo', 'calculator'] });
  });

  it('takes name, model, thinking and tools from the front matter, which no prompt has, and follows its changes', async () => {
    await write(
      'critic',
      '---\nname: The Critic\nmodel: small\nthinking: high\ntools: [echo]\n---\n\nBe strict.',
    );
    const chat = await create('critic');
    expect(await definitionOf('critic')).toMatchObject({
      ...{ name: 'The Critic', role: 'critic', model: 'small', tools: ['echo'], base: 'main' },
    });
    await submitTo(agent, { sessionId: chat.sessionId });
    await world.ended(chat.sessionId);
    expect(world.model.requests.at(-1)).toMatchObject({
      ...{ system: 'Be strict.', model: 'small', thinking: 'high', maxOutputTokens: 1_000 + 16_384 },
    });
    await write('critic', '---\nmodel: large\nthinking: 2048\n---\nBe strict.');
    const again = await create('critic');
    expect(await definitionOf('critic')).toMatchObject({ model: 'large', tools: ['echo'] });
    await submitTo(agent, { sessionId: again.sessionId });
    await world.ended(again.sessionId);
    expect(world.model.requests.at(-1)).toMatchObject({ model: 'large', thinking: 2_048 });
  });

  it.each([
    ['tools: [search]', 'AGENT.NOT_ALLOWED', /no tool "search"/],
    ['provider: none', 'PROVIDER.NOT_FOUND', /"none"/],
    ['colour: red', 'CHAT.ROLE_INVALID', /system\/agents\/bad\.md.*colour/],
    ['model: [', 'CHAT.ROLE_INVALID', /front matter/],
  ])('is refused with %s, and no agent is made', async (line, code, message) => {
    await write('bad', `---\n${line}\n---\nNo.`);
    await expect(create('bad')).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
    expect(await definitionOf('bad')).toBeNull();
  });

  it('is refused where neither an agent nor a file has the role, and to the key of an agent', async () => {
    for (const role of ['nothing', '../secret', 'not a role'])
      await expect(create(role)).rejects.toMatchObject({
        ...{ code: 'CHAT.ROLE_UNKNOWN', message: expect.stringContaining(`system/agents/${role}.md`) },
      });
    await write('spy', 'Watch.');
    await expect(create('spy', 'other')).rejects.toMatchObject({ code: 'AGENT.NOT_FOUND' });
  });

  it('is made once by requests at the same time', async () => {
    await write('twin', 'Repeat.');
    const made = await Promise.all([create('twin'), create('twin'), create('twin')]);
    expect(made.map(({ agentId }) => agentId)).toEqual(['twin', 'twin', 'twin']);
  });
});

describe('the front matter of a role', () => {
  it.each([
    ['no front matter', 'Be kind.', null, 'Be kind.'],
    ['a rule in the text', 'Be kind.\n---\nAlways.', null, 'Be kind.\n---\nAlways.'],
    ['no end', '---\nmodel: x\nBe kind.', null, '---\nmodel: x\nBe kind.'],
    ['an empty one', '---\n---\nBe kind.', '', 'Be kind.'],
    ['Windows line ends', '---\r\nmodel: x\r\n---\r\nBe kind.', 'model: x\r\n', 'Be kind.'],
  ])('is split from the prompt of a text with %s', (_, text, frontMatter, prompt) => {
    expect(splitRole(text)).toEqual({ frontMatter, prompt });
  });

  it('expands no aliases', () => {
    expect(() => parseRoleSettings('r', 'name: &a x\nmodel: *a')).toThrow(/cannot be used/);
  });
});
