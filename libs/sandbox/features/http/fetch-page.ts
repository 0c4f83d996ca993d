import { lookup } from 'node:dns/promises';
import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { connect as connectPlain } from 'node:net';
import type { Socket } from 'node:net';
import { connect as connectSecure } from 'node:tls';
import { textCharset } from '@antiphon/sandbox-domain';
import type { HttpMethod, VettedUrl } from '@antiphon/sandbox-domain';

/** Target of a connection: a vetted address, and the host name that TLS verifies. */
export interface DialTarget {
  readonly address: string;
  readonly port: number;
  readonly host: string;
  readonly secure: boolean;
}

/**
 * Port to the network. Specs connect it to a server of their own. The caller vets the addresses
 * first, so this port does not.
 */
export interface EgressPorts {
  /** Resolves all addresses of a name, once. */
  readonly resolve: (host: string) => Promise<readonly string[]>;
  /** Connects to the address itself, without another name lookup. */
  readonly dial: (target: DialTarget) => Socket;
}

export const systemEgress: EgressPorts = {
  resolve: async (host) => (await lookup(host, { all: true, verbatim: true })).map(({ address }) => address),
  dial: ({ address, port, host, secure }) =>
    secure
      ? connectSecure({ host: address, port, servername: host, ALPNProtocols: ['http/1.1'] })
      : connectPlain({ host: address, port }),
};

/** Failure of an allowed page request; the message is for the plug-in. */
export class PageFailed extends Error {}

export type Page =
  | { readonly kind: 'page'; readonly status: number; readonly contentType: string; readonly text: string }
  | { readonly kind: 'redirect'; readonly location: string };

export interface PageRequest {
  readonly method: HttpMethod;
  /** Empty for a request without a body. */
  readonly body: string;
  readonly url: VettedUrl;
  /** Vetted address; the only one that is connected to. */
  readonly address: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The same for each retry of this page, so that the host can detect a retry. */
  readonly idempotencyKey: string;
  readonly signal: AbortSignal;
}

export const MAX_PAGE_BYTES = 256 * 1024;
const MAX_HEADER_BYTES = 16 * 1024;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const NO_CONTENT: ReadonlySet<number> = new Set([204, 304]);

/** Returns the request headers, without any fact about this machine. */
const buildHeaders = ({ url, headers, idempotencyKey, body }: PageRequest): Record<string, string> => ({
  accept: 'text/*, application/json, application/xml;q=0.9',
  ...headers,
  host: url.authority,
  'user-agent': 'antiphon-http-get',
  'idempotency-key': idempotencyKey,
  'accept-encoding': 'identity',
  connection: 'close',
  ...(body === '' ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
});

const sendRequest = (page: PageRequest, dial: EgressPorts['dial']): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const { method, url, address, signal, body } = page;
    const { host, port, secure, target } = url;
    const request = httpRequest({
      method,
      path: target,
      headers: buildHeaders(page),
      setHost: false,
      maxHeaderSize: MAX_HEADER_BYTES,
      createConnection: () => dial({ address, port, host, secure }),
      signal,
    });
    request.on('response', resolve);
    request.on('upgrade', (_response, socket) => {
      socket.destroy();
      reject(new PageFailed('the host switched to another protocol'));
    });
    request.on('error', reject);
    request.end(body === '' ? undefined : body);
  });

const readBody = async (response: IncomingMessage): Promise<Buffer> => {
  const tooLarge = (): PageFailed => new PageFailed(`the page has over ${MAX_PAGE_BYTES} bytes`);
  if (Number(response.headers['content-length'] ?? 0) > MAX_PAGE_BYTES) throw tooLarge();
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > MAX_PAGE_BYTES) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
};

const createDecoder = (charset: string): InstanceType<typeof TextDecoder> => {
  try {
    return new TextDecoder(charset);
  } catch {
    throw new PageFailed('the page is in an unknown charset');
  }
};

const toPage = async (response: IncomingMessage): Promise<Page> => {
  const { statusCode: status = 0, headers } = response;
  if (REDIRECTS.has(status) && headers.location !== undefined)
    return { kind: 'redirect', location: headers.location };
  if (NO_CONTENT.has(status)) return { kind: 'page', status, contentType: '', text: '' };
  const encoding = headers['content-encoding'] ?? 'identity';
  if (encoding !== 'identity') throw new PageFailed('the page is compressed, which was not asked for');
  const contentType = headers['content-type'] ?? '';
  const charset = textCharset(contentType);
  if (charset === null)
    throw new PageFailed(`the page is not text (${contentType.slice(0, 100) || 'without a type'})`);
  const text = createDecoder(charset).decode(await readBody(response));
  return { kind: 'page', status, contentType: contentType.slice(0, 200), text };
};

/**
 * Sends one request to one address. Follows no redirect. Throws `PageFailed`, or the
 * connection's error.
 */
export const fetchPage = async (page: PageRequest, dial: EgressPorts['dial']): Promise<Page> => {
  const response = await sendRequest(page, dial);
  try {
    return await toPage(response);
  } finally {
    // The connection is never reused.
    response.destroy();
  }
};
