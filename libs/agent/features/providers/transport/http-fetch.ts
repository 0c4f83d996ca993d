import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import https from 'node:https';
import { ModelFailure } from '@antiphon/agent-domain';
import { nestsDeeperThan } from '@antiphon/kernel';
import { readBody } from './answer-body.js';
import { codesOf, messageOf, parseJson } from './error-body.js';
import { brokenAnswer, cutAnswer, unreachable } from './failure.js';
import type { Flight } from './flight.js';

/** What of a request's headers goes out. The SDKs' own telemetry (`x-stainless-*`) and headers from the environment do not. */
const SENT_HEADERS = [
  'authorization',
  'x-api-key',
  'anthropic-version',
  'anthropic-beta',
  'content-type',
  'accept',
];

/** How deep an answer may nest: a tool's input (64, contract §3) within the vendor's envelope. */
const MAX_ANSWER_DEPTH = 80;

/** Free connections live shorter than the shortest keep-alive in common use (5 s), so that none is reused while it dies. */
const FREE_SOCKET_MS = 4_000;

const agentOptions = { keepAlive: true, scheduling: 'lifo', timeout: FREE_SOCKET_MS } as const;

/** Connections to providers, kept between calls. */
export interface Connections {
  readonly http: http.Agent;
  readonly https: https.Agent;
  close(): void;
}

export const openConnections = (): Connections => {
  const plain = new http.Agent(agentOptions);
  const secure = new https.Agent(agentOptions);
  return {
    http: plain,
    https: secure,
    close: () => {
      plain.destroy();
      secure.destroy();
    },
  };
};

/** The SDKs' `fetchOptions`, which carry a call's flight through the vendor's code to our fetch. */
export const carryFlight = (flight: Flight): object => ({ flight });

export type ProviderFetch = (url: string | URL | Request, init?: RequestInit) => Promise<Response>;

type FlightInit = RequestInit & { readonly flight: Flight };

const outgoingHeaders = (init: RequestInit, body: string): Record<string, string | number> => {
  const given = new Headers(init.headers);
  const headers: Record<string, string | number> = {
    'user-agent': 'antiphon/0.1.0',
    'accept-encoding': 'identity',
    'content-length': Buffer.byteLength(body),
  };
  for (const name of SENT_HEADERS) {
    const value = given.get(name);
    if (value !== null) headers[name] = value;
  }
  return headers;
};

/** Tells the flight when the request's bytes can first have left for the provider. */
const watchConnection = (request: ClientRequest, secure: boolean, flight: Flight): void => {
  request.once('socket', (socket) => {
    if (request.reusedSocket || !socket.connecting) flight.connected();
    else socket.once(secure ? 'secureConnect' : 'connect', () => flight.connected());
  });
};

const respond = (body: string, status: number, type: string): Response =>
  new Response(body, { status, headers: { 'content-type': type } });

const mediaTypeOf = (incoming: IncomingMessage): string =>
  (incoming.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? '';

const isJson = (type: string): boolean => type === 'application/json' || type.endsWith('+json');

const refusalResponse = async (incoming: IncomingMessage, flight: Flight): Promise<Response> => {
  const body = await readBody(incoming, flight, { limit: flight.limits.maxErrorBytes, cut: true });
  const status = incoming.statusCode ?? 0;
  flight.refusal = { status, headers: incoming.headers, body: body.toString('utf8') };
  // The adapter reads the refusal from the flight; the SDK only has to see that there was one.
  return respond('{}', 500, 'application/json');
};

/** A 2xx with the wrong kind of body: an error in disguise, or somebody else's page. */
const wrongTypeResponse = async (
  incoming: IncomingMessage,
  flight: Flight,
  type: string,
): Promise<Response> => {
  const body = await readBody(incoming, flight, { limit: flight.limits.maxErrorBytes, cut: true });
  const text = body.toString('utf8');
  const json = parseJson(text);
  const hasError = typeof json === 'object' && json !== null && 'error' in json;
  if (!hasError) {
    const expected = flight.streaming ? 'text/event-stream' : 'application/json';
    throw brokenAnswer(`the provider answered with ${type || 'no content type'} instead of ${expected}`, {
      retryable: false,
    });
  }
  const status = Number(codesOf(json).find((code) => /^[45]\d\d$/.test(code)) ?? 500);
  flight.refusal = { status, headers: incoming.headers, body: JSON.stringify({ error: messageOf(json) }) };
  return respond('{}', 500, 'application/json');
};

const wholeResponse = async (
  incoming: IncomingMessage,
  flight: Flight,
  status: number,
): Promise<Response> => {
  const body = await readBody(incoming, flight, { limit: flight.limits.maxAnswerBytes, cut: false });
  const text = body.toString('utf8').replace(/^\uFEFF/, '');
  if (nestsDeeperThan(text, MAX_ANSWER_DEPTH)) throw brokenAnswer("the provider's answer nests too deep");
  return respond(text, status, 'application/json');
};

const toResponse = async (incoming: IncomingMessage, flight: Flight): Promise<Response> => {
  const status = incoming.statusCode ?? 0;
  if (status < 200 || status > 299) return refusalResponse(incoming, flight);
  const encoding = incoming.headers['content-encoding'] ?? 'identity';
  if (encoding !== 'identity')
    throw brokenAnswer(`the provider compressed its answer (${encoding}) unasked`, { retryable: false });
  const type = mediaTypeOf(incoming);
  if (flight.streaming && (type === 'text/event-stream' || type === '')) {
    flight.answer = incoming;
    return respond('', 200, 'text/event-stream');
  }
  if (!flight.streaming && (isJson(type) || type === '')) return wholeResponse(incoming, flight, 200);
  return wrongTypeResponse(incoming, flight, type);
};

const connectionFailure = (error: NodeJS.ErrnoException, flight: Flight): ModelFailure =>
  error.code?.startsWith('HPE_')
    ? brokenAnswer('the provider did not answer in HTTP', { cause: error, retryable: false })
    : unreachable(flight.dispatched, error);

const send = (connections: Connections, url: URL, init: FlightInit, body: string): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const { flight } = init;
    const secure = url.protocol === 'https:';
    const request = (secure ? https : http).request(url, {
      method: 'POST',
      headers: outgoingHeaders(init, body),
      agent: secure ? connections.https : connections.http,
    });
    let answer: IncomingMessage | undefined;
    watchConnection(request, secure, flight);
    request.once('response', (incoming) => resolve((answer = incoming)));
    // The listener outlives the answer's head, so that a late error finds somebody.
    request.on('error', (error) => {
      if (answer === undefined) flight.fail(connectionFailure(error, flight));
      else if (!flight.finished) flight.fail(cutAnswer(error));
    });
    flight.onStop(() => {
      reject(flight.failure ?? unreachable(flight.dispatched));
      if (answer?.complete !== true) request.destroy();
    });
    request.end(body);
  });

/**
 * A `fetch` for the vendors' SDKs that posts over kept-alive HTTP/1.1 connections under the flight's clocks.
 * Redirects are not followed: they would carry the key somewhere else.
 * Every failure is set on the flight as a ModelFailure and thrown, in that order.
 */
export const createHttpFetch =
  (connections: Connections): ProviderFetch =>
  async (url, init) => {
    const flightInit = init as FlightInit;
    const { flight } = flightInit;
    if (flight.failure !== null) throw flight.failure;
    if (typeof init?.body !== 'string') throw new TypeError('only a JSON body can be sent to a provider');
    const incoming = await send(
      connections,
      new URL(url instanceof Request ? url.url : url),
      flightInit,
      init.body,
    );
    try {
      return await toResponse(incoming, flight);
    } catch (error) {
      // The SDK wraps what its fetch throws; the flight keeps it as it is.
      if (error instanceof ModelFailure) flight.fail(error);
      incoming.destroy();
      throw error;
    }
  };
