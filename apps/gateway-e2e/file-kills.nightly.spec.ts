import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { DISK_FAILPOINTS, FILE_FAILPOINTS } from '@antiphon/kernel';
import { until } from '@antiphon/testing';
import type { TestStack } from '@antiphon/testing/stack';
import { auditUntilQuiet } from '@antiphon/testing/faults';
import { startStack } from '@antiphon/testing/stack';
import { FailpointPlan } from './faults/failpoint-plan.js';
import { scriptedConfig, waitForValue } from './stack-under-test.js';

jest.setTimeout(300_000);

const ROUNDS = Number(process.env['ANTIPHON_FILE_KILLS'] ?? 5);
const POINTS = [...FILE_FAILPOINTS, ...DISK_FAILPOINTS];
const AGENT = `
[[agents]]
id = "main"
provider = "scripted"
tools = ["read", "edit"]
`;
/**
 * Points of an edit by a tool: its facts, its bytes and the outcome of its call are one append.
 * Bytes over 256 KiB are stored before it.
 */
const TOOL_POINTS = ['agent.file.stored', 'agent.file.decided', 'agent.file.recorded', 'agent.tool.answered'];
const LARGE_LINES = 30_000;

let stack: TestStack;
const plan = new FailpointPlan();
const counts = { kills: 0, old: 0, new: 0, between: 0 };
beforeAll(async () => {
  stack = await startStack({
    ...{ watchesHealth: false, shareDatabase: true, config: scriptedConfig(AGENT) },
    env: { FAILPOINTS: plan.variable },
  });
});
afterAll(async () => {
  process.stdout.write(`${JSON.stringify(counts)}\n`);
  await stack?.stop();
  plan.remove();
});

const urlOf = (path: string): string => `${stack.gatewayUrl}/api/v1/workspaces/default/files/${path}`;
const put = (path: string, body: string): Promise<Response> =>
  fetch(urlOf(path), { method: 'PUT', headers: { 'content-type': 'application/octet-stream' }, body });
/** Returns the text of a file; null while no agent process answers. */
const read = async (path: string): Promise<string | null> => {
  const response = await fetch(urlOf(path)).catch(() => null);
  return response?.ok ? response.text() : null;
};
const post = async <T>(path: string, body: object): Promise<T> => {
  const headers = { 'content-type': 'application/json' };
  const url = `${stack.gatewayUrl}/api/v1/workspaces/default/chats${path}`;
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  return (await response.json()) as T;
};
/** Returns the changes of a file, newest first. */
const readChanges = async (path: string): Promise<{ cause: { callId?: string } }[]> => {
  const url = `${stack.gatewayUrl}/api/v1/workspaces/default/file-history?path=${path}`;
  return ((await (await fetch(url)).json()) as { changes: { cause: { callId?: string } }[] }).changes;
};
const diskPath = (path: string): string => join(stack.home, 'files', 'default', path);
const readDisk = (path: string): string | null => {
  try {
    return readFileSync(diskPath(path), 'utf8');
  } catch {
    return null;
  }
};

/** Changes the file as the point needs it: bytes are stored by the copy on disk and by tools. */
const change = async (point: string, path: string, text: string): Promise<boolean> => {
  if (point !== 'agent.file.stored') return (await put(path, text).catch(() => null))?.ok ?? false;
  writeFileSync(join(stack.home, 'part'), text);
  renameSync(join(stack.home, 'part'), diskPath(path));
  return false;
};

describe('After kill -9 of the agent service', () => {
  // @shows chats-C9
  it.each(POINTS)('at %s a file has its old or its new text, in the tree and on disk', async (point) => {
    for (let round = 1; round <= ROUNDS; round++) {
      const path = `${point}.txt`;
      const [old, next] = [`${'old '.repeat(5_000)}${round}`, `${'new '.repeat(6_000)}${round}`];
      await until(async () => (await put(path, old).catch(() => null))?.ok ?? false, 60_000);
      await until(() => readDisk(path) === old, 60_000);
      plan.arm(point, 'kill9');
      const accepted = change(point, path, next);
      await plan.waitForHit();
      plan.disarm();
      counts.kills++;
      const isAccepted = await accepted;
      const onDisk = readDisk(path);
      const text = await waitForValue('the file', async () => (await read(path)) ?? undefined);
      const isOld = text === old && !isAccepted;
      const isNew = text === next;
      counts[isNew ? 'new' : isOld ? 'old' : 'between']++;
      expect([isOld || isNew, [old, next].includes(onDisk ?? '')]).toEqual([true, true]);
      // The next round of the copy ends what the killed process had begun.
      const last = await waitForValue('the copy on disk', async () => {
        const now = await read(path);
        return now !== null && readDisk(path) === now ? now : undefined;
      });
      expect([old, next]).toContain(last);
    }
  });

  // @shows chats-C9
  it.each(TOOL_POINTS)('at %s an edit of a tool is made once, with its outcome', async (point) => {
    const path = `tool-${point}.txt`;
    const rest = point === 'agent.file.stored' ? 'ten bytes\n'.repeat(LARGE_LINES) : '';
    const isPut = async () => (await put(path, `mark 0\n${rest}`).catch(() => null))?.ok ?? false;
    await until(isPut, 60_000);
    const { id } = await post<{ id: string }>('', { name: path });
    const call = (tool: string, input: object): Promise<unknown> =>
      until(
        () =>
          post(`/${id}`, { command: 'message', content: `/tool ${tool} ${JSON.stringify(input)}` }).then(
            () => true,
            () => false,
          ),
        60_000,
      );
    await call('read', { path });
    const answers = async (): Promise<number> => {
      const url = `${stack.gatewayUrl}/api/v1/workspaces/default/chats/${id}?format=json`;
      const chat = await fetch(url).then(
        (response) => response.json() as Promise<{ messages: { role: string }[] }>,
        () => null,
      );
      return chat?.messages.filter(({ role }) => role === 'agent').length ?? 0;
    };
    await until(async () => (await answers()) === 1, 60_000);
    for (let round = 1; round <= ROUNDS; round++) {
      const [old, next] = [`mark ${round - 1}\n`, `mark ${round}\n`];
      plan.arm(point, 'kill9');
      await call('edit', { path, old, new: next });
      await plan.waitForHit();
      plan.disarm();
      counts.kills++;
      const text = await waitForValue('the file', async () => (await read(path)) ?? undefined);
      const [isOld, isNew] = [text === `${old}${rest}`, text === `${next}${rest}`];
      counts[isNew ? 'new' : isOld ? 'old' : 'between']++;
      expect(isOld || isNew).toBe(true);
      await until(async () => (await read(path)) === `${next}${rest}`, 60_000);
    }
    const changes = await readChanges(path);
    expect(changes).toHaveLength(ROUNDS + 1);
    expect(new Set(changes.map(({ cause }) => cause.callId)).size).toBe(ROUNDS + 1);
  });

  it('the log, the trees and the stored bytes pass the audit', async () => {
    expect(await auditUntilQuiet(stack)).toMatchObject({ ok: true });
  });
});
