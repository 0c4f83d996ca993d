import { createHmac } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { abortable } from '@antiphon/kernel';
import { isPublicAddress } from '@antiphon/sandbox-domain';
import type { EgressPorts } from '../http/fetch-page.js';

/** A call as its endpoint gets it. */
export interface EndpointCall {
  readonly url: URL;
  readonly secret: string;
  /** Id of the attempt: the `webhook-id`. */
  readonly attemptId: string;
  readonly idempotencyKey: string;
  /** Body of the request, JSON. */
  readonly body: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Seconds since 1970. */
  readonly timestamp: number;
}

/**
 * End of a call. After `unreached` nothing was sent. After `lost` the endpoint may have acted, and
 * its answer is unknown.
 */
export type EndpointEnd =
  | { readonly end: 'answered'; readonly status: number; readonly isJson: boolean; readonly body: string }
  | { readonly end: 'too_large'; readonly bytes: number }
  | { readonly end: 'unreached'; readonly reason: string }
  | { readonly end: 'lost' | 'timeout' | 'cancelled' };

export interface EndpointPorts {
  readonly egress: EgressPorts;
  /** Hosts outside of the public internet that the operator allows, as `host` or `host:port`. */
  readonly privateHosts: readonly string[];
  /** Maximum size of an answer, bytes. */
  readonly maxBytes: number;
}

const isAllowed = ({ hostname, host }: URL, hosts: readonly string[]): boolean =>
  hosts.includes(hostname) || hosts.includes(host);

/** Returns why calls are not sent to a URL, or null. Names are resolved, and vetted, at each call. */
export const refuseEndpoint = (text: string, privateHosts: readonly string[]): string | null => {
  const url = URL.parse(text);
  if (url === null) return 'it is not a URL';
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'it is not one of http or https';
  if (url.username !== '' || url.password !== '') return 'it has credentials in it';
  if (isAllowed(url, privateHosts)) return null;
  if (url.protocol !== 'https:') return 'a host of the public internet needs https';
  const literal = url.hostname.replace(/^\[|\]$/g, '');
  const isAddress = /^[0-9.]+$/.test(literal) || literal.includes(':');
  return isAddress && !isPublicAddress(literal)
    ? `${url.host} is not of the public internet. What to do: name it in tools.private_hosts`
    : null;
};

/** Returns the key: base64 behind `whsec_`, else the text. An empty key would be one that all know. */
const keyOf = (secret: string): Buffer => {
  const decoded = secret.startsWith('whsec_') ? Buffer.from(secret.slice('whsec_'.length), 'base64') : null;
  return decoded !== null && decoded.length > 0 ? decoded : Buffer.from(secret);
};

/** Signs a request as Standard Webhooks does: HMAC-SHA256 of id, time and body. */
export const signCall = ({
  secret,
  attemptId,
  timestamp,
  body,
}: Pick<EndpointCall, 'secret' | 'attemptId' | 'timestamp' | 'body'>): string => {
  const signed = createHmac('sha256', keyOf(secret)).update(`${attemptId}.${timestamp}.${body}`);
  return `v1,${signed.digest('base64')}`;
};

const findAddress = async (
  { url }: EndpointCall,
  { egress, privateHosts }: EndpointPorts,
  ended: AbortSignal,
) => {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const addresses = await abortable(egress.resolve(host), ended).catch(() => [] as string[]);
  const [address] = addresses;
  if (address === undefined) return { reason: `${host} could not be resolved` };
  if (!isAllowed(url, privateHosts) && !addresses.every(isPublicAddress))
    return { reason: `${host} leads to an address that is not of the public internet` };
  return { address, host };
};

const readAnswer = async (response: IncomingMessage, maxBytes: number): Promise<EndpointEnd> => {
  const { statusCode: status = 0, headers } = response;
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maxBytes) return { end: 'too_large', bytes: length };
    chunks.push(chunk);
  }
  const isJson = /^application\/json\b/i.test(headers['content-type'] ?? '');
  return { end: 'answered', status, isJson, body: Buffer.concat(chunks).toString('utf8') };
};

/** Sends one signed POST to one vetted address. Follows no redirect, and never sends twice. */
export const callEndpoint = async (call: EndpointCall, ports: EndpointPorts): Promise<EndpointEnd> => {
  const { url, attemptId, idempotencyKey, body, timeoutMs, timestamp } = call;
  const timeout = AbortSignal.timeout(timeoutMs);
  const ended = AbortSignal.any([call.signal, timeout]);
  const found = await findAddress(call, ports, ended);
  if (call.signal.aborted) return { end: 'cancelled' };
  if (found.address === undefined) return { end: 'unreached', reason: found.reason };
  const { address, host } = found;
  const secure = url.protocol === 'https:';
  const port = url.port === '' ? (secure ? 443 : 80) : Number(url.port);
  let isConnected = false;
  const request = httpRequest({
    ...{ method: 'POST', path: `${url.pathname}${url.search}`, setHost: false, maxHeaderSize: 16 * 1024 },
    signal: ended,
    headers: {
      ...{ host: url.host, 'user-agent': 'antiphon-tool', accept: 'application/json, text/plain' },
      ...{ 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) },
      ...{ 'idempotency-key': idempotencyKey, 'webhook-id': attemptId },
      ...{ 'webhook-timestamp': String(timestamp), 'webhook-signature': signCall(call) },
      ...{ 'accept-encoding': 'identity', connection: 'close' },
    },
    createConnection: () => {
      const socket = ports.egress.dial({ address, port, host, secure });
      // From here on the request may arrive.
      socket.once(secure ? 'secureConnect' : 'connect', () => (isConnected = true));
      return socket;
    },
  });
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      request.once('response', resolve);
      request.once('error', reject);
      request.end(body);
    });
    return await readAnswer(response, ports.maxBytes);
  } catch (error) {
    if (call.signal.aborted) return { end: 'cancelled' };
    if (timeout.aborted) return { end: 'timeout' };
    if (isConnected) return { end: 'lost' };
    return { end: 'unreached', reason: String((error as { code?: unknown }).code ?? 'no connection') };
  } finally {
    request.destroy();
  }
};
