import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { AntiphonConfig } from '@antiphon/config';
import { createPool, inWorkspace } from '@antiphon/database';
import { createPostgresEventStore } from '@antiphon/event-store';
import { silentLogger } from '@antiphon/observability';
import { createTestDatabase } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';
import { listHostedTools } from '../calls/tool-source.js';
import { MAX_STORE_KEYS, MAX_VALUE_BYTES, PluginStore } from '../store/plugin-store.js';
import { MODULES } from '../testing/modules.fixture.spec.js';
import { startSandbox } from '../testing/sandbox.fixture.spec.js';
import type { TestSandbox } from '../testing/sandbox.fixture.spec.js';
import { PluginRegistry } from './plugin-registry.js';
import { ChangePlugins } from '../calls/plugins.handler.js';

jest.setTimeout(120_000);

const CONFIG = { plugins: [] } as unknown as AntiphonConfig;
const LIMITS = { timeoutMs: 600, memoryMb: 16, caller: 'key/a' };
const moduleOf = (name: string): string => Buffer.from(MODULES[name] ?? '').toString('base64');

let database: TestDatabase;
let boxes: { readonly box: TestSandbox; readonly plugins: ChangePlugins; close(): Promise<void> }[];
let pool: ReturnType<typeof createPool>;

/** Starts a sandbox process: cells, a registry and stores of its own on the database. */
const startProcess = async () => {
  const own = createPool({ url: database.urlFor('sandbox'), applicationName: 'spec', max: 3 });
  const store = createPostgresEventStore(own);
  const [ids, clock] = [{ next: () => randomUUID() }, { now: () => Date.now() }];
  const registry = new PluginRegistry({ pool: own, store, ids, clock });
  const stores = new PluginStore(own, silentLogger);
  const capabilities = ['store:notes'];
  const box = await startSandbox(['hello', 'notes'], { capabilities }, { registry, store: stores });
  const plugins = new ChangePlugins(box.sandbox, CONFIG, registry, silentLogger);
  const close = async () => {
    await box.close();
    await store.close();
    await own.end();
  };
  return { box, plugins, close };
};

beforeAll(async () => {
  database = await createTestDatabase();
  pool = createPool({ url: database.urlFor('sandbox'), applicationName: 'spec', max: 3 });
  boxes = [await startProcess(), await startProcess()];
});
afterAll(async () => {
  for (const one of boxes ?? []) await one.close();
  await pool?.end();
  await database?.drop();
});

const first = () => boxes[0]!;
const second = () => boxes[1]!;
const namesIn = async (workspace: string) =>
  (await listHostedTools(second().box.sandbox.sources, workspace)).map(({ name }) => name);
const count = async (table: string, workspace: string): Promise<number> => {
  const { rows } = await inWorkspace(pool, workspace).query<{ n: number }>(
    `select count(*)::int as n from ${table} where workspace = $1`,
    [workspace],
  );
  return rows[0]?.n ?? 0;
};
const add = (workspace: string, name: string, module: string, capabilities: string[] = []) =>
  first().plugins.add({ workspace, name, module: moduleOf(module), capabilities, ...LIMITS });

describe('a plug-in that a workspace adds', () => {
  it('is a tool of this workspace in each process, without a restart', async () => {
    const workspace = randomUUID();
    expect(await namesIn(workspace)).toEqual(['hello', 'notes']);
    expect(await add(workspace, 'greeter', 'says-key')).toMatchObject({ version: 1, origin: 'added' });
    expect(await namesIn(workspace)).toEqual(['hello', 'notes', 'greeter']);
    expect(await namesIn(randomUUID())).toEqual(['hello', 'notes']);
    const callId = randomUUID();
    expect(await second().box.call('greeter', {}, { workspace, callId })).toMatchObject({ content: callId });
    expect(await second().box.call('greeter', {}, { workspace: randomUUID() })).toMatchObject({
      code: 'TOOL.UNKNOWN',
    });
  });

  it('gets a new version by other bytes or grants, and none by the same', async () => {
    const workspace = randomUUID();
    await add(workspace, 'changing', 'loop');
    const inFlight = second().box.call('changing', {}, { workspace });
    expect(await add(workspace, 'changing', 'trap')).toMatchObject({ version: 2 });
    expect(await add(workspace, 'changing', 'trap')).toMatchObject({ version: 2 });
    expect(await add(workspace, 'changing', 'trap', ['log'])).toMatchObject({ version: 3 });
    const { versions } = await second().plugins.versions({ workspace, name: 'changing' });
    expect(versions.map(({ version, capabilities }) => [version, capabilities])).toEqual([
      [1, []],
      [2, []],
      [3, ['log']],
    ]);
    expect(await second().box.call('changing', {}, { workspace })).toMatchObject({ code: 'TOOL.TRAP' });
    // The call that was in progress ended with its own version.
    expect(await inFlight).toMatchObject({ code: 'TOOL.TIMEOUT' });
    expect(await count('plugin_modules', workspace)).toBe(1);
  });

  it('is refused if it is no module, asks for too much or has the name of another tool', async () => {
    const workspace = randomUUID();
    for (const [name, module, capabilities, code] of [
      ['script', 'not-wasm', [], 'PLUGIN.REJECTED'],
      ['startloop', 'start-loop', [], 'PLUGIN.REJECTED'],
      ['clock', 'import-clock', [], 'PLUGIN.REJECTED'],
      ['typo', 'hello', ['sekret:token'], 'PLUGIN.REJECTED'],
      ['address', 'hello', ['http:127.0.0.1'], 'PLUGIN.REJECTED'],
      ['hello', 'hello', [], 'PLUGIN.CONFIGURED'],
      ['write', 'hello', [], 'PLUGIN.NAME_TAKEN'],
    ] as const)
      await expect(add(workspace, name, module, [...capabilities])).rejects.toMatchObject({ code });
    expect(await count('plugin_modules', workspace)).toBe(0);
    expect(await count('events', workspace)).toBe(0);
  });

  it('is gone after its removal, with its module and values', async () => {
    const workspace = randomUUID();
    await add(workspace, 'mine', 'notes', ['store:notes']);
    expect(await second().box.call('mine', 'ska', { workspace })).toMatchObject({ content: '0' });
    expect(await count('plugin_values', workspace)).toBe(1);
    const { plugins } = first();
    expect(await plugins.remove({ workspace, name: 'mine', caller: 'key/a' })).toEqual({ removed: true });
    expect(await plugins.remove({ workspace, name: 'mine', caller: 'key/a' })).toEqual({ removed: false });
    expect(await second().box.call('mine', 'ga', { workspace })).toMatchObject({ code: 'TOOL.UNKNOWN' });
    expect([await count('plugin_values', workspace), await count('plugin_modules', workspace)]).toEqual([
      0, 0,
    ]);
    expect(await add(workspace, 'mine', 'notes', ['store:notes'])).toMatchObject({ version: 2 });
    expect(await second().box.call('mine', 'ga', { workspace })).toMatchObject({ content: 'none' });
  });

  it('can be called by a person, outside of a session', async () => {
    const call = (name: string) =>
      first().plugins.call({ workspace: randomUUID(), name, input: {}, caller: 'key/a' });
    expect(await call('hello')).toMatchObject({ content: 'hello', isError: false, code: null });
    await expect(call('nowhere')).rejects.toMatchObject({ code: 'PLUGIN.NOT_FOUND' });
  });
});

describe('a plug-in that a workspace denies', () => {
  it('is no tool there until it is allowed again, also one of the configuration', async () => {
    const workspace = randomUUID();
    const permit = (allowed: boolean) =>
      first().plugins.permit({ workspace, name: 'hello', allowed, caller: 'key/a' });
    expect(await permit(false)).toMatchObject({ name: 'hello', allowed: false });
    expect(await namesIn(workspace)).toEqual(['notes']);
    expect(await second().box.call('hello', {}, { workspace })).toMatchObject({ code: 'TOOL.DENIED' });
    expect(await second().box.call('hello', {}, { workspace: randomUUID() })).toMatchObject({
      content: 'hello',
    });
    expect(await permit(true)).toMatchObject({ allowed: true });
    expect(await namesIn(workspace)).toEqual(['hello', 'notes']);
    expect(await second().box.call('hello', {}, { workspace })).toMatchObject({ content: 'hello' });
    const types = await inWorkspace(pool, workspace).query<{ type: string }>(
      'select type from events order by position',
    );
    expect(types.rows.map(({ type }) => type)).toEqual(['PluginDenied', 'PluginAllowed']);
  });
});

describe('a store of a plug-in', () => {
  const use = async (workspace: string, input: string, more = {}) => {
    const reply = await second().box.call('notes', input, { workspace, ...more });
    return reply.outcome === 'completed' ? reply.content : `${reply.code} ${reply.message}`;
  };

  it('keeps values between calls, for each workspace apart', async () => {
    const [here, there] = [randomUUID(), randomUUID()];
    expect(await use(here, 'ga')).toBe('none');
    expect(await use(here, 'safirst')).toBe('0');
    expect(await use(here, 'sasecond')).toBe('0');
    expect(await use(here, 'sbother')).toBe('0');
    expect([await use(here, 'ga'), await use(there, 'ga')]).toEqual(['second', 'none']);
    expect(await use(here, 'l')).toBe('["a","b"]');
    expect([await use(here, 'da'), await use(here, 'da'), await use(here, 'ga')]).toEqual(['1', '0', 'none']);
  });

  it('is refused to a plug-in that was not granted it', async () =>
    expect(await use(randomUUID(), 'xa')).toMatch(/^TOOL\.DENIED .*"other" is not granted/));

  it('has quotas of keys and bytes', async () => {
    const workspace = randomUUID();
    const query = `insert into plugin_values (workspace, plugin, store, key, value)
      select $1, 'notes', 'notes', 'key ' || n, '\\x00' from generate_series(1, $2::int) n`;
    await inWorkspace(pool, workspace).query(query, [workspace, MAX_STORE_KEYS - 1]);
    expect(await use(workspace, 'sax')).toBe('0');
    expect(await use(workspace, 'sbx')).toBe('1');
    expect(await use(workspace, 'say')).toBe('0');
    expect(await use(workspace, `sa${'x'.repeat(MAX_VALUE_BYTES + 1)}`)).toBe('1');
    await inWorkspace(pool, workspace).query(
      `update plugin_values set value = decode(repeat('00', 4193), 'hex') where workspace = $1 and key <> 'a'`,
      [workspace],
    );
    expect(await use(workspace, `sa${'x'.repeat(9_000)}`)).toBe('1');
    expect(await use(workspace, 'ga')).toBe('y');
  });

  it('is changed only after the caller has permitted the call, which then may have acted', async () => {
    const workspace = randomUUID();
    const { permit } = second().box;
    const attemptId = () => ({ attemptId: randomUUID() });
    permit.asked = 0;
    expect(await use(workspace, 'ga', attemptId())).toBe('none');
    expect(permit.asked).toBe(0);
    expect(await use(workspace, 'sax', attemptId())).toBe('0');
    expect(permit.asked).toBe(1);
    permit.isGranted = false;
    expect(await use(workspace, 'say', attemptId())).toMatch(/^TOOL\.UNAVAILABLE/);
    permit.isGranted = true;
    expect(await use(workspace, 'ga')).toBe('x');
  });
});
