import type { ChatEvent } from '@antiphon/contracts/agent';
import { type ChatCheck, type CheckRun, type Finding, type Parsed, violation } from './audit-check.js';

/** Checks each `chat-` stream: one creation, whose path is the name of the chat. */
class ChatRun implements CheckRun<Parsed<ChatEvent>> {
  private chats = 0;

  see({ place: at, content: { data } }: Parsed<ChatEvent>): Finding[] {
    this.chats++;
    const findings: Finding[] = [];
    if (at.streamVersion > 1) findings.push(violation(at, `chat ${data.chatId} was created twice`));
    if (at.streamId !== `chat-${data.chatId}`)
      findings.push(violation(at, `the chat names itself ${data.chatId}`));
    if (data.path !== `${data.name}.chat`)
      findings.push(violation(at, `the chat "${data.name}" has the path "${data.path}"`));
    return findings;
  }

  end(): Finding[] {
    return [];
  }

  count(): number {
    return this.chats;
  }
}

export const chatsBeginOnce: ChatCheck = {
  name: 'chats-begin-once',
  about: 'every chat has one creation, and its file is named as the chat is',
  counts: 'chats',
  start: () => new ChatRun(),
};
