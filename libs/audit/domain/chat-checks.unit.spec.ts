import { describe, expect, it } from '@jest/globals';
import type { ChatEvent } from '@antiphon/contracts/agent';
import { placeIn } from './agent-checks/agent-examples.spec.js';
import { findingsOf, TIME, uuid } from './audit-examples.spec.js';
import { chatsBeginOnce } from './chat-checks.js';

const created = (data: object = {}): ChatEvent =>
  ({
    ...{ type: 'ChatCreated', schemaVersion: 1 },
    data: {
      ...{ chatId: uuid(1), name: 'plans', path: 'plans.chat', agentId: 'main', role: null },
      ...{ sessionId: uuid(2), createdBy: 'local', createdAt: TIME, ...data },
    },
  }) as ChatEvent;
const findings = (...events: readonly ChatEvent[]): string[] =>
  findingsOf(chatsBeginOnce, placeIn(events.map((event) => [`chat-${uuid(1)}`, event] as const)));

describe('chats-begin-once', () => {
  it('accepts a chat whose file has its name', () => expect(findings(created())).toEqual([]));

  it.each<[string, ChatEvent[], string]>([
    ['a second creation', [created(), created()], `violation 2 chat ${uuid(1)} was created twice`],
    [
      'the id of another chat',
      [created({ chatId: uuid(3) })],
      `violation 1 the chat names itself ${uuid(3)}`,
    ],
    [
      'the path of another name',
      [created({ path: 'notes.chat' })],
      'violation 1 the chat "plans" has the path "notes.chat"',
    ],
  ])('finds %s', (_, events, finding) => expect(findings(...events)).toEqual([finding]));
});
