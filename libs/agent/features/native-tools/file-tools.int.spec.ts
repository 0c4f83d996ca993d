import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { ModelRequest } from '@antiphon/agent-domain';
import { createTestDatabase } from '@antiphon/testing';
import { readHistory } from '../files/file-history.js';
import { WORKSPACE, createAgentWorld, newAddress, submitTo, testConfig } from '../testing/agent-world.js';
import type { AgentWorld, TestProcess } from '../testing/agent-world.js';
import { asksFor, says } from '../testing/test-model.js';

const TOOLS = ['ls', 'read', 'write', 'edit', 'rm', 'move', 'search'];
type Call = { readonly name: string; readonly input: Record<string, unknown> };

const call = (name: string, input: Record<string, unknown>): Call => ({ name, input });

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

  /** Runs calls one after another in one turn, and returns the result or code of each. */
  const run = async (process: TestProcess, ...calls: Call[]) => {
    let made = 0;
    world.model.reply = (_request: ModelRequest) => {
      const next = calls[made++];
      return Promise.resolve(next ? asksFor({ name: next.name, input: next.input as never }) : says('done'));
    };
    const { sessionId } = await submitTo(process, { address: newAddress('main') }, 'work');
    const events = await world.ended(sessionId);
    const results = events.flatMap(({ type, data }) =>
      type === 'ToolCallCompleted'
        ? [String(data['content'])]
        : type === 'ToolCallFailed'
          ? [`${String(data['code'])}: ${String(data['message'])}`]
          : [],
    );
    return { sessionId, results, events };
  };
  const put = async (path: string, text: string): Promise<void> => {
    const { files, workspaceFiles } = agent.runtime.services;
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

  it('mend a file: search, read, edit; the history names the turn, and another process sees it', async () => {
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
  }, 20_000);
});
