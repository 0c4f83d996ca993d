import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { z } from 'zod';
import type { SessionEvent } from '@antiphon/contracts/agent';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { assembleContext, queryMemory, recallMemory, turnsOfEntry } from '@antiphon/contracts/memory';
import { healthContract } from '@antiphon/contracts/messaging';
import { MemoryModule } from '@antiphon/memory-features';
import { connectNats, createRequestClient } from '@antiphon/messaging';
import type { NatsLink, RequestClient } from '@antiphon/messaging';
import { silentLogger } from '@antiphon/observability';
import { startService } from '@antiphon/service-host';
import type { RunningService } from '@antiphon/service-host';
import { startNatsServer, until } from '@antiphon/testing';
import type { TestNatsServer } from '@antiphon/testing';
import { WORKSPACE, openMemory } from './memory-fixtures.spec.js';
import type { MemoryFixture } from './memory-fixtures.spec.js';

const CONFIG = `[[agents]]\nid = "main"\nsoul_path = "SOUL.md"\n`;

let memory: MemoryFixture;
let server: TestNatsServer;
let folder: string;
let service: RunningService;
let agent: NatsLink;
let requests: RequestClient;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'antiphon-memory-'));
  writeFileSync(join(folder, 'antiphon.toml'), CONFIG);
  writeFileSync(join(folder, 'SOUL.md'), 'You are kind.');
  [memory, server] = await Promise.all([openMemory(), startNatsServer()]);
  const env = {
    ANTIPHON_SERVICE_DATABASE_URL: memory.memoryUrl,
    ANTIPHON_SERVICE_NATS_URL: server.url,
    ANTIPHON_HOME: folder,
  };
  service = await startService({
    service: 'memory',
    module: MemoryModule,
    env,
    cwd: folder,
    logger: silentLogger,
  });
  agent = await connectNats({ url: server.url, service: 'agent', logger: silentLogger });
  requests = createRequestClient(agent);
}, 30_000);

afterAll(async () => {
  await agent.drain();
  await service.stop();
  await server.remove();
  await memory.close();
  rmSync(folder, { recursive: true, force: true });
});

const begin = () => memory.begin(`main:cli:me:${randomUUID()}`);

describe('the memory service', () => {
  it('assembles a context over NATS', async () => {
    const talk = await begin();
    const version = await memory.say(talk, 'my name is Ada');
    const reply = await requests.request(assembleContext, {
      workspace: WORKSPACE,
      ...talk,
      agentId: 'main',
      atLeast: version,
      query: 'who am I?',
      budgetTokens: 1_000,
    });
    expect(reply).toMatchObject({
      version,
      soul: { text: 'You are kind.' },
      facts: [{ subject: 'user', predicate: 'name', object: 'Ada' }],
    });
  });

  it('projects the log to its rows', async () => {
    const talk = await begin();
    await memory.say(talk, 'my name is Ada');
    const projected = async () =>
      (await memory.rows()).sessions.some(
        ({ session_id: id, version }) => id === talk.sessionId && version === '3',
      );
    await until(projected);
    const { checks } = await requests.request(healthContract('memory'), {});
    expect(checks).toContainEqual(expect.objectContaining({ name: 'projection', healthy: true }));
  });

  it('replies with an error for an unknown session, agent and entry', async () => {
    const query = (target: { sessionId: string } | { agentId: string }, callerAgent?: string) =>
      requests.request(queryMemory, { workspace: WORKSPACE, target, callerAgent });
    await expect(query({ sessionId: randomUUID() })).rejects.toMatchObject({
      kind: 'not_found',
      code: 'MEMORY.SESSION_UNKNOWN',
    });
    await expect(query({ agentId: 'main' }, 'other')).rejects.toMatchObject({ code: 'AGENT.NOT_FOUND' });
    await expect(
      requests.request(recallMemory, { workspace: WORKSPACE, memoryId: randomUUID() }),
    ).rejects.toMatchObject({ kind: 'not_found', code: 'MEMORY.ENTRY_UNKNOWN' });
  });
});

describe('a query of memory', () => {
  const query = (request: Omit<z.input<typeof queryMemory.request>, 'workspace'>) =>
    requests.request(queryMemory, { workspace: WORKSPACE, ...request });
  const objects = ({ entries }: { entries: readonly { object: string }[] }) =>
    entries.map(({ object }) => object);

  it('lists what a session has learned, and ranks it by the words of the query', async () => {
    const talk = await begin();
    await memory.say(talk, 'my name is Ada');
    await memory.say(talk, 'I live in Lisbon');
    const target = { sessionId: talk.sessionId };
    expect(objects(await query({ target }))).toEqual(['Lisbon', 'Ada']);
    expect(objects(await query({ target, query: 'what is her name' }))).toEqual(['Ada']);
    expect(objects(await query({ target, query: 'elephants' }))).toEqual([]);
    expect(objects(await query({ target, limit: 1 }))).toEqual(['Lisbon']);
  });

  it('is as of a position, with entries that were replaced only later', async () => {
    const talk = await begin();
    const target = { sessionId: talk.sessionId };
    await memory.say(talk, 'I live in Lisbon');
    const { position: before } = await query({ target });
    await memory.say(talk, 'I live in Porto');
    const now = await query({ target, includeSuperseded: true });
    expect(now.entries).toMatchObject([
      { object: 'Porto', supersededAt: null },
      { object: 'Lisbon', supersededAt: now.entries[0]?.learnedAt },
    ]);
    const past = await query({ target, at: before });
    expect(past).toMatchObject({ position: before, entries: [{ object: 'Lisbon', supersededAt: null }] });
    expect(objects(await query({ target }))).toEqual(['Porto']);
    await expect(query({ target, at: now.head + 1_000_000 })).rejects.toMatchObject({
      code: 'LOG.POSITION_AHEAD',
    });
  });

  it('refuses the memory of a session before it began, also if its key has earlier facts', async () => {
    const first = await begin();
    await memory.say(first, 'I live in Lisbon');
    const { position: before } = await query({ target: { sessionId: first.sessionId } });
    const next = await memory.begin(first.sessionKey);
    await memory.say(next, 'I live in Porto');
    const target = { sessionId: next.sessionId };
    const now = await query({ target });
    expect(objects(now)).toEqual(['Porto']);
    expect(objects(await query({ target, at: now.position }))).toEqual(['Porto']);
    await expect(query({ target, at: before })).rejects.toMatchObject({
      kind: 'not_found',
      code: 'MEMORY.SESSION_UNKNOWN',
    });
    expect(objects(await query({ target: { sessionId: first.sessionId }, at: before }))).toEqual(['Lisbon']);
  });

  it('lists the entries of an agent over its sessions, but not to the key of another agent', async () => {
    const [first, second] = [await begin(), await begin()];
    await memory.say(first, 'my name is Grace');
    await memory.say(second, 'my name is Edsger');
    const all = objects(await query({ target: { agentId: 'main' }, callerAgent: 'main' }));
    expect(all).toEqual(expect.arrayContaining(['Grace', 'Edsger']));
    await expect(
      query({ target: { sessionId: first.sessionId }, callerAgent: 'other' }),
    ).rejects.toMatchObject({ code: 'MEMORY.SESSION_UNKNOWN' });
  });

  it('recalls an entry with the message that it was learned from', async () => {
    const talk = await begin();
    await memory.say(talk, 'my name is Ada');
    const { entries } = await query({ target: { sessionId: talk.sessionId }, detail: 'full' });
    const [entry] = entries;
    expect(entry?.source).toMatchObject({ sessionId: talk.sessionId, content: 'my name is Ada' });
    const memoryId = entry?.memoryId ?? '';
    const recall = (callerAgent?: string) =>
      requests.request(recallMemory, { workspace: WORKSPACE, memoryId, callerAgent });
    expect(await recall('main')).toEqual(entry);
    await expect(recall('other')).rejects.toMatchObject({ code: 'MEMORY.ENTRY_UNKNOWN' });
  });

  it('recalls an entry as of a position, and no text of a message that was deleted since', async () => {
    const talk = await begin();
    await memory.say(talk, 'I live in Lisbon');
    const target = { sessionId: talk.sessionId };
    const { entries, position } = await query({ target, detail: 'full' });
    const [{ memoryId, position: learnedAt, source }] = entries as [(typeof entries)[number]];
    await memory.say(talk, 'I live in Porto');
    await query({ target });
    const recall = (at?: number) => requests.request(recallMemory, { workspace: WORKSPACE, memoryId, at });
    expect((await recall()).supersededAt).not.toBeNull();
    expect(await recall(position)).toMatchObject({ supersededAt: null, atPosition: position });
    await expect(recall((learnedAt ?? 0) - 1)).rejects.toMatchObject({ code: 'MEMORY.ENTRY_UNKNOWN' });
    await expect(recall(1_000_000_000)).rejects.toMatchObject({ code: 'LOG.POSITION_AHEAD' });
    const deleted = {
      turnId: source?.turnId ?? '',
      part: 'message',
      actor: 'spec',
      at: new Date().toISOString(),
    };
    await memory.append(talk.sessionId, [
      { type: 'ChatMessageDeleted', schemaVersion: 1, data: deleted } as SessionEvent,
    ]);
    for (const at of [undefined, position]) expect((await recall(at)).source?.content).toBe('');
    const listed = await query({ target, detail: 'full', includeSuperseded: true, at: position });
    expect(listed.entries[0]?.source?.content).toBe('');
  });
});

describe('the turns that an entry was believed in', () => {
  /** Appends a turn with a model call. Returns the id of the turn. */
  const ask = async ({ sessionId }: { sessionId: string }, content: string): Promise<string> => {
    const turnId = randomUUID();
    const at = new Date().toISOString();
    const events = [
      { type: 'TurnRequested', schemaVersion: 1, data: { turnId, content, requestedAt: at } },
      { type: 'ModelCallStarted', schemaVersion: 1, data: { turnId, attempt: 1 } },
      { type: 'TurnCompleted', schemaVersion: 1, data: { turnId, completedAt: at } },
    ];
    await memory.append(sessionId, events as unknown as SessionEvent[]);
    return turnId;
  };
  const list = (
    memoryId: string,
    request: Omit<z.input<typeof turnsOfEntry.request>, 'workspace' | 'memoryId' | 'limit'> & {
      limit?: number;
    } = {},
  ) => requests.request(turnsOfEntry, { workspace: WORKSPACE, memoryId, limit: 20, ...request });

  it('begin after its message and end with the one that replaces it, over the sessions of its key', async () => {
    const talk = await begin();
    const other = await begin();
    await ask(talk, 'I live in Lisbon');
    await ask(other, 'where do I live?');
    const second = await ask(talk, 'where do I live?');
    const next = await memory.begin(talk.sessionKey, talk.sessionId);
    const third = await ask(next, 'and what is near?');
    await memory.say(next, 'a turn without a model call');
    const last = await ask(next, 'I live in Porto');
    await ask(next, 'where do I live?');
    const target = { sessionId: next.sessionId };
    const { entries } = await requests.request(queryMemory, {
      ...{ workspace: WORKSPACE, target, includeSuperseded: true },
    });
    const memoryId = entries.find(({ object }) => object === 'Lisbon')?.memoryId ?? '';
    const all = await list(memoryId);
    expect(all.turns.map(({ turnId }) => turnId)).toEqual([last, third, second]);
    expect(all.turns[1]).toMatchObject({
      ...{ sessionId: next.sessionId, sessionKey: talk.sessionKey, agentId: 'main', isDeleted: false },
    });
    const first = await list(memoryId, { limit: 1, callerAgent: 'main' });
    expect([first.turns.map(({ turnId }) => turnId), first.hasMore]).toEqual([[last], true]);
    const rest = await list(memoryId, { before: first.turns[0]?.position ?? 1 });
    expect([rest.turns.map(({ turnId }) => turnId), rest.hasMore]).toEqual([[third, second], false]);
    const past = await list(memoryId, { at: (all.turns[1]?.position ?? 0) + 1 });
    expect(past.turns.map(({ turnId }) => turnId)).toEqual([third, second]);
    await expect(list(memoryId, { callerAgent: 'other' })).rejects.toMatchObject({
      code: 'MEMORY.ENTRY_UNKNOWN',
    });
    await expect(list(randomUUID())).rejects.toMatchObject({ code: 'MEMORY.ENTRY_UNKNOWN' });
    await expect(list(memoryId, { at: 1 })).rejects.toMatchObject({ code: 'MEMORY.ENTRY_UNKNOWN' });
  });
});
