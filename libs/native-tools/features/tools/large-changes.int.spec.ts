import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { sessionLease } from '@antiphon/contracts/agent';
import { armFailpoints, isAppError } from '@antiphon/kernel';
import { createTestDatabase } from '@antiphon/testing';
import {
  WORKSPACE,
  createAgentWorld,
  newAddress,
  submitTo,
  testConfig,
  until,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { asksFor, says } from '@antiphon/agent-features/testing/test-model';

type Call = Parameters<typeof asksFor>[0] & object;

const FILES = 40;
const LARGE = 250_000;

describe('A large change of an agent', () => {
  let world: AgentWorld;
  let agent: TestProcess;
  beforeAll(async () => {
    world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
    agent = world.process({ config: testConfig({ tools: ['read', 'write', 'edit', 'rm'] }) });
  }, 60_000);
  afterAll(() => world.close(), 30_000);

  const put = async (files: readonly (readonly [path: string, text: string])[]): Promise<void> => {
    const { files: trees, workspaceFiles } = agent.runtime.services;
    const treeId = await workspaceFiles.treeIdOf(WORKSPACE);
    const stored = new Map<string, { digest: string; size: number }>();
    for (const text of new Set(files.map(([, one]) => one)))
      stored.set(text, await trees.putBytes(WORKSPACE, Buffer.from(text)));
    await workspaceFiles.change({ workspace: WORKSPACE, treeId, cause: { actor: 'key/k1' } }, () =>
      files.map(([path, text]) => ({
        ...{ op: 'write', path, digest: '', size: 0, ...stored.get(text) },
      })),
    );
  };
  const textOf = async (path: string): Promise<string | null> => {
    const { workspaceFiles } = agent.runtime.services;
    const treeId = await workspaceFiles.treeIdOf(WORKSPACE);
    try {
      const opened = await workspaceFiles.open(WORKSPACE, treeId, path);
      return Buffer.from(await opened.readBytes()).toString();
    } catch (error) {
      if (isAppError(error) && error.code === 'FILE.NOT_FOUND') return null;
      throw error;
    }
  };
  /** Makes the calls of each step, and returns the events of the turn. */
  const run = async (...steps: Call[][]) => {
    let made = 0;
    world.model.reply = () => {
      const calls = steps[made++];
      return Promise.resolve(calls ? asksFor(...calls) : says('done'));
    };
    const { sessionId } = await submitTo(agent, { address: newAddress('main') }, 'work');
    return world.ended(sessionId, 1, 60_000);
  };
  const failuresOf = (events: Awaited<ReturnType<typeof run>>): unknown[] =>
    events.filter(({ type }) => type === 'ToolCallFailed').map(({ data }) => data['code']);

  // @shows chats-C9
  it('of 40 files of 250 KB is made whole, though its bytes exceed one append', async () => {
    const paths = Array.from({ length: FILES }, (_, nth) => `large/${nth}.txt`);
    const text = (path: string, word: string): string => `${word} ${path}\n${'x'.repeat(LARGE)}\n`;
    await put(paths.map((path) => [path, text(path, 'old')] as const));
    const events = await run(
      paths.map((path) => ({ name: 'read', input: { path, lines: 1 } })),
      [{ name: 'edit', input: { edits: paths.map((path) => ({ path, old: 'old', new: 'new' })) } }],
    );
    expect(failuresOf(events)).toEqual([]);
    for (const path of paths) expect(await textOf(path)).toBe(text(path, 'new'));
  });

  it('is not made by a process that lost the session while it decided, with any number of files', async () => {
    const paths = Array.from({ length: 950 }, (_, nth) => `gone/${nth}.txt`);
    await put(paths.map((path) => [path, 'kept'] as const));
    let isFirst = true;
    world.model.reply = () => {
      const answer = isFirst ? asksFor({ name: 'rm', input: { path: 'gone', files: 950 } }) : says('done');
      isFirst = false;
      return Promise.resolve(answer);
    };
    const submitted = submitTo(agent, { address: newAddress('main') }, 'work');
    let isTaken = false;
    armFailpoints(async (name) => {
      if (name !== 'agent.file.decided' || isTaken) return;
      const { sessionId } = await submitted;
      await world.leases.releaseOwner(agent.owner);
      const taken = await world.leases.acquire(WORKSPACE, sessionLease(sessionId), 'other', 60_000);
      isTaken = taken.acquired;
    });
    try {
      await submitted;
      await until(() => isTaken && agent.runtime.services.registry.countWorking() === 0);
      expect(await textOf(paths[0]!)).toBe('kept');
    } finally {
      armFailpoints(null);
    }
  });

  // @shows chats-C9
  it('is not made if the turn is cancelled before it is recorded', async () => {
    const { files } = agent.runtime.services;
    const path = `${randomUUID()}.txt`;
    const stage = files.stageBytes.bind(files);
    let cancel = (): Promise<unknown> => Promise.resolve();
    const staging = jest.spyOn(files, 'stageBytes').mockImplementation(async (...args) => {
      await cancel();
      return stage(...args);
    });
    try {
      let isFirst = true;
      world.model.reply = () => {
        const answer = isFirst ? asksFor({ name: 'write', input: { path, content: 'late' } }) : says('done');
        isFirst = false;
        return Promise.resolve(answer);
      };
      const turn = await new Promise<{ sessionId: string; turnId: string }>((resolve, reject) => {
        const submitted = submitTo(agent, { address: newAddress('main') }, 'work');
        cancel = async () => {
          const { sessionId, turnId } = await submitted;
          await agent.runtime.cancelTurn({ workspace: WORKSPACE, sessionId, turnId, caller: 'spec' });
        };
        submitted.then(resolve, reject);
      });
      const events = await world.ended(turn.sessionId, 1, 60_000);
      expect(events.at(-1)?.type).toBe('TurnCancelled');
      expect(events.some(({ type }) => type === 'ToolCallCompleted')).toBe(false);
      expect(await textOf(path)).toBeNull();
    } finally {
      staging.mockRestore();
    }
  });
});
