import { request as httpRequest } from 'node:http';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { isPublicAddress } from '@antiphon/sandbox-domain';
import type { EgressPorts } from '../http/fetch-page.js';
import type { FilledRequest } from './fill-request.js';

export type SendEnd =
  | {
      readonly outcome: 'answered';
      readonly status: number;
      readonly retryAfter: string | null;
      readonly body: string;
    }
  | { readonly outcome: 'refused' | 'unreached' | 'unknown'; readonly reason: string };

export interface SendOnce {
  readonly idempotencyKey: string;
  /** Called right before the connection. The request does not leave if it returns false. */
  readonly claim: () => Promise<boolean>;
}

const MAX_ANSWER_BYTES = 1024 * 1024;
const MAX_HEADER_BYTES = 16 * 1024;
/** Maximum time of a request, ms. */
export const SEND_TIMEOUT_MS = 15_000;

const codeOf = (error: unknown): string => {
  const code = (error as { readonly code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : 'no answer';
};

const readBody = async (response: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length;
    // The message was taken: a longer answer is cut.
    if (length > MAX_ANSWER_BYTES) break;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
};

const toEnd = async (response: IncomingMessage): Promise<SendEnd> => {
  const { statusCode: status = 0, headers } = response;
  const after = headers['retry-after'];
  const retryAfter = typeof after === 'string' ? after.slice(0, 100) : null;
  // The status tells whether the platform took it, also if the rest is lost.
  const body = await readBody(response).catch(() => '');
  return { outcome: 'answered', status, retryAfter, body };
};

/** Resolves the address to connect to, or returns why there is none. */
const findAddress = async (
  { url, isOperators }: FilledRequest,
  { resolve }: Pick<EgressPorts, 'resolve'>,
): Promise<{ readonly address: string } | SendEnd> => {
  const host = url.host.replace(/^\[|\]$/g, '');
  const addresses = await resolve(host).catch(() => [] as string[]);
  const [address] = addresses;
  if (address === undefined) return { outcome: 'unreached', reason: `${host} could not be resolved` };
  if (!isOperators && !addresses.every(isPublicAddress))
    return { outcome: 'refused', reason: `${host} leads to an address that is not of the public internet` };
  return { address };
};

const open = (
  { method, url, headers, body }: FilledRequest,
  address: string,
  idempotencyKey: string,
  dial: EgressPorts['dial'],
  onConnected: () => void,
): ClientRequest => {
  const { host, port, secure, target } = url;
  const usual = port === (secure ? 443 : 80);
  const request = httpRequest({
    ...{ method, path: target, setHost: false, maxHeaderSize: MAX_HEADER_BYTES },
    headers: {
      ...headers,
      ...{ host: usual ? host : `${host}:${port}`, 'user-agent': 'antiphon-channel' },
      ...{ 'idempotency-key': idempotencyKey, 'accept-encoding': 'identity', connection: 'close' },
      ...(body === '' ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
    },
    createConnection: () => {
      const socket = dial({ address, port, host, secure });
      // From here on the request may arrive.
      socket.once(secure ? 'secureConnect' : 'connect', onConnected);
      return socket;
    },
  });
  request.end(body);
  return request;
};

/**
 * Sends a request to one vetted address. Follows no redirect, and never sends twice. Tells a
 * request that certainly did not leave from one whose answer is lost.
 */
export const sendRequest = async (
  filled: FilledRequest,
  { idempotencyKey, claim }: SendOnce,
  egress: EgressPorts,
  timeoutMs: number = SEND_TIMEOUT_MS,
): Promise<SendEnd> => {
  const found = await findAddress(filled, egress);
  if ('outcome' in found) return found;
  if (!(await claim())) return { outcome: 'unreached', reason: 'the attempt was settled before' };
  let isConnected = false;
  const request = open(filled, found.address, idempotencyKey, egress.dial, () => (isConnected = true));
  const timer = setTimeout(() => request.destroy(new Error('timeout')), timeoutMs);
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      request.once('response', resolve);
      request.once('error', reject);
    });
    return await toEnd(response);
  } catch (error) {
    const reason = isConnected ? `the answer is lost (${codeOf(error)})` : `not reached (${codeOf(error)})`;
    return { outcome: isConnected ? 'unknown' : 'unreached', reason };
  } finally {
    clearTimeout(timer);
    request.destroy();
  }
};
