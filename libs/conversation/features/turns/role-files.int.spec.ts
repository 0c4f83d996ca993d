import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { decideFiles } from '@antiphon/files-domain';
import { isoTime } from '@antiphon/kernel';
import { systemClock } from '@antiphon/observability';
import { createTestDatabase } from '@antiphon/testing';
import { fileTreeIdOf } from '@antiphon/agent-log/derived-ids';
import {
  WORKSPACE,
  createAgentWorld,
  newAddress,
  submitTo,
  testConfig,
  until,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { hangs, promptHashOf, says } from '@antiphon/agent-features/testing/test-model';
import { rolePath } from './role-text.js';

const CONFIG = testConfig({ role: 'assistant' });

let world: AgentWorld;
beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
}, 60_000);
afterAll(() => world.close(), 30_000);

/** Writes the file of a role, or deletes it. Returns its digest. */
const writeRole = async ({ runtime }: TestProcess, text: string | null): Promise<string> => {
  const { files } = runtime.services;
  const path = rolePath('assistant');
  const { digest, size } = await files.putBytes(WORKSPACE, Buffer.from(text ?? ''));
  const command =
    text === null ? ({ op: 'delete', path } as const) : ({ op: 'write', path, digest, size } as const);
  await files.commit(WORKSPACE, fileTreeIdOf(WORKSPACE), (tree) => ({
    events: decideFiles(tree, [command], {
      ...{ at: isoTime(systemClock), cause: { actor: 'key/ada' }, limits: CONFIG.files },
    }),
  }));
  return digest;
};
const roles = async (sessionId: string): Promise<unknown[]> =>
  (await world.events(sessionId))
    .filter(({ type }) => type === 'TurnRequested')
    .map(({ data }) => data['role']);

describe('the file of a role', () => {
  it('is the prompt of the next turn at the version that the turn records', async () => {
    const [one, two] = [world.process({ config: CONFIG }), world.process({ config: CONFIG })];
    const target = { address: newAddress() };
    world.model.reply = async () => says('ok');
    const { sessionId } = await submitTo(one, target);
    await world.ended(sessionId);
    expect(world.model.requests.at(-1)?.system).toBe('Be kind.');
    // Another process changes the file: the next turn sees it without a wait.
    const path = rolePath('assistant');
    for (const [turn, text] of ['Be brief.', 'Be exact.'].entries()) {
      const digest = await writeRole(two, text);
      await submitTo(one, target);
      await world.ended(sessionId, turn + 2);
      expect(world.model.requests.at(-1)?.system).toBe(text);
      expect((await roles(sessionId)).at(-1)).toEqual({ path, digest });
    }
    await writeRole(two, null);
    await submitTo(one, target);
    await world.ended(sessionId, 4);
    expect(world.model.requests.at(-1)?.system).toBe('Be kind.');
    expect((await roles(sessionId)).filter((role) => role !== undefined)).toHaveLength(2);
  });

  // @shows chats-C13
  it('may change during a turn: the repeated call in another process has an equal prompt hash', async () => {
    const first = world.process({ config: CONFIG });
    await writeRole(first, 'Be brief.');
    let begun = false;
    world.model.reply = hangs('', () => (begun = true));
    const { sessionId } = await submitTo(first, { address: newAddress() });
    await until(() => begun);
    const before = world.model.requests.at(-1);
    first.kill();
    await world.handleExit(first);
    const second = world.process({ config: CONFIG });
    await writeRole(second, 'Be loud.');
    world.model.reply = async () => says('done');
    await world.ended(sessionId);
    const after = world.model.requests.at(-1);
    expect(after).not.toBe(before);
    expect(before && after && promptHashOf(before) === promptHashOf(after)).toBe(true);
    expect(after?.system).toBe('Be brief.');
    await submitTo(second, { sessionId });
    await world.ended(sessionId, 2);
    expect(world.model.requests.at(-1)?.system).toBe('Be loud.');
  });
});
