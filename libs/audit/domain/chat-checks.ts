import type { ChatCreated, ChatEvent, ChatRenamed } from '@antiphon/contracts/agent';
import {
  type ChatCheck,
  type CheckRun,
  type EventPlace,
  type Finding,
  type Parsed,
  violation,
} from './audit-check.js';

/**
 * Checks each `chat-` stream: one creation, then names until the deletion, and a path that is the
 * name. A `chat-name-` stream gives the name to one chat at a time.
 */
class ChatRun implements CheckRun<Parsed<ChatEvent>> {
  private chats = 0;
  /** Name of the chat of this stream; null once it is deleted. */
  private name: string | null = null;
  /** Chat of the name of this stream; null while the name is free. */
  private owner: string | null = null;

  see({ place: at, content }: Parsed<ChatEvent>): Finding[] {
    switch (content.type) {
      case 'ChatNameTaken':
      case 'ChatNameFreed':
        return this.seeName(at, content);
      case 'ChatCreated':
        return this.seeCreation(at, content.data);
      default:
        return this.seeChange(at, content);
    }
  }

  end(): Finding[] {
    this.name = null;
    this.owner = null;
    return [];
  }

  count(): number {
    return this.chats;
  }

  private seeCreation(at: EventPlace, data: ChatCreated['data']): Finding[] {
    this.chats++;
    const isSecond = at.streamVersion > 1;
    if (!isSecond) this.name = data.name;
    return [
      ...(isSecond ? [violation(at, `chat ${data.chatId} was created twice`)] : []),
      ...checkNames(at, data),
    ];
  }

  private seeChange(
    at: EventPlace,
    { type, data }: Exclude<ChatEvent, { type: 'ChatCreated' | 'ChatNameTaken' | 'ChatNameFreed' }>,
  ): Finding[] {
    const now = this.name;
    this.name = type === 'ChatRenamed' ? data.name : null;
    if (now === null) return [violation(at, `${type} of a chat that does not exist`)];
    const before = type === 'ChatRenamed' ? data.before : data.name;
    return [
      ...(before === now ? [] : [violation(at, `${type} says "${before}" of the chat "${now}"`)]),
      ...(type === 'ChatRenamed' ? checkNames(at, data) : []),
    ];
  }

  private seeName(
    at: EventPlace,
    { type, data: { name, chatId } }: Extract<ChatEvent, { type: 'ChatNameTaken' | 'ChatNameFreed' }>,
  ): Finding[] {
    const { owner } = this;
    this.owner = type === 'ChatNameTaken' ? chatId : null;
    if (type === 'ChatNameTaken')
      return owner === null ? [] : [violation(at, `the name "${name}" has two chats: ${owner}, ${chatId}`)];
    // The first chats took their names without a fact.
    if (at.streamVersion === 1 || owner === chatId) return [];
    return [violation(at, `chat ${chatId} gives up the name "${name}" of another`)];
  }
}

const checkNames = (
  at: EventPlace,
  { chatId, name, path }: ChatCreated['data'] | ChatRenamed['data'],
): Finding[] => [
  ...(at.streamId === `chat-${chatId}` ? [] : [violation(at, `the chat names itself ${chatId}`)]),
  ...(path === `${name}.chat` ? [] : [violation(at, `the chat "${name}" has the path "${path}"`)]),
];

export const chatsBeginOnce: ChatCheck = {
  name: 'chats-begin-once',
  about: 'every chat has one creation, its file is named as the chat is, and each name has one chat',
  counts: 'chats',
  start: () => new ChatRun(),
};
