import type { RouteReply } from '@antiphon/client';

export type Message = RouteReply<'listWorkspaceMessages'>['messages'][number];

/** A message with its depth in its thread. */
export interface ThreadLine {
  readonly message: Message;
  readonly depth: number;
}

/** Deepest level that a thread is drawn at. */
const MAX_DEPTH = 8;

/** Returns the message that a message answers: of a reply the request, else its cause. */
export const parentOf = ({ type, content, causeId }: Message): string | null =>
  type === 'Reply' && typeof content['to'] === 'string' ? content['to'] : causeId;

/**
 * Returns messages with each reply below the message that it answers, oldest first within a
 * thread. Threads are in the order of their newest message, the newest first. A message whose
 * cause is not among them begins a thread.
 */
export const threadsOf = (messages: readonly Message[]): readonly ThreadLine[] => {
  const oldestFirst = messages.toSorted((a, b) => a.logPosition - b.logPosition);
  const known = new Map(oldestFirst.map((message) => [message.messageId, message]));
  const children = new Map<string, Message[]>();
  const roots: Message[] = [];
  for (const message of oldestFirst) {
    const parent = known.get(parentOf(message) ?? '');
    // Only an older message is a parent: a cause that a sender made up closes no circle.
    if (!parent || parent.logPosition >= message.logPosition) roots.push(message);
    else children.set(parent.messageId, [...(children.get(parent.messageId) ?? []), message]);
  }
  const lines = roots.map((root) => {
    const own: ThreadLine[] = [];
    const open: ThreadLine[] = [{ message: root, depth: 0 }];
    for (let line = open.pop(); line; line = open.pop()) {
      own.push(line);
      const depth = Math.min(line.depth + 1, MAX_DEPTH);
      for (const message of (children.get(line.message.messageId) ?? []).toReversed())
        open.push({ message, depth });
    }
    return { own, newest: Math.max(...own.map(({ message }) => message.logPosition)) };
  });
  return lines.toSorted((a, b) => b.newest - a.newest).flatMap(({ own }) => own);
};

/** Returns the text of a message in one line. */
export const lineOf = ({ content }: Message): string =>
  typeof content['text'] === 'string' ? content['text'] : JSON.stringify(content);

/** Returns to whom a message is. */
export const recipientOf = ({ to }: Message): string =>
  to.kind === 'agent' ? to.agentId : to.kind === 'topic' ? `topic ${to.topic}` : 'everyone';
