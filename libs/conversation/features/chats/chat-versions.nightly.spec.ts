import { createHash, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createTestDatabase } from '@antiphon/testing';
import { checkFigure, createSeededRandom } from '@antiphon/testing/load';
import { fileTreeIdOf } from '@antiphon/agent-log/derived-ids';
import {
  WORKSPACE,
  createAgentWorld,
  submitTo,
  testConfig,
} from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { says } from '@antiphon/agent-features/testing/test-model';
import { ChangeChat } from './change-chat.handler.js';
import { Chats } from './chats.handler.js';
import { RenameChat } from './rename-chat.handler.js';

jest.setTimeout(900_000);

const VERSIONS = Number(process.env['ANTIPHON_CHAT_VERSIONS'] ?? 1_000);
const SEED = Number(process.env['ANTIPHON_TEST_SEED'] ?? 14);

/** A version of the tree, with the chat as it was read then. */
interface Version {
  readonly version: number;
  readonly path: string;
  readonly digest: string;
}

const treeId = fileTreeIdOf(WORKSPACE);
const digestOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

describe('the file of a chat', () => {
  let world: AgentWorld;
  let agent: TestProcess;
  let chats: Chats;
  let names: RenameChat;
  beforeAll(async () => {
    world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
    agent = world.process({ config: testConfig() });
    chats = agent.get(Chats);
    names = agent.get(RenameChat);
    world.model.reply = () => Promise.resolve(says(`answer ${randomUUID()}`));
  }, 60_000);
  afterAll(() => world?.close());

  const open = (process: TestProcess, path: string, at?: number) =>
    process.runtime.services.workspaceFiles.open(WORKSPACE, treeId, path, at);
  /** Changes a file, so that the tree has a version at this position of the log. */
  const mark = async (text: string): Promise<number> => {
    const { files, workspaceFiles } = agent.runtime.services;
    const stored = await files.putBytes(WORKSPACE, Buffer.from(text));
    const request = { workspace: WORKSPACE, treeId, cause: { actor: 'local' } };
    return (await workspaceFiles.change(request, () => [{ op: 'write', path: 'mark.md', ...stored }]))
      .version;
  };

  // @shows chats-C1
  it(`has at each of ${VERSIONS} versions the bytes that it had then, also on a process that knows none`, async () => {
    const random = createSeededRandom(SEED);
    let chat = await chats.create({ workspace: WORKSPACE, spec: { name: randomUUID() }, caller: 'ada' });
    const { id: chatId, sessionId } = chat;
    const request = { workspace: WORKSPACE, chatId, sessionId, caller: 'ada' };
    const turns: string[] = [];
    const send = async (): Promise<void> => {
      turns.push((await submitTo(agent, { sessionId }, `message ${turns.length}`)).turnId);
      await world.ended(sessionId, turns.length);
    };
    const changeMessage = async (content: string | null): Promise<void> => {
      const turnId = random.pick(turns);
      const part = random.pick(['message', 'answer'] as const);
      // A deleted message takes no further change.
      await agent
        .get(ChangeChat)
        .change({ ...request, turnId, part, content })
        .catch(() => undefined);
    };
    const rename = async (): Promise<void> => {
      chat = await names.rename({ workspace: WORKSPACE, chat: chatId, name: randomUUID(), caller: 'ada' });
    };
    await send();
    const versions: Version[] = [];
    while (versions.length < VERSIONS) {
      const version = await mark(`mark ${versions.length}`);
      const chance = random.below(100);
      if (chance < 35) await send();
      else if (chance < 70) await changeMessage(`edited ${randomUUID()}`);
      else if (chance < 80) await changeMessage(null);
      else if (chance < 90) await rename();
      else
        await agent
          .get(ChangeChat)
          .attach({ ...request, path: 'mark.md' })
          .catch(() => undefined);
      // The version lasts until the next one: it has all that happened before that.
      const bytes = await (await open(agent, chat.path)).readBytes();
      versions.push({ version, path: chat.path, digest: digestOf(bytes) });
    }
    const cold = world.process({ config: testConfig() });
    let differences = 0;
    for (const { version, path, digest } of versions)
      if ((await open(cold, path, version)).entry.digest !== digest) differences++;
    expect(new Set(versions.map(({ digest }) => digest)).size).toBeGreaterThan(VERSIONS * 0.6);
    checkFigure({ what: `chat: versions of ${VERSIONS} that differ`, value: differences, atMost: 0 });
  });
});
