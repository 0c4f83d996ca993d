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
const changed = (type: ChatEvent['type'], data: object = {}): ChatEvent =>
  ({
    ...{ type, schemaVersion: 1 },
    data: { chatId: uuid(1), name: 'plans', actor: 'local', at: TIME, ...data },
  }) as ChatEvent;
const renamed = (data: object = {}): ChatEvent =>
  changed('ChatRenamed', { name: 'notes', path: 'notes.chat', before: 'plans', ...data });
const named = (...events: readonly ChatEvent[]): string[] =>
  findingsOf(chatsBeginOnce, placeIn(events.map((event) => [`chat-name-${uuid(9)}`, event] as const)));
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
    [
      'a new name that is not the path',
      [created(), renamed({ path: 'plans.chat' })],
      'violation 2 the chat "notes" has the path "plans.chat"',
    ],
    [
      'a new name that contradicts the old one',
      [created(), renamed({ before: 'drafts' })],
      'violation 2 ChatRenamed says "drafts" of the chat "plans"',
    ],
    [
      'a new name of a deleted chat',
      [created(), changed('ChatDeleted'), renamed()],
      'violation 3 ChatRenamed of a chat that does not exist',
    ],
  ])('finds %s', (_, events, finding) => expect(findings(...events)).toEqual([finding]));

  it('accepts new names and the end of a chat', () =>
    expect(findings(created(), renamed(), changed('ChatDeleted', { name: 'notes' }))).toEqual([]));

  it('finds a name that two chats have, and one that another chat gives up', () => {
    const [taken, other] = [changed('ChatNameTaken'), { chatId: uuid(3) }];
    expect(named(taken, changed('ChatNameFreed'), changed('ChatNameTaken', other))).toEqual([]);
    expect(named(taken, changed('ChatNameTaken', other))).toEqual([
      `violation 2 the name "plans" has two chats: ${uuid(1)}, ${uuid(3)}`,
    ]);
    expect(named(taken, changed('ChatNameFreed', other))).toEqual([
      `violation 2 chat ${uuid(3)} gives up the name "plans" of another`,
    ]);
  });
});
