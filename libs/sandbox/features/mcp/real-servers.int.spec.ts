import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { until } from '@antiphon/testing';
import { program, startMcpWorlds } from './testing/mcp-world.fixture.spec.js';
import type { McpWorld, McpWorlds } from './testing/mcp-world.fixture.spec.js';

jest.setTimeout(60_000);

const require = createRequire(import.meta.url);
const serverOf = (name: string): string =>
  join(dirname(require.resolve(`@modelcontextprotocol/server-${name}/package.json`)), 'dist', 'index.js');
const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

describe('the servers of the MCP project, over standard input and output', () => {
  let worlds: McpWorlds;
  let world: McpWorld;
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'antiphon-mcp-'));
    await writeFile(join(folder, 'note.txt'), 'the answer is 42');
    worlds = await startMcpWorlds();
    world = worlds.open(
      [
        program('everything', [serverOf('everything'), 'stdio'], { env: ['SHOWN'], timeoutMs: 20_000 }),
        program('files', [serverOf('filesystem'), folder], { trustHints: true }),
        program('memory', [serverOf('memory')], { env: ['MEMORY_FILE_PATH'] }),
      ],
      { environment: { SHOWN: 'yes', HIDDEN: 'no', MEMORY_FILE_PATH: join(folder, 'memory.jsonl') } },
    );
  });
  afterAll(async () => {
    await worlds.close();
    await rm(folder, { recursive: true });
  });

  it('are listed with names of their own, pinned as facts, and not idempotent unless they are trusted', async () => {
    // The first list waits a short time for servers that start.
    await until(async () => {
      const names = (await world.tools.list('default')).map(({ name }) => name.split('__')[1]);
      return new Set(names).size === 3;
    });
    const tools = await world.tools.list('default');
    const find = (name: string) => tools.find((tool) => tool.name === name);
    expect(find('mcp__everything__echo')).toMatchObject({ source: 'mcp', idempotent: false });
    expect(find('mcp__files__read_text_file')).toMatchObject({ idempotent: true, grants: ['mcp:files'] });
    expect(find('mcp__memory__read_graph')).toMatchObject({ idempotent: false });
    expect(find('mcp__everything__read_resource')).toBeDefined();
    expect(find('mcp__files__read_resource')).toBeUndefined();
    const types = (await world.events()).map(({ type }) => type);
    expect(types).toEqual(['McpToolsPinned', 'McpToolsPinned', 'McpToolsPinned']);
    expect(await world.tools.list('other')).toEqual([]);
  });

  it('run a tool of each after its permission', async () => {
    const before = world.asked.count;
    expect(await world.call('mcp__everything__get-sum', { a: 2, b: 40 })).toMatchObject({
      ...{ outcome: 'completed', isError: false, content: expect.stringContaining('42') },
    });
    const path = join(folder, 'note.txt');
    expect(await world.call('mcp__files__read_text_file', { path })).toMatchObject({
      content: expect.stringContaining('the answer is 42'),
    });
    const entities = [{ name: 'Ada', entityType: 'person', observations: ['counts'] }];
    await world.call('mcp__memory__create_entities', { entities });
    expect(await world.call('mcp__memory__read_graph')).toMatchObject({
      content: expect.stringContaining('Ada'),
    });
    expect(world.asked.count).toBe(before + 4);
  });

  it('have no environment variable but the named ones', async () => {
    const reply = await world.call('mcp__everything__get-env');
    expect(reply).toMatchObject({ content: expect.stringContaining('"SHOWN"') });
    expect(JSON.stringify(reply)).not.toMatch(/HIDDEN|PATH|HOME/);
  });

  it('give resources and prompts as tools, and an image as a sentence', async () => {
    const prompts = await world.call('mcp__everything__list_prompts');
    expect(prompts).toMatchObject({ content: expect.stringContaining('simple-prompt') });
    expect(await world.call('mcp__everything__get_prompt', { name: 'simple-prompt' })).toMatchObject({
      ...{ outcome: 'completed', content: expect.stringContaining('[user]') },
    });
    const listed = await world.call('mcp__everything__list_resources');
    const { uri } = (JSON.parse((listed as { content: string }).content) as { resources: { uri: string }[] })
      .resources[0] as { uri: string };
    expect(await world.call('mcp__everything__read_resource', { uri })).toMatchObject({
      ...{ outcome: 'completed', content: expect.stringContaining(`[resource ${uri}]`) },
    });
    expect(await world.call('mcp__everything__get-tiny-image')).toMatchObject({
      content: expect.stringMatching(/image of type image\/png with \d+ bytes is left out/),
    });
  });

  it('refuse wrong arguments as a result that the model reads', async () => {
    expect(await world.call('mcp__everything__get-sum', { a: 'x' })).toMatchObject({
      ...{ outcome: 'completed', isError: true },
    });
  });

  it('that is killed in mid-call loses the call alone, and serves the next one', async () => {
    const call = world.call('mcp__everything__trigger-long-running-operation', { duration: 15, steps: 5 });
    const session = () => world.servers.openSession('default', 'everything');
    await until(() => (session()?.isBusy ?? false) && session()?.pid !== null);
    const pid = session()?.pid ?? 0;
    process.kill(-pid, 'SIGKILL');
    expect(await call).toMatchObject({ outcome: 'failed', code: 'TOOL.SERVER_FAILED', mayHaveActed: true });
    expect(await world.call('mcp__everything__echo', { message: 'again' })).toMatchObject({
      ...{ outcome: 'completed', content: expect.stringContaining('again') },
    });
    expect(session()?.pid).not.toBe(pid);
  });

  it('is not called without its permission', async () => {
    world.asked.isGranted = false;
    const reply = await world.call('mcp__everything__echo', { message: 'no' });
    world.asked.isGranted = true;
    expect(reply).toMatchObject({ outcome: 'failed', code: 'TOOL.UNAVAILABLE' });
    expect(reply).not.toHaveProperty('mayHaveActed');
  });

  it('end with the service', async () => {
    const own = worlds.open([program('memory', [serverOf('memory')])]);
    await own.call('mcp__memory__read_graph');
    const pid = own.servers.openSession('default', 'memory')?.pid ?? 0;
    expect(isRunning(pid)).toBe(true);
    await own.servers.close();
    expect(isRunning(pid)).toBe(false);
  });
});
