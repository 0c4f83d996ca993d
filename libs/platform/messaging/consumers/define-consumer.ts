import type { z } from 'zod';
import type { AckPolicy } from './ack-policy.js';
import type { StreamName } from '../link/streams.js';

/** What a handler learns about a message beside its content. */
export interface MessageMeta {
  /** The same for every delivery: the event's id. Handlers dedupe on it, or on the event stream's version. */
  readonly messageId: string;
  readonly subject: string;
  /** In the JetStream stream; for `EVENTS` it is the event's position in the log. */
  readonly sequence: number;
  /** 1 the first time. */
  readonly deliveryCount: number;
}

/** What a consumer is, without what it does. */
export interface ConsumerSettings<Schema extends z.ZodType> {
  /** `<service>-<purpose>`: processes with the same name share its messages. */
  readonly durable: string;
  /** `evt.…`, with wildcards. The stream follows from the first token. */
  readonly subject: string;
  /** Of the whole message; for events the stored event, of which an object schema picks what it names. */
  readonly schema: Schema;
  /** Event types that are handled; others of the subject are passed over. Without it, every message is. */
  readonly types?: readonly string[];
  /** Messages that one process works on at the same time, default 16. */
  readonly concurrency?: number;
  /**
   * `subject`: messages of one subject (one event stream) one after another within a process, and none before one
   * that waits for its retry. Several processes still share a subject: what must hold there is checked by version.
   */
  readonly order?: 'none' | 'subject';
  /** After this long without a word the server takes the process for dead, default 30,000 ms. */
  readonly ackWaitMs?: number;
  readonly policy?: Partial<AckPolicy>;
}

export type MessageHandler<Schema extends z.ZodType> = (
  message: z.output<Schema>,
  meta: MessageMeta,
) => Promise<void>;

export interface ConsumerDefinition<Schema extends z.ZodType, Dependencies> extends ConsumerSettings<Schema> {
  /** Makes the handler from what the service has. It throws an AppError by the table of house style §5. */
  readonly handle: (dependencies: Dependencies) => MessageHandler<Schema>;
}

/** Declares a JetStream consumer; a ConsumerHost runs it. */
export const defineConsumer = <Schema extends z.ZodType, Dependencies>(
  definition: ConsumerDefinition<Schema, Dependencies>,
): ConsumerDefinition<Schema, Dependencies> => definition;

const STREAM_OF: Readonly<Record<string, StreamName>> = { evt: 'EVENTS', live: 'LIVE', dlq: 'DLQ' };

/** The JetStream stream that has a subject. */
export const streamOf = (subject: string): StreamName => {
  const stream = STREAM_OF[subject.split('.')[0] ?? ''];
  if (!stream) throw new Error(`no JetStream stream of ours has the subject ${subject}`);
  return stream;
};
