import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { fileTreeStream } from '@antiphon/contracts/agent';
import { inWorkspace } from '@antiphon/database';
import { createTestDatabase } from '@antiphon/testing';
import { WORKSPACE, createAgentWorld, testConfig } from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { call, causesInTwoWordings, runCalls } from '@antiphon/agent-features/testing/tool-calls';

let world: AgentWorld;
let agent: TestProcess;
beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  agent = world.process({
    config: testConfig({ tools: ['read', 'write', 'edit', 'rm', 'move', 'search'], maxIterations: 40 }),
  });
}, 60_000);
afterAll(() => world.close(), 30_000);

const run = (...calls: Parameters<typeof runCalls>[2][]) => runCalls(world, agent, ...calls);
const treeId = (): Promise<string> => agent.runtime.services.workspaceFiles.treeIdOf(WORKSPACE);
const put = async (path: string, text: string, mode: 0o644 | 0o755 = 0o644): Promise<void> => {
  const { files, workspaceFiles } = agent.runtime.services;
  const stored = await files.putBytes(WORKSPACE, new TextEncoder().encode(text));
  const request = { workspace: WORKSPACE, treeId: await treeId(), cause: { actor: 'key/k1' } };
  await workspaceFiles.change(request, () => [{ op: 'write', path, ...stored, mode }]);
};
/** Returns the text and the mode of a file. */
const open = async (path: string): Promise<[string, number]> => {
  const opened = await agent.runtime.services.workspaceFiles.open(WORKSPACE, await treeId(), path);
  return [new TextDecoder().decode(await opened.readBytes()), opened.entry.mode];
};

describe('The facts of changes by tools', () => {
  // @shows I12 chats-C9
  it('are one append with their bytes and the outcome of the call', async () => {
    await put('one.txt', 'one\n');
    const { events } = await run(
      call('read', { path: 'one.txt' }),
      call('edit', { path: 'one.txt', old: 'one', new: '1' }),
      call('write', { path: 'two.txt', content: 'two\n' }),
      call('move', { path: 'two.txt', to: 'three.txt' }),
      call('rm', { path: 'three.txt' }),
    );
    const outcomes = events.filter(({ type }) => type === 'ToolCallCompleted').slice(1);
    // The transaction of each outcome also wrote the event before it, and its bytes.
    const { rows } = await inWorkspace(world.pool, WORKSPACE).query<{ type: string; blobs: string }>(
      `select f.type, (select count(*) from file_blobs b where b.xmin = e.xmin and b.digest = f.data ->> 'digest') as blobs
      from events e join events f on f.position = e.position - 1 and f.xmin = e.xmin
      where e.event_id = any ($1) order by e.position`,
      [outcomes.map(({ eventId }) => eventId)],
    );
    expect(rows.map(({ type, blobs }) => `${type} ${blobs}`)).toEqual([
      ...['FileWritten 1', 'FileWritten 1', 'FileMoved 0', 'FileDeleted 0'],
    ]);
    expect((await open('one.txt'))[0]).toBe('1\n');
  });

  // @shows chats-C7
  it('keep the mode of a file that is edited, written whole or moved', async () => {
    await put('run.sh', '#!/bin/sh\nexit 1\n', 0o755);
    await run(
      call('read', { path: 'run.sh' }),
      call('edit', { path: 'run.sh', old: 'exit 1', new: 'exit 0' }),
      call('write', { path: 'run.sh', content: '#!/bin/sh\nexit 2\n' }),
      call('move', { path: 'run.sh', to: 'bin/run.sh' }),
    );
    const facts = (await world.store.readStream(WORKSPACE, fileTreeStream(await treeId()))).filter(
      ({ data }) => [data['path'], data['to']].includes('run.sh'),
    );
    expect(facts.map(({ type, data }) => [type, data['mode']])).toEqual([
      ['FileWritten', 0o755],
      ['FileWritten', 0o755],
      ['FileWritten', 0o755],
      ['FileMoved', 0o755],
    ]);
    expect(await open('bin/run.sh')).toEqual(['#!/bin/sh\nexit 2\n', 0o755]);
  });

  it('are the causes of refused calls, the same after each text was reworded', async () => {
    await put('why/a.txt', 'one\ntwo\none\n');
    await put('why/b.txt', '“quoted”\n');
    await put('why/large.txt', 'line\n'.repeat(200));
    const refused: readonly (readonly [string, Parameters<typeof call>])[] = [
      ['tool_input_invalid', ['read', { path: 7 }]],
      ['file_path_refused', ['read', { path: '/a' }]],
      ['file_path_refused', ['read', { path: 'a/../b' }]],
      ['file_missing', ['read', { path: 'why/none.txt' }]],
      ['file_named_otherwise', ['edit', { path: 'why/A.txt', old: 'one', new: 'x' }]],
      ['file_is_folder', ['edit', { path: 'why', old: 'one', new: 'x' }]],
      ['file_unread', ['write', { path: 'why/a.txt', content: 'x' }]],
      ['file_virtual', ['write', { path: 'a.chat', content: 'x' }]],
      ['file_name_clash', ['write', { path: 'WHY/new.txt', content: 'x' }]],
      ['file_not_folder', ['write', { path: 'why/a.txt/b', content: 'x' }]],
      ['file_name_obeyed', ['write', { path: '.git/hooks/x', content: 'x' }]],
      ['agent_state_protected', ['write', { path: 'system/agents/main.md', content: 'x' }]],
      ['folder_to_confirm', ['rm', { path: 'why' }]],
      ['folder_has_other_files', ['rm', { path: 'why', files: 9 }]],
      ['folder_into_itself', ['move', { path: 'why', to: 'why/in' }]],
      ['file_exists', ['move', { path: 'why/a.txt', to: 'why/b.txt' }]],
      ['search_not_re2', ['search', { query: '(', regex: true }]],
      ['edit_equal', ['edit', { path: 'why/a.txt', old: 'two', new: 'two' }]],
      ['edit_ambiguous', ['edit', { path: 'why/a.txt', old: 'one', new: 'x' }]],
      ['edit_no_match', ['edit', { path: 'why/a.txt', old: 'zebra', new: 'x' }]],
      ['edit_not_made', ['edit', { path: 'why/b.txt', old: '"quoted"', new: 'x' }]],
      ['edit_removes_most', ['write', { path: 'why/large.txt', content: 'x' }]],
    ];
    const reads = ['a', 'b', 'large'].map((name) => call('read', { path: `why/${name}.txt` }));
    const calls = refused.map(([, of]) => call(...of));
    const first = refused.findIndex(([kind]) => kind === 'edit_equal');
    const [causes, again] = await causesInTwoWordings(() =>
      run(...calls.slice(0, first), ...reads, ...calls.slice(first)),
    );
    expect(causes).toEqual(refused.map(([kind]) => expect.objectContaining({ kind })));
    expect(again).toEqual(causes);
  });
});
