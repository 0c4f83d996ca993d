import { errors } from '@nats-io/transport-node';
import type { Msg } from '@nats-io/transport-node';
import type { z } from 'zod';
import { bug, forbidden, invalid, transient } from '@antiphon/kernel';
import type { AppError } from '@antiphon/kernel';
import type { RequestContract } from '@antiphon/contracts/messaging';
import { withSpan } from '@antiphon/observability';
import type { SpanStart } from '@antiphon/observability';
import { natsUnavailable, callWhileConnected } from '../link/nats-link.js';
import type { NatsLink } from '../link/nats-link.js';
import { contextHeaders, fromWireError, parseJson } from './wire.js';
import type { WireReply } from './wire.js';

export interface RequestOptions {
  /** Default: the contract's. */
  readonly timeoutMs?: number;
}

/** Asks other services. */
export interface RequestClient {
  /**
   * Sends the request with the current context's headers and answers the parsed reply.
   * Throws what the service answered, as an AppError of the same kind and code; else, all transient and none of them
   * telling whether the request was carried out (retry with the same ids): `MESSAGING.NO_RESPONDERS`,
   * `MESSAGING.TIMEOUT`, `MESSAGING.UNAVAILABLE`. `MESSAGING.FORBIDDEN`: the credential may not ask this.
   */
  request<Request extends z.ZodType, Reply extends z.ZodType>(
    contract: RequestContract<Request, Reply>,
    payload: z.input<Request>,
    options?: RequestOptions,
  ): Promise<z.output<Reply>>;
}

const causeOf = (error: unknown): unknown =>
  error instanceof errors.RequestError && error.cause !== undefined ? error.cause : error;

/** What a request failed of, as an AppError. */
export const translateRequestError = (subject: string, error: unknown): AppError => {
  const cause = causeOf(error);
  const data = { subject };
  if (cause instanceof errors.NoRespondersError)
    return transient('MESSAGING.NO_RESPONDERS', 'no process of the service is there to answer', {
      cause,
      data,
    });
  if (cause instanceof errors.TimeoutError)
    return transient('MESSAGING.TIMEOUT', 'the service did not answer in time', { cause, data });
  if (cause instanceof errors.PermissionViolationError)
    return forbidden('MESSAGING.FORBIDDEN', 'this service may not ask that', { cause, data });
  if (cause instanceof errors.InvalidArgumentError)
    return invalid('MESSAGING.TOO_LARGE', 'the request is larger than a message may be', { cause, data });
  return natsUnavailable(error);
};

const send = (link: NatsLink, subject: string, payload: string, timeout: number): Promise<Msg> =>
  callWhileConnected(link, () =>
    link.connection.request(subject, payload, { timeout, headers: contextHeaders(link.service) }),
  );

const unpack = <Reply extends z.ZodType>(reply: Reply, message: Msg, subject: string): z.output<Reply> => {
  const body = parseJson(message.data, 'MESSAGING.BAD_REPLY') as WireReply;
  if (!body.ok) throw fromWireError(body.error);
  const parsed = reply.safeParse(body.result);
  if (parsed.success) return parsed.data;
  throw bug('MESSAGING.BAD_REPLY', 'the reply does not match its contract', {
    cause: parsed.error,
    data: { subject },
  });
};

const ask = async (link: NatsLink, subject: string, payload: string, timeoutMs: number): Promise<Msg> => {
  try {
    return await send(link, subject, payload, timeoutMs);
  } catch (error) {
    throw (error as Partial<AppError>).code === 'MESSAGING.UNAVAILABLE'
      ? error
      : translateRequestError(subject, error);
  }
};

const spanOf = (subject: string): SpanStart => ({
  name: subject,
  role: 'client',
  attributes: {
    'messaging.system': 'nats',
    'messaging.operation.type': 'send',
    'messaging.destination.name': subject,
  },
});

/** Request/reply on the process's connection, in the wire form that `RequestServer` speaks (docs/adr/0020). */
export const createRequestClient = (link: NatsLink): RequestClient => ({
  request: (contract, payload, { timeoutMs = contract.timeoutMs } = {}) =>
    withSpan(spanOf(contract.subject), async () => {
      const message = await ask(link, contract.subject, JSON.stringify(payload), timeoutMs);
      return unpack(contract.reply, message, contract.subject);
    }),
});
