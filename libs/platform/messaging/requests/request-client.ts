import { errors } from '@nats-io/transport-node';
import type { Msg } from '@nats-io/transport-node';
import type { z } from 'zod';
import { bug, forbidden, invalid, isAppError, transient, withTimeout } from '@antiphon/kernel';
import type { AppError } from '@antiphon/kernel';
import { processSubject, type RequestContract } from '@antiphon/contracts/messaging';
import { addFoundIds, withSpan } from '@antiphon/observability';
import type { SpanStart } from '@antiphon/observability';
import { callWhileConnected, natsUnavailable } from '../link/nats-link.js';
import type { NatsLink } from '../link/nats-link.js';
import type { LocalHandler, LocalRequests } from './local-requests.js';
import { onServiceStart, serviceOf } from './service-starts.js';
import { contextFieldsOf, contextHeaders, fromWireError, parseJson } from './wire.js';
import type { WireReply } from './wire.js';

export interface RequestOptions {
  /** Default: the contract's timeout. */
  readonly timeoutMs?: number;
  /**
   * Process that shall handle it, for a contract with `toProcess`. Any process of the service does
   * if that one is gone.
   */
  readonly processId?: string | undefined;
  /**
   * True: fails with `MESSAGING.RESTARTED` when a process of the service starts, because the one
   * that had the request may have died.
   */
  readonly endsAtStart?: boolean;
}

/** Sends requests to other services. */
export interface RequestClient {
  /**
   * Sends the request with the current context's headers and returns the parsed reply. An error
   * reply is thrown as an AppError of the same kind and code.
   *
   * Throws `MESSAGING.NO_RESPONDERS`, `MESSAGING.TIMEOUT` or `MESSAGING.UNAVAILABLE`, all
   * transient. After any of them the request may or may not have run: retry with the same ids.
   * Throws `MESSAGING.FORBIDDEN` when the credential lacks the permission.
   */
  request<Request extends z.ZodType, Reply extends z.ZodType>(
    contract: RequestContract<Request, Reply>,
    payload: z.input<Request>,
    options?: RequestOptions,
  ): Promise<z.output<Reply>>;
}

const causeOf = (error: unknown): unknown =>
  error instanceof errors.RequestError && error.cause !== undefined ? error.cause : error;

/** Translates a failed NATS request to an AppError. */
export const translateRequestError = (subject: string, error: unknown): AppError => {
  const cause = causeOf(error);
  const details = { cause, data: { subject } };
  if (cause instanceof errors.NoRespondersError)
    return transient(
      'MESSAGING.NO_RESPONDERS',
      'no process of the service answers: it may be restarting, so try again in a few seconds',
      details,
    );
  if (cause instanceof errors.TimeoutError)
    return transient('MESSAGING.TIMEOUT', 'the service did not answer in time', details);
  if (cause instanceof errors.PermissionViolationError)
    return forbidden('MESSAGING.FORBIDDEN', 'this service may not send that request', details);
  if (cause instanceof errors.InvalidArgumentError)
    return invalid('MESSAGING.TOO_LARGE', 'the request is larger than a message may be', details);
  return natsUnavailable(error);
};

const unpack = <Reply extends z.ZodType>(
  reply: Reply,
  data: Uint8Array,
  subject: string,
): z.output<Reply> => {
  const body = parseJson(data, 'MESSAGING.BAD_REPLY') as WireReply;
  if (!body.ok) throw fromWireError(body.error);
  const parsed = reply.safeParse(body.result);
  if (parsed.success) {
    addFoundIds(contextFieldsOf(parsed.data));
    return parsed.data;
  }
  throw bug('MESSAGING.BAD_REPLY', 'the reply does not match its contract', {
    cause: parsed.error,
    data: { subject },
  });
};

const send = async (link: NatsLink, subject: string, payload: string, timeout: number): Promise<Msg> => {
  try {
    return await callWhileConnected(link, () =>
      link.connection.request(subject, payload, { timeout, headers: contextHeaders(link.service) }),
    );
  } catch (error) {
    const isTranslated = (error as Partial<AppError>).code === 'MESSAGING.UNAVAILABLE';
    throw isTranslated ? error : translateRequestError(subject, error);
  }
};

/** Refusals of a request to one process before any process has it: NATS may have older permissions. */
const NOT_BEGUN: ReadonlySet<unknown> = new Set(['MESSAGING.NO_RESPONDERS', 'MESSAGING.FORBIDDEN']);

/** Sends a request to one process, or to any if that one cannot be reached. */
const sendToProcess = async (
  link: NatsLink,
  { subject, processId }: { readonly subject: string; readonly processId: string },
  payload: string,
  timeout: number,
): Promise<Msg> => {
  try {
    return await send(link, processSubject(subject, processId), payload, timeout);
  } catch (error) {
    if (!NOT_BEGUN.has((error as Partial<AppError>).code)) throw error;
    return send(link, subject, payload, timeout);
  }
};

/** Sends a request to a service in this process, with the limits of NATS: size and time. */
const sendLocally = async (
  handler: LocalHandler,
  link: NatsLink,
  payload: string,
  timeout: number,
): Promise<Uint8Array> => {
  if (Buffer.byteLength(payload) > (link.connection.info?.max_payload ?? Infinity))
    throw invalid('MESSAGING.TOO_LARGE', 'the request is larger than a message may be');
  const reply = handler(payload, contextHeaders(link.service));
  return Buffer.from(
    await withTimeout(reply, timeout, () =>
      transient('MESSAGING.TIMEOUT', 'the service did not answer in time'),
    ),
  );
};

/** Waits for a reply, or until a process of the service starts. */
const racedWithStart = async (link: NatsLink, subject: string, sent: Promise<Msg>): Promise<Msg> => {
  let stop = (): void => undefined;
  const started = new Promise<never>((_resolve, reject) => {
    const fail = (): void =>
      reject(transient('MESSAGING.RESTARTED', 'a process of the service started before it answered'));
    stop = onServiceStart(link.connection, serviceOf(subject), fail);
  });
  try {
    return await Promise.race([sent, started]);
  } finally {
    stop();
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

/**
 * Creates a client on the process's connection; the wire form is that of `RequestServer`
 * (docs/adr/0020). Requests to services in this process do not go to NATS (docs/adr/0165).
 */
export const createRequestClient = (link: NatsLink, local?: LocalRequests): RequestClient => ({
  request: (contract, payload, { timeoutMs = contract.timeoutMs, processId, endsAtStart } = {}) =>
    withSpan(spanOf(contract.subject), async () => {
      const [{ subject }, text] = [contract, JSON.stringify(payload)];
      addFoundIds(contextFieldsOf(payload));
      const handler = local?.find(subject);
      const isAddressed = processId !== undefined && contract.toProcess === true;
      if (handler) return unpack(contract.reply, await sendLocally(handler, link, text, timeoutMs), subject);
      const sent = isAddressed
        ? sendToProcess(link, { subject, processId }, text, timeoutMs)
        : send(link, subject, text, timeoutMs);
      const { data } = await (endsAtStart === true ? racedWithStart(link, subject, sent) : sent);
      return unpack(contract.reply, data, subject);
    }),
});

/**
 * Timeout of the first attempt, ms: far longer than a reply takes, far shorter than a turn may
 * stall.
 */
const FIRST_ATTEMPT_MS = 2_000;
const MAY_BE_LOST: ReadonlySet<string> = new Set(['MESSAGING.TIMEOUT', 'MESSAGING.RESTARTED']);

/**
 * Sends an idempotent request, and retries it once: after a timeout, or as soon as a process of the
 * service starts. A request in flight to a process that died gets no reply; the retry reaches
 * another process and has the contract's whole timeout.
 */
export const requestWithRetry = async <T>(send: (options: RequestOptions) => Promise<T>): Promise<T> => {
  try {
    return await send({ timeoutMs: FIRST_ATTEMPT_MS, endsAtStart: true });
  } catch (error) {
    if (!isAppError(error) || !MAY_BE_LOST.has(error.code)) throw error;
    return send({});
  }
};
