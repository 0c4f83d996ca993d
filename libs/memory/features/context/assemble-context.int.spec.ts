import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { assembleContext as contract } from '@antiphon/contracts/memory';
import { AssembleContext, openIdentityStore } from '@antiphon/memory-features';
import { createLogger } from '@antiphon/observability';
import { WORKSPACE, openMemory } from '../memory-fixtures.spec.js';
import type { Conversation, MemoryFixture } from '../memory-fixtures.spec.js';

const config: ConstructorParameters<typeof AssembleContext>[2] = {
  memory: { episodicWindow: 5, contextTokens: 4_000, semanticEnabled: true },
  features: { agentRuntimeV1: true, memoryV1: true, workersV1: true },
};

let memory: MemoryFixture;
let folder: string;
const lines: string[] = [];
const logger = createLogger({ service: 'memory', sink: { write: (line: string) => void lines.push(line) } });

beforeAll(async () => {
  memory = await openMemory();
  folder = mkdtempSync(join(tmpdir(), 'antiphon-souls-'));
  writeFileSync(join(folder, 'SOUL.md'), '# Soul\r\n\r\nYou are kind.\n');
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await memory.close();
});

const agents = () => [
  { id: 'main', name: 'Main', identityDir: null, soulPath: join(folder, 'SOUL.md') },
  { id: 'lost', name: 'Lost', identityDir: null, soulPath: join(folder, 'NO.md') },
  { id: 'odd', name: 'Odd', identityDir: null, soulPath: folder },
  { id: 'plain', name: 'Plain', identityDir: null, soulPath: null },
];
const open = async (settings = config) => {
  const store = await openIdentityStore(agents(), logger);
  const handler = new AssembleContext(memory.recallFacts, store, settings, memory.pool);
  return (asked: Parameters<AssembleContext['handle']>[0]) => handler.handle(asked);
};
const request = (
  { sessionId, sessionKey }: Conversation,
  atLeast: number,
  query: string,
  agentId = 'main',
) => ({
  workspace: WORKSPACE,
  sessionId,
  sessionKey,
  agentId,
  atLeast,
  query,
  budgetTokens: 4_000,
});
const begin = () => memory.begin(`main:cli:me:${randomUUID()}`);

describe('a context after fifty turns', () => {
  it('has the fact of turn 5 within its budget, with and without the projection', async () => {
    const assemble = await open();
    const talk = await begin();
    let version = 0;
    for (let turn = 1; turn <= 50; turn++)
      version = await memory.say(
        talk,
        turn === 5
          ? 'By the way, my favorite color is teal.'
          : `turn ${turn}: ${'tell me more. '.repeat(40)}`,
      );
    const question = request(talk, version, 'what is my favourite colour?');
    const lagging = contract.reply.parse(await assemble(question));
    await memory.project();
    const upToDate = contract.reply.parse(await assemble(question));
    expect(upToDate).toEqual(lagging);
    expect(upToDate).toMatchObject({ version, soul: { text: '# Soul\n\nYou are kind.' } });
    expect(upToDate.facts).toEqual([
      expect.objectContaining({ predicate: 'favorite color', object: 'teal' }),
    ]);
    expect(upToDate.tokens).toBeLessThan(200);
  });

  // @shows U52
  it('stays within its budget with many facts and has the relevant ones', async () => {
    const assemble = await open();
    const talk = await begin();
    for (let n = 0; n < 120; n++)
      await memory.say(talk, `my item${n} is number ${n} ${'of a very long list '.repeat(4)}`);
    const version = await memory.say(talk, 'my favorite color is teal');
    for (let n = 0; n < 20; n++) await memory.say(talk, `my thing${n} is here`);
    await memory.project();
    const budgetTokens = 500;
    const reply = await assemble({ ...request(talk, version, 'my favorite color?'), budgetTokens });
    expect(reply.tokens).toBeLessThanOrEqual(budgetTokens);
    expect(reply.facts[0]).toMatchObject({ object: 'teal' });
  });
});

describe('a context as of a position', () => {
  it('has the facts that were believed there, and counts those that do not fit', async () => {
    const assemble = await open();
    const talk = await begin();
    await memory.say(talk, 'my favorite color is teal. I live in Oslo');
    const position = await memory.store.headPosition();
    const version = await memory.say(talk, 'my favorite color is red');
    await memory.project();
    const question = request(talk, version, 'my favorite color?');
    const objects = async (more: object) =>
      (await assemble({ ...question, ...more })).facts.map(({ object }) => object);
    expect(await objects({})).toEqual(['red', 'Oslo']);
    expect(await objects({ position })).toEqual(['teal', 'Oslo']);
    expect(await objects({ position: 0 })).toEqual([]);
    const soul = (await assemble(question)).soul?.tokens ?? 0;
    const tight = await assemble({ ...question, position, budgetTokens: soul + 60 });
    expect(tight).toMatchObject({ facts: [{ object: 'teal' }], leftOut: 1 });
  });
});

describe('a soul', () => {
  it('is the name alone, with a warning, when its document is missing or unusable', async () => {
    const assemble = await open();
    const talk = await begin();
    for (const [agent, text] of [
      ['lost', 'You are Lost.'],
      ['odd', 'You are Odd.'],
    ])
      expect(await assemble(request(talk, 1, 'x', agent))).toMatchObject({ soul: { text } });
    for (const agent of ['plain', 'unknown'])
      expect(await assemble(request(talk, 1, 'x', agent))).toMatchObject({ soul: null });
    expect(lines.some((line) => line.includes('NO.md') && line.includes('do not exist'))).toBe(true);
    expect(lines.some((line) => line.includes('not a regular file'))).toBe(true);
  });
});

describe('switches', () => {
  it('return the soul alone for semantic_enabled = false', async () => {
    const talk = await begin();
    const version = await memory.say(talk, 'my name is Ada');
    const off = { ...config, memory: { ...config.memory, semanticEnabled: false } };
    const reply = await (await open(off))(request(talk, version, 'x'));
    expect(reply).toMatchObject({ facts: [], version, soul: { text: expect.stringContaining('kind') } });
  });

  it('return an empty context for memory_v1 = false', async () => {
    const talk = await begin();
    const off = { ...config, features: { ...config.features, memoryV1: false } };
    expect(await (await open(off))(request(talk, 1, 'x'))).toEqual({
      soul: null,
      facts: [],
      tokens: 0,
      version: 1,
    });
  });
});
