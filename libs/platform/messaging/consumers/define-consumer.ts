import type { z } from 'zod';
import type { StreamName } from '../link/streams.js';
import type { AckPolicy } from './ack-policy.js';

/** Delivery data of a message, passed to its handler with the content. */
export interface MessageMeta {
  /**
   * The same for every delivery: the event's id. Handlers deduplicate by it, or by the event
   * stream's version.
   */
  readonly messageId: string;
  readonly subject: string;
  /** Sequence in the JetStream stream; for `EVENTS` it is the event's position in the log. */
  readonly sequence: number;
  /** 1 for the first delivery. */
  readonly deliveryCount: number;
}

/** Settings of a consumer, without its handler. */
export interface ConsumerSettings<Schema extends z.ZodType> {
  /** `<service>-<purpose>`: processes with the same name share its messages. */
  readonly durable: string;
  /** `evt.…`, with wildcards. The stream follows from the first token. */
  readonly subject: string;
  /**
   * Schema of the whole message; for events the stored event, of which an object schema picks
   * fields.
   */
  readonly schema: Schema;
  /** Event types to handle; others of the subject are skipped. Default: every message. */
  readonly types?: readonly string[];
  /** Maximum messages in progress in one process. Default: 16. */
  readonly concurrency?: number;
  /**
   * Pause before the next pull while fewer messages wait than one pull takes, ms. Messages arrive
   * together then, later by at most this time. The server and this process wake less often.
   * Default: none.
   */
  readonly gatherMs?: number;
  /**
   * `subject`: handles the messages of one subject (one event stream) in order within a process,
   * behind one that waits for its retry. Several processes still share a subject: invariants need a
   * version check.
   */
  readonly order?: 'none' | 'subject';
  /** Time without a sign of life after which the server redelivers. Default: 10,000 ms. */
  readonly ackWaitMs?: number;
  readonly policy?: Partial<AckPolicy>;
}

export type MessageHandler<Schema extends z.ZodType> = (
  message: z.output<Schema>,
  meta: MessageMeta,
) => Promise<void>;

export interface ConsumerDefinition<Schema extends z.ZodType, Dependencies> extends ConsumerSettings<Schema> {
  /**
   * Makes the handler from its dependencies. It throws AppErrors, whose kind decides the
   * acknowledgement.
   */
  readonly handle: (dependencies: Dependencies) => MessageHandler<Schema>;
}

/** Declares a JetStream consumer; a ConsumerHost runs it. */
export const defineConsumer = <Schema extends z.ZodType, Dependencies>(
  definition: ConsumerDefinition<Schema, Dependencies>,
): ConsumerDefinition<Schema, Dependencies> => definition;

const STREAM_OF: Readonly<Record<string, StreamName>> = { evt: 'EVENTS', live: 'LIVE', dlq: 'DLQ' };

/** Returns the JetStream stream that holds a subject. */
export const streamOf = (subject: string): StreamName => {
  const stream = STREAM_OF[subject.split('.')[0] ?? ''];
  if (!stream) throw new Error(`no JetStream stream holds the subject ${subject}`);
  return stream;
};
