import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { listHostedTools } from '../calls/tool-source.js';
import { MODULES } from '../testing/modules.fixture.spec.js';
import { bundledPlugins, folderOf, pluginAt, startSandbox } from '../testing/sandbox.fixture.spec.js';
import type { TestSandbox } from '../testing/sandbox.fixture.spec.js';

jest.setTimeout(60_000);

describe('loading plug-ins', () => {
  let box: TestSandbox;
  const start = async (...options: Parameters<typeof startSandbox>) => (box = await startSandbox(...options));
  afterEach(() => box.close());

  it('lists a module by the SHA-256 of its original file', async () => {
    await start(['memo']);
    const moduleDigest = createHash('sha256')
      .update(MODULES['memo'] ?? '')
      .digest('hex');
    expect(box.view('memo')).toEqual({
      name: 'memo',
      kind: 'tool',
      status: 'loaded',
      reason: null,
      moduleDigest,
      capabilities: [],
      tools: ['memo'],
    });
    expect(box.tools).toContainEqual(expect.objectContaining({ name: 'memo', moduleDigest }));
    expect(await box.call('memo')).toMatchObject({ moduleDigest });
  });

  it('refuses a call whose approval covers another module or other grants', async () => {
    await start(['memo']);
    const { moduleDigest, grants } = box.tools.find(({ name }) => name === 'memo')!;
    const call = (approved: { moduleDigest: string; grants: string[] }) => box.call('memo', {}, { approved });
    expect(await call({ moduleDigest, grants })).toMatchObject({ outcome: 'completed' });
    for (const other of [
      { moduleDigest: 'another', grants },
      { moduleDigest, grants: ['http:api.example.com'] },
    ])
      expect(await call(other)).toMatchObject({ outcome: 'failed', code: 'TOOL.CHANGED' });
  });

  it('gives a tool of one workspace to no other, also by its name', async () => {
    await start(['memo'], { workspace: 'elsewhere' });
    expect(box.tools).toEqual([]);
    expect((await listHostedTools(box.sandbox.sources, 'elsewhere')).map(({ name }) => name)).toEqual([
      'memo',
    ]);
    expect(await box.call('memo')).toMatchObject({ outcome: 'failed', code: 'TOOL.UNKNOWN' });
    expect(await box.call('memo', {}, { workspace: 'elsewhere' })).toMatchObject({ outcome: 'completed' });
  });

  it('lists a missing file and logs its path', async () => {
    await start(['hello'], {}, { plugins: [pluginAt('/nowhere/x.wasm', { name: 'x' })] });
    expect(box.view('x')).toMatchObject({ status: 'missing', reason: 'the file does not exist', tools: [] });
    expect(JSON.stringify(box.sandbox.plugins)).not.toContain('/nowhere');
    expect(box.log).toContainEqual(expect.objectContaining({ level: 'warn', path: '/nowhere/x.wasm' }));
  });

  it('refuses a file that is not regular without blocking', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'antiphon-odd-'));
    execFileSync('mkfifo', [join(folder, 'pipe.wasm')]);
    await writeFile(join(folder, 'huge.wasm'), '');
    await truncate(join(folder, 'huge.wasm'), 11 * 1024 * 1024);
    const odd = ['pipe', 'huge'].map((name) => pluginAt(join(folder, `${name}.wasm`), { name }));
    await start(
      [],
      {},
      { plugins: [...odd, pluginAt(folder, { name: 'folder' }), pluginAt('/dev/zero', { name: 'zero' })] },
    );
    for (const name of ['pipe', 'folder', 'zero'])
      expect(box.view(name)).toMatchObject({ status: 'rejected', reason: 'not a regular file' });
    expect(box.view('huge')).toMatchObject({
      status: 'rejected',
      reason: expect.stringContaining('the limit is'),
    });
    await rm(folder, { recursive: true });
  });

  it('refuses the capability secret:token without a host that may get it', async () => {
    await start(['hello'], { capabilities: ['secret:token'] });
    expect(box.view('hello')).toMatchObject({
      status: 'rejected',
      reason: expect.stringContaining('needs one http:HOST'),
    });
  });

  it('refuses a second plug-in of the same name', async () => {
    const folder = await folderOf(['hello', 'memo']);
    const plugins = ['hello', 'memo'].map((file) => pluginAt(join(folder, `${file}.wasm`), { name: 'twin' }));
    await start([], {}, { plugins });
    expect(box.sandbox.plugins.filter(({ name }) => name === 'twin').map(({ status }) => status)).toEqual([
      'loaded',
      'rejected',
    ]);
    expect(await box.call('twin')).toMatchObject({ content: 'hello' });
    await rm(folder, { recursive: true });
  });

  it('loads a channel adapter, which is not a tool', async () => {
    await start(['channel'], { kind: 'channel' });
    expect(box.view('channel')).toMatchObject({ kind: 'channel', status: 'loaded', tools: [] });
    expect(box.tools).toEqual([]);
    expect(await box.call('channel')).toMatchObject({ outcome: 'failed', code: 'TOOL.UNKNOWN' });
  });

  it('reports the active isolation layers', async () => {
    await start([]);
    expect(box.sandbox.layers).toEqual(expect.arrayContaining(['process', 'files']));
    expect(box.log.filter((entry) => 'layers' in entry)).toHaveLength(1);
  });

  it('replaces a bundled plug-in by a configured one of the same name', async () => {
    const folder = await folderOf(['hello']);
    const mine = pluginAt(join(folder, 'hello.wasm'), { name: 'echo' });
    await start([], {}, { bundledDirectory: await bundledPlugins(), plugins: [mine] });
    expect(box.sandbox.plugins.map(({ name }) => name)).toEqual(['calculator', 'http-get', 'echo']);
    expect(await box.call('echo')).toMatchObject({ content: 'hello' });
    await rm(folder, { recursive: true });
  });
});
