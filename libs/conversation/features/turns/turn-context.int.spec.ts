import { createHash, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { decideFiles } from '@antiphon/files-domain';
import { estimatePrompt } from '@antiphon/conversation-domain';
import { isoTime } from '@antiphon/kernel';
import { systemClock } from '@antiphon/observability';
import { createTestDatabase } from '@antiphon/testing';
import { ChangeChat } from '../chats/change-chat.handler.js';
import { Chats } from '../chats/chats.handler.js';
import { fileTreeIdOf } from '@antiphon/agent-log/derived-ids';
import {
  WORKSPACE,
  createAgentWorld,
  newAddress,
  submitTo,
  testConfig,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { asksFor, promptHashOf, says } from '@antiphon/agent-features/testing/test-model';
import { rolePath } from './role-text.js';
import { ReadTurnContext } from './turn-context.handler.js';

jest.setTimeout(30_000);

const CONFIG = testConfig({ role: 'assistant' });
const MEMORY = { episodicWindow: 2, contextTokens: 800, semanticEnabled: true };
const FACT = {
  ...{ factId: randomUUID(), subject: 'user', predicate: 'name', object: 'Ada', confidence: 0.9 },
  ...{ learnedAt: '2026-11-22T10:00:00.000Z', supersededAt: null, sourceEventId: randomUUID() },
};

let world: AgentWorld;
let agent: TestProcess;
let contexts: ReadTurnContext;

beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  world.responders.assemble = async ({ atLeast }) => ({
    ...{ soul: { text: 'You are Ada.', tokens: 4 }, facts: [FACT], tokens: 60, version: atLeast, leftOut: 2 },
  });
  agent = world.process({ config: { ...CONFIG, memory: MEMORY } });
  contexts = agent.get(ReadTurnContext);
});
afterAll(() => world?.close());

const read = (sessionId: string, turnId: string, more: { attempt?: number; at?: number } = {}) =>
  contexts.handle({ workspace: WORKSPACE, sessionId, turnId, includesMemory: true, ...more });

const writeFile = async (path: string, text: string): Promise<string> => {
  const { files } = agent.runtime.services;
  const { digest, size } = await files.putBytes(WORKSPACE, Buffer.from(text));
  await files.commit(WORKSPACE, fileTreeIdOf(WORKSPACE), (tree) => ({
    events: decideFiles(tree, [{ op: 'write', path, digest, size }], {
      ...{ at: isoTime(systemClock), cause: { actor: 'key/ada' }, limits: CONFIG.files },
    }),
  }));
  return digest;
};

const startsOf = async (sessionId: string) =>
  (await world.events(sessionId)).filter(({ type }) => type === 'ModelCallStarted');

/** Sends messages one after another. Returns the session and the ids of the turns. */
const talk = async (...contents: string[]) => {
  const target = { address: newAddress() };
  const turns: string[] = [];
  let sessionId = '';
  for (const content of contents) {
    const submitted = await submitTo(agent, target, content);
    sessionId = submitted.sessionId;
    turns.push(submitted.turnId);
    await world.ended(sessionId, turns.length);
  }
  return { sessionId, turns };
};

describe('the context of a model call', () => {
  it('has the hash of the prompt that the model received, for each call of a turn', async () => {
    const from = world.model.requests.length;
    world.model.reply = async ({ messages }) =>
      messages.at(-1)?.role === 'tool'
        ? says('done')
        : asksFor({ name: 'echo', input: { a: 'b'.repeat(900) } });
    const { sessionId, turns } = await talk('first', 'second', 'third', 'fourth');
    const sent = world.model.requests.slice(from);
    const starts = await startsOf(sessionId);
    expect(starts).toHaveLength(8);
    for (const [index, { data, position }] of starts.entries()) {
      const turnId = String(data['turnId']);
      const view = await read(sessionId, turnId, { attempt: Number(data['attempt']) });
      const request = sent[index];
      expect([index, view.promptHash]).toEqual([index, request && promptHashOf(request)]);
      expect(view.tokens).toBe(request && estimatePrompt(request));
      expect(view.call).toMatchObject({ attempt: data['attempt'], position });
    }
    const last = await read(sessionId, turns[3] ?? '');
    expect(last.results.map(({ name }) => name)).toEqual(['echo']);
    expect(last.turns.map(({ turnId }) => turnId)).toEqual([turns[2], turns[1], turns[0]]);
    expect(last.turns.map(({ form, reason }) => [form, reason])).toEqual([
      ['without_tools', 'room'],
      ['without_tools', 'room'],
      ['left_out', 'window'],
    ]);
    expect(last.earlierTurns).toBe(3);
    expect(last.results[0]?.wholeTokens).toBeGreaterThan(300);
  });

  it('has the role file, the facts and the files that the turn had, after they have changed', async () => {
    world.model.reply = async () => says('ok');
    const chats = agent.get(Chats);
    const chat = await chats.create({ workspace: WORKSPACE, spec: { name: randomUUID() }, caller: 'ada' });
    const digest = await writeFile(rolePath('assistant'), 'Be brief.');
    await writeFile('tides.md', 'low tide at six');
    const change = { workspace: WORKSPACE, chatId: chat.id, sessionId: chat.sessionId, caller: 'ada' };
    await agent.get(ChangeChat).attach({ ...change, path: 'tides.md' });
    const { turnId, sessionId } = await submitTo(agent, { sessionId: chat.sessionId }, 'when?');
    await world.ended(sessionId);
    const request = world.model.requests.at(-1);
    await writeFile(rolePath('assistant'), 'Be loud.');
    await writeFile('tides.md', 'low tide at nine');
    await agent.get(ChangeChat).attach({ ...change, path: 'tides.md' });
    const view = await read(sessionId, turnId);
    expect(view.promptHash).toBe(request && promptHashOf(request));
    expect(view.instructions).toMatchObject({ source: 'role_file', path: rolePath('assistant'), digest });
    const attached = (await world.events(sessionId)).find(({ type }) => type === 'ChatFileAttached');
    const tides = createHash('sha256').update('low tide at six').digest('hex');
    const tide = { path: 'tides.md', digest: tides, isCut: false, position: attached?.position };
    expect(view.files).toEqual([expect.objectContaining(tide)]);
    const { factId: memoryId, sourceEventId: eventId, object } = FACT;
    const { memory, message, tools, identity } = view;
    expect(memory).toMatchObject({ facts: [{ memoryId, eventId, object }], leftOut: 2 });
    expect(memory?.position).toBe(message.position - 1);
    expect(world.responders.asked.assemble.at(-1)?.position).toBe(message.position - 1);
    expect(tools.map(({ name }) => name)).toEqual(['echo']);
    // The parts are the whole, except for the blank lines between them.
    const sizes = [memory, identity, message, view.instructions, ...view.files, ...view.turns, ...tools];
    const sum = sizes.reduce((total, part) => total + (part?.tokens ?? 0), 0);
    expect(Math.abs(view.tokens - sum)).toBeLessThan(60);
  });

  it('is as of a position, and hides facts from a reader without the right', async () => {
    world.model.reply = async () => says('ok');
    const { sessionId, turns } = await talk('one', 'two');
    const [first, second] = turns;
    const [start] = await startsOf(sessionId);
    const at = start?.position ?? 0;
    expect(await read(sessionId, first ?? '', { at })).toMatchObject({
      ...{ position: at, head: await world.store.headPosition(), call: { position: at } },
    });
    const early = read(sessionId, first ?? '', { at: at - 1 });
    await expect(early).rejects.toMatchObject({ code: 'TURN.NO_MODEL_CALL' });
    await expect(read(sessionId, second ?? '', { at })).rejects.toMatchObject({ code: 'TURN.NOT_FOUND' });
    await expect(read(randomUUID(), first ?? '')).rejects.toMatchObject({ code: 'SESSION.NOT_FOUND' });
    const request = { workspace: WORKSPACE, sessionId, turnId: second ?? '' };
    expect((await contexts.handle({ ...request, includesMemory: false })).memory).toBeNull();
    const other = { ...request, includesMemory: true, callerAgent: 'other' };
    expect((await contexts.handle(other)).memory).toBeNull();
  });

  it('has no hash once a message of its session is deleted', async () => {
    world.model.reply = async () => says('ok');
    const chats = agent.get(Chats);
    const chat = await chats.create({ workspace: WORKSPACE, spec: { name: randomUUID() }, caller: 'ada' });
    const { turnId, sessionId } = await submitTo(agent, { sessionId: chat.sessionId }, 'a secret');
    await world.ended(sessionId);
    const before = await read(sessionId, turnId);
    expect(before.promptHash).toMatch(/^[0-9a-f]{64}$/);
    const change = { workspace: WORKSPACE, chatId: chat.id, sessionId, caller: 'ada' };
    await agent.get(ChangeChat).change({ ...change, part: 'message', turnId, content: null });
    const after = await read(sessionId, turnId);
    expect(after).toEqual({ ...before, promptHash: null });
    expect(JSON.stringify(after)).not.toContain('a secret');
  });
});
