import { createHash, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { JsonValue } from '@antiphon/kernel';
import type { ApprovalRule } from '@antiphon/config';
import { createTestDatabase } from '@antiphon/testing';
import { ReadApprovals } from '@antiphon/conversation-features/approvals/read-approvals.handler';
import { readHistory } from '@antiphon/files-features/trees/file-history';
import {
  WORKSPACE,
  createAgentWorld,
  newAddress,
  submitTo,
  testConfig,
  until,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { HOSTILE_PATTERNS } from '@antiphon/agent-features/testing/hostile-patterns';
import { asksFor } from '@antiphon/agent-features/testing/test-model';
import { call, runCalls } from '@antiphon/agent-features/testing/tool-calls';

const TOOLS = ['ls', 'read', 'write', 'edit', 'rm', 'move', 'search'];

describe('Tools for files', () => {
  let world: AgentWorld;
  let agent: TestProcess;
  const config = testConfig({ tools: TOOLS, maxIterations: 20 });

  beforeAll(async () => {
    world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  }, 60_000);
  beforeEach(() => {
    agent = world.process({ config });
  });
  afterAll(() => world.close(), 30_000);

  const run = (process: TestProcess, ...calls: Parameters<typeof runCalls>[2][]) =>
    runCalls(world, process, ...calls);
  const put = async (path: string, text: string, process = agent): Promise<void> => {
    const { files, workspaceFiles } = process.runtime.services;
    const treeId = await workspaceFiles.treeIdOf(WORKSPACE);
    const stored = await files.putBytes(WORKSPACE, new TextEncoder().encode(text));
    const request = { workspace: WORKSPACE, treeId, cause: { actor: 'key/k1' } };
    await workspaceFiles.change(request, () => [{ op: 'write', path, ...stored }]);
  };
  const textOf = async (process: TestProcess, path: string): Promise<string> => {
    const { files, workspaceFiles } = process.runtime.services;
    const { entry } = await workspaceFiles.open(WORKSPACE, await workspaceFiles.treeIdOf(WORKSPACE), path);
    return new TextDecoder().decode(await files.readBytes(WORKSPACE, entry.digest));
  };

  it('correct a file: search, read, edit; the history names the turn, and another process sees it', async () => {
    await put('src/sum.ts', 'export const sum = (a: number, b: number) => a - b;\r\n');
    await put('src/sum.spec.ts', "it('adds', () => expect(sum(1, 2)).toBe(3));\n");
    const { results, sessionId, events } = await run(
      agent,
      call('ls', { path: 'src' }),
      call('search', { query: 'sum\\s*=', regex: true }),
      call('read', { path: 'src/sum.ts' }),
      call('edit', { path: 'src/sum.ts', old: 'a - b', new: 'a + b' }),
      call('read', { path: 'src/sum.ts' }),
    );
    expect(results[0]).toContain('src/sum.spec.ts\t');
    expect(results[1]).toContain('src/sum.ts:1\t');
    expect(results[4]).toContain('a + b');
    const other = world.process({ config });
    expect(await textOf(other, 'src/sum.ts')).toBe('export const sum = (a: number, b: number) => a + b;\r\n');
    const { store, files: trees, workspaceFiles } = other.runtime.services;
    const treeId = await workspaceFiles.treeIdOf(WORKSPACE);
    const history = { workspace: WORKSPACE, treeId, path: 'src/sum.ts', limit: 10 };
    const { changes } = await readHistory({ store, trees }, history);
    const turnId = events.find(({ type }) => type === 'TurnRequested')?.data['turnId'];
    expect(changes.map(({ type, cause }) => [type, cause.actor, cause.sessionId, cause.turnId])).toEqual([
      ['written', 'agent/main', sessionId, turnId],
      ['written', 'key/k1', undefined, undefined],
    ]);
  });

  // @shows chats-C8
  it('refuse to change what was not read, what was read in part, and what changed since', async () => {
    await put('notes.txt', Array.from({ length: 80 }, (_, index) => `line ${index + 1}\n`).join(''));
    const { results } = await run(
      agent,
      call('edit', { path: 'notes.txt', old: 'line 7\n', new: 'x\n' }),
      call('read', { path: 'notes.txt', lines: 10 }),
      call('write', { path: 'notes.txt', content: 'gone' }),
      call('read', { path: 'notes.txt' }),
      call('write', { path: 'notes.txt', content: 'gone' }),
      call('edit', { path: 'notes.txt', old: 'line 1', new: 'x' }),
      call('edit', { path: 'notes.txt', old: 'Line  9', new: 'x' }),
    );
    expect(results.map((result) => result.split(':')[0])).toEqual([
      ...['FILE.UNREAD', expect.any(String), 'FILE.UNREAD', expect.any(String)],
      ...['FILE.LARGE_REMOVAL', 'FILE.AMBIGUOUS', 'FILE.NO_MATCH'],
    ]);
    expect(results[6]).toContain('line 9');
    expect(await textOf(agent, 'notes.txt')).toContain('line 80');
  });

  it('never change the instructions of agents, also within the roots', async () => {
    await put('system/agents/main.md', 'Be kind.\n');
    await put('notes/a.md', 'x\n');
    const { results } = await run(
      agent,
      call('read', { path: 'system/agents/main.md' }),
      call('write', { path: 'system/agents/main.md', content: 'Obey me.' }),
      call('edit', { path: 'system/agents/main.md', old: 'kind', new: 'mine' }),
      call('write', { path: 'System/Agents/new.md', content: 'x' }),
      call('rm', { path: 'system', files: 1 }),
      call('move', { path: 'system/agents/main.md', to: 'taken.md' }),
      call('move', { path: 'notes/a.md', to: 'system/agents/a.md' }),
    );
    expect(results.map((result) => result.split(':')[0])).toEqual([
      expect.any(String),
      ...Array.from({ length: 6 }, () => 'FILE.NOT_ALLOWED'),
    ]);
    expect(await textOf(agent, 'system/agents/main.md')).toBe('Be kind.\n');
  });

  it('offer the text that an edit may have meant, and apply it only when it is asked for exactly', async () => {
    await put('tabs.ts', 'if (a) {\n\treturn b;\n}\n');
    const { results } = await run(
      agent,
      call('read', { path: 'tabs.ts' }),
      call('edit', { path: 'tabs.ts', old: 'if (a) {\n  return b;\n}', new: 'return a && b;' }),
      call('read', { path: 'tabs.ts' }),
      call('edit', { path: 'tabs.ts', old: 'if (a) {\n\treturn b;\n}', new: 'return a && b;' }),
    );
    expect(results[1]).toContain('FILE.NO_MATCH');
    expect(results[1]?.endsWith('if you mean it:\nif (a) {\n\treturn b;\n}')).toBe(true);
    expect(results[2]).toContain('\treturn b;');
    expect(await textOf(agent, 'tabs.ts')).toBe('return a && b;\n');
  });

  it('name the commands that bring removed files back', async () => {
    for (const path of ["old/it's.md", 'old/b.md']) await put(path, 'x\n');
    const { results } = await run(agent, call('rm', { path: 'old', files: 2 }));
    const { restore } = JSON.parse(results[0] ?? '') as { restore: string[] };
    expect(restore.toSorted()).toEqual([
      "antiphon files restore 'old/it'\\''s.md'",
      'antiphon files restore old/b.md',
    ]);
  });

  it('return found lines page by page, with their total at the end', async () => {
    await put('many.txt', Array.from({ length: 7 }, (_, index) => `needle ${index + 1}\n`).join(''));
    const search = (from: number) => call('search', { query: 'needle', path: 'many.txt', from, limit: 3 });
    const { results } = await run(agent, search(1), search(4), search(7));
    const headers = results.map((result) => JSON.parse(result.split('\n')[0] ?? '') as object);
    expect(headers).toMatchObject([
      { returned: 3, truncated: true, next: 4 },
      { returned: 3, truncated: true, next: 7 },
      { returned: 1, truncated: false, total: 7 },
    ]);
    const lines = results.flatMap((result) => result.split('\n').slice(1));
    expect(lines.map((line) => line.split('\t')[1])).toEqual(
      Array.from({ length: 7 }, (_, index) => `needle ${index + 1}`),
    );
  });

  it('make several edits or none, and refuse a file that another caller changed', async () => {
    await put('a.txt', 'one\n');
    await put('b.txt', 'two\n');
    const reads = [call('read', { path: 'a.txt' }), call('read', { path: 'b.txt' })];
    const { results } = await run(
      agent,
      ...reads,
      call('edit', {
        edits: [
          { path: 'a.txt', old: 'one', new: '1' },
          { path: 'b.txt', old: 'three', new: '3' },
        ],
      }),
      call('edit', {
        edits: [
          { path: 'a.txt', old: 'one', new: '1' },
          { path: 'b.txt', old: 'two', new: '2' },
        ],
      }),
    );
    expect(results[2]).toMatch(/^FILE.NO_MATCH/);
    expect([await textOf(agent, 'a.txt'), await textOf(agent, 'b.txt')]).toEqual(['1\n', '2\n']);
  });

  // @shows chats-C8
  it('refuse a change of what changed after it was read, and show the difference', async () => {
    await put('shared.txt', 'one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n');
    const changed = 'one\n2\nthree\nfour\nfive\nsix\nseven\neight\n9\n';
    const edit = call('edit', { path: 'shared.txt', old: 'three', new: '3' });
    const { results } = await run(
      agent,
      call('read', { path: 'shared.txt' }),
      async () => {
        await put('shared.txt', changed);
        return edit;
      },
      call('write', { path: 'shared.txt', content: 'mine' }),
      call('read', { path: 'shared.txt' }),
      edit,
    );
    for (const refused of results.slice(1, 3)) {
      expect(refused).toMatch(/^FILE.STALE/);
      expect(refused).toContain('@@ -1,9 +1,9 @@\n one\n-two\n+2\n three\n');
      expect(refused).toContain(' eight\n-nine\n+9');
    }
    expect(await textOf(agent, 'shared.txt')).toBe(changed.replace('three', '3'));
  });

  it('refuse a change as stale also where the bytes that were read are erased', async () => {
    const text = `once ${randomUUID()}\n`;
    await put('gone.txt', text);
    const { results } = await run(agent, call('read', { path: 'gone.txt' }), async () => {
      await put('gone.txt', 'twice\n');
      const { blobs } = agent.runtime.services;
      await blobs.erase(WORKSPACE, [createHash('sha256').update(text).digest('hex')]);
      return call('edit', { path: 'gone.txt', old: 'once', new: '1' });
    });
    expect(results[1]).toMatch(/^FILE.STALE: [^]*the content of one of the versions was erased/);
  });

  it('show the person who approves an edit or a write what it would change', async () => {
    await put('ask.txt', 'alpha\nbeta\ngamma\n');
    const rules = ['edit', 'write'].map((tool): ApprovalRule => ({
      ...{ tool, ask: 'always', expiresAfterMs: 60_000, escalateAfterMs: null, escalateTo: 'admin' },
      answerBy: 'operator',
    }));
    const guarded = world.process({
      config: testConfig({ tools: ['read', 'edit', 'write'], approvals: rules }),
    });
    const requests: { name: string; input: JsonValue }[] = [
      { name: 'edit', input: { path: 'ask.txt', old: 'beta', new: 'BETA' } },
      { name: 'write', input: { path: 'new.txt', content: 'first\nlast\n' } },
      { name: 'edit', input: { path: 'none.txt', old: 'a', new: 'b' } },
    ];
    let step = 0;
    world.model.reply = () =>
      Promise.resolve(
        step++ === 0 ? asksFor({ name: 'read', input: { path: 'ask.txt' } }) : asksFor(...requests),
      );
    const { sessionId } = await submitTo(guarded, { address: newAddress('main') }, 'change it');
    const frames = await until(async () => {
      const events = (await world.events(sessionId)).filter(({ type }) => type === 'ApprovalRequested');
      return events.length === 3 && events;
    });
    expect(frames.map(({ data }) => data['preview'])).toEqual([
      '--- a/ask.txt\n+++ b/ask.txt\n@@ -1,3 +1,3 @@\n alpha\n-beta\n+BETA\n gamma',
      '--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,2 @@\n+first\n+last',
      expect.stringContaining('refused as it is now: FILE.NOT_FOUND'),
    ]);
    const view = await until(async () => {
      const { approvals } = await guarded.get(ReadApprovals).list({
        ...{ workspace: WORKSPACE, sessionId, limit: 10 },
      });
      return approvals.length === 3 && approvals;
    });
    expect(view.map(({ preview }) => preview).sort()).toEqual(
      frames.map(({ data }) => data['preview']).sort(),
    );
  });

  // @shows chats-C11
  it('move a removed file to the bin, and need the number of files of a folder', async () => {
    await put('old/a.txt', 'a');
    await put('old/b.txt', 'b');
    const { results } = await run(
      agent,
      call('rm', { path: 'old' }),
      call('rm', { path: 'old', files: 2 }),
      call('ls', { bin: true, path: 'old' }),
      call('move', { path: 'a.txt', to: '../a.txt' }),
      call('read', { path: '/etc/passwd' }),
    );
    expect(results[0]).toContain('"files": 2');
    expect(results[2]).toContain('old/b.txt');
    expect(results.slice(3).map((result) => result.split(':')[0])).toEqual([
      'FILE.INVALID_PATH',
      'FILE.INVALID_PATH',
    ]);
  });

  // @shows U43
  it('count the binary files that a search leaves out: those with a zero in their first 8,000 bytes', async () => {
    await put('mixed/text.txt', 'a needle');
    await put('mixed/binary.bin', 'needle\0');
    await put('mixed/late.txt', `${'x'.repeat(8_000)}\0 needle`);
    const { results } = await run(agent, call('search', { path: 'mixed', query: 'needle' }));
    expect(results[0]).toMatch(/"searched":\s*2,\s*"binary":\s*1/);
    expect(results[0]?.match(/binary\.bin|late\.txt|text\.txt/g)?.sort()).toEqual(['late.txt', 'text.txt']);
  });

  // @shows U43
  it('leave out what a .gitignore names, unless they are asked for it', async () => {
    await put('app/.gitignore', 'out/\n*.log\n!keep.log\n');
    for (const path of ['app/out/a.js', 'app/b.log', 'app/keep.log', 'app/c.js']) await put(path, 'marker');
    const search = { path: 'app', query: 'marker' };
    const { results } = await run(
      agent,
      call('ls', { path: 'app', recursive: true }),
      call('ls', { path: 'app', recursive: true, ignored: true }),
      call('search', search),
      call('search', { ...search, ignored: true }),
      call('search', { path: 'app/out', query: 'marker' }),
    );
    const shown = results.map((text) => text.match(/out\/a\.js|b\.log|keep\.log|c\.js/g)?.sort());
    const [some, all] = [
      ['c.js', 'keep.log'],
      ['b.log', 'c.js', 'keep.log', 'out/a.js'],
    ];
    expect(shown).toEqual([some, all, some, all, ['out/a.js']]);
    expect([results[0], results[2]].map((text) => /"ignored":2/.test(text ?? ''))).toEqual([true, true]);
  });

  // @shows chats-C12
  it('end hostile expressions in bounded time, and a line of 10 MB is read, found and edited', async () => {
    const large = world.process({
      config: {
        ...testConfig({ tools: TOOLS, maxIterations: 40 }),
        files: { ...config.files, maxFileBytes: 20_000_000 },
      },
    });
    const line = `${'a'.repeat(5_000_000)}needle${'b'.repeat(5_000_000)}`;
    await put('long/line.txt', line, large);
    await put('hostile/line.txt', `${'a'.repeat(100_000)}!`, large);
    const started = performance.now();
    const { results } = await run(
      large,
      ...HOSTILE_PATTERNS.map((query) => call('search', { path: 'hostile', query, regex: true })),
      call('search', { path: 'long', query: 'needle' }),
      call('read', { path: 'long/line.txt' }),
      call('edit', { path: 'long/line.txt', old: 'needle', new: 'thread' }),
    );
    // One expression may take 5 s; together they take a fraction of that, also on a busy machine.
    expect(performance.now() - started).toBeLessThan((HOSTILE_PATTERNS.length * 5_000) / 4);
    for (const result of results.slice(0, HOSTILE_PATTERNS.length))
      expect(result).toMatch(/"returned":[01],|FILE.INVALID_PATTERN/);
    expect(results.at(-3)).toContain('"cut_lines":1');
    expect(results.at(-2)?.length).toBeLessThan(5_000);
    expect((await textOf(large, 'long/line.txt')) === line.replace('needle', 'thread')).toBe(true);
  }, 90_000);

  it('keep to the folders of the agent', async () => {
    await put('secret/key.txt', 'k');
    await put('open/a.txt', 'a');
    const narrow = world.process({
      config: testConfig({ tools: TOOLS, maxIterations: 20, readRoots: ['open'], writeRoots: ['drafts'] }),
    });
    const { results } = await run(
      narrow,
      call('read', { path: 'secret/key.txt' }),
      call('search', { query: 'k' }),
      call('write', { path: 'open/b.txt', content: 'b' }),
      call('write', { path: 'drafts/b.txt', content: 'b' }),
    );
    expect(results[0]).toMatch(/^FILE.NOT_ALLOWED/);
    expect(results[1]).not.toContain('secret');
    expect(results[2]).toMatch(/^FILE.NOT_ALLOWED/);
    expect(results[3]).toContain('drafts/b.txt');
  });

  it('move no file into a folder where the agent could read it', async () => {
    await put('private/key.txt', 'k');
    const narrow = world.process({
      config: testConfig({ tools: TOOLS, maxIterations: 20, readRoots: ['open'] }),
    });
    const { results } = await run(
      narrow,
      call('move', { path: 'private/key.txt', to: 'open/key.txt' }),
      call('move', { path: 'private/key.txt', to: 'private/other.txt' }),
    );
    expect(results[0]).toMatch(/^FILE.NOT_ALLOWED/);
    expect(results[1]).toContain('private/other.txt');
  });

  // @shows chats-C8
  it('write a serial history of one file by 64 callers on two processes, without a lost update', async () => {
    await put('count.txt', '');
    const other = world.process({ config });
    const add = async (process: TestProcess, name: string): Promise<void> => {
      const { files, workspaceFiles } = process.runtime.services;
      const treeId = await workspaceFiles.treeIdOf(WORKSPACE);
      const request = { workspace: WORKSPACE, treeId, cause: { actor: `agent/${name}` } };
      await workspaceFiles.change(request, async (tree) => {
        const now = tree.files.get('count.txt');
        const before = new TextDecoder().decode(await files.readBytes(WORKSPACE, now?.digest ?? ''));
        const stored = await files.putBytes(WORKSPACE, new TextEncoder().encode(`${before}${name}\n`));
        return [{ op: 'write', path: 'count.txt', ...stored, expect: now?.digest }];
      });
    };
    const names = Array.from({ length: 64 }, (_, index) => `a${index}`);
    await Promise.all(names.map((name, index) => add(index % 2 === 0 ? agent : other, name)));
    expect((await textOf(agent, 'count.txt')).trim().split('\n').sort()).toEqual(names.sort());
    const { store, files: trees, workspaceFiles } = agent.runtime.services;
    const treeId = await workspaceFiles.treeIdOf(WORKSPACE);
    const history = { workspace: WORKSPACE, treeId, path: 'count.txt', limit: 100 };
    const changes = (await readHistory({ store, trees }, history)).changes.toReversed();
    // One version for the empty file and one for each caller: each begins where the last one ended.
    expect(changes).toHaveLength(1 + names.length);
    expect(changes.map(({ before }) => before)).toEqual([
      null,
      ...changes.map(({ digest }) => digest).slice(0, -1),
    ]);
    expect(new Set(changes.map(({ digest }) => digest)).size).toBe(changes.length);
  }, 20_000);
});
