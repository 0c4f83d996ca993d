import { randomUUID } from 'node:crypto';
import type { ChatView, Frame } from '@antiphon/contracts/agent';
import { LOCAL_OPERATOR } from '../access/authenticator.js';
import type { ChatPipe } from '../chats/chat-pipe.js';
import type { ResumeGateway } from './resume-world.js';

/** An event as a reader of a chat gets it. */
export interface ReadEvent {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Returns the chat of a session. */
export const chatOf = (sessionId: string): ChatView => ({
  ...{ id: randomUUID(), name: 'spec', path: 'spec.chat', is_virtual: true as const },
  ...{ agentId: 'main', role: null, sessionId, createdAt: '2026-11-22T10:00:00.000Z', revision: 1 },
});

/** Opens a stream as a request of a local client does. */
export const openPipe = (
  { chats }: ResumeGateway,
  sessionId: string,
  lastEventId?: string,
  from: 'start' | 'end' = 'start',
): Promise<ChatPipe> => chats.open({ principal: LOCAL_OPERATOR, chat: chatOf(sessionId), lastEventId, from });

const parse = (block: string): ReadEvent[] => {
  const field = (name: string): string | undefined => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1];
  const data = field('data');
  if (data === undefined) return [];
  return [{ id: field('id'), event: field('event') ?? '', data: JSON.parse(data) as ReadEvent['data'] }];
};

/** Reads events until `isLast`, the end of the stream, or `stopAfter` events; then drops it. */
export const readPipe = async (
  pipe: ChatPipe,
  isLast: (event: ReadEvent) => boolean,
  stopAfter = Infinity,
): Promise<ReadEvent[]> => {
  const events: ReadEvent[] = [];
  let rest = '';
  for await (const chunk of pipe) {
    const blocks = (rest + String(chunk)).split('\n\n');
    rest = blocks.pop() ?? '';
    for (const event of blocks.flatMap(parse)) {
      events.push(event);
      if (isLast(event) || events.length >= stopAfter) return events;
    }
  }
  return events;
};

/** Result of a reader that was dropped again and again. */
export interface DropResult {
  readonly drops: number;
  /** Events of the log, without `ready` and other events of the stream itself. */
  readonly events: readonly ReadEvent[];
}

const inLog = ({ event, id }: ReadEvent): boolean => id !== undefined && event !== 'ready';

/**
 * Reads a chat to its last frame through drops. Each connection ends after a few events, also
 * before the first one. The next is opened at the next gateway.
 */
export const readWithDrops = async (
  gateways: readonly ResumeGateway[],
  sessionId: string,
  last: Frame,
  random: () => number,
): Promise<DropResult> => {
  const events: ReadEvent[] = [];
  let lastEventId: string | undefined;
  const isLast = ({ id }: ReadEvent): boolean => id?.endsWith(`.${last.offset}`) === true;
  for (let drops = 0; ; drops++) {
    const gateway = gateways[drops % gateways.length] as ResumeGateway;
    const pipe = await openPipe(gateway, sessionId, lastEventId);
    const read = await readPipe(pipe, isLast, 1 + Math.floor(random() * 6));
    events.push(...read.filter(inLog));
    lastEventId = read.findLast(({ id }) => id !== undefined)?.id ?? lastEventId;
    if (read.some((event) => inLog(event) && isLast(event))) return { drops, events };
  }
};
