import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { textCharset } from '@antiphon/sandbox-domain';
import type { VettedUrl } from '@antiphon/sandbox-domain';
import type { EgressPorts } from './egress.port.js';

/** The page was allowed and did not come; the message is for the plug-in. */
export class PageFailed extends Error {}

export type Page =
  | { readonly kind: 'page'; readonly status: number; readonly contentType: string; readonly text: string }
  | { readonly kind: 'redirect'; readonly location: string };

export interface PageRequest {
  readonly url: VettedUrl;
  /** Vetted: the only address that is connected to. */
  readonly address: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The same for each repeat of this page, so that the host can tell a repeat from another request. */
  readonly idempotencyKey: string;
  readonly signal: AbortSignal;
}

export const MAX_PAGE_BYTES = 256 * 1024;
const MAX_HEADER_BYTES = 16 * 1024;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const NO_CONTENT: ReadonlySet<number> = new Set([204, 304]);

/** Nothing of this machine or of anybody's account goes along. */
const ourHeaders = ({ url, headers, idempotencyKey }: PageRequest): Record<string, string> => ({
  accept: 'text/*, application/json, application/xml;q=0.9',
  ...headers,
  host: url.host,
  'user-agent': 'antiphon-http-get',
  'idempotency-key': idempotencyKey,
  'accept-encoding': 'identity',
  connection: 'close',
});

const respond = (page: PageRequest, dial: EgressPorts['dial']): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const { url, address, signal } = page;
    const { host, port, secure, target } = url;
    const request = httpRequest({
      method: 'GET',
      path: target,
      headers: ourHeaders(page),
      setHost: false,
      maxHeaderSize: MAX_HEADER_BYTES,
      createConnection: () => dial({ address, port, host, secure }),
      signal,
    });
    request.on('response', resolve);
    request.on('upgrade', (_response, socket) => {
      socket.destroy();
      reject(new PageFailed('the host answered with another protocol'));
    });
    request.on('error', reject);
    request.end();
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

const decoderFor = (charset: string): InstanceType<typeof TextDecoder> => {
  try {
    return new TextDecoder(charset);
  } catch {
    throw new PageFailed(`the page is in an unknown charset, ${charset}`);
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
  const text = decoderFor(charset).decode(await readBody(response));
  return { kind: 'page', status, contentType: contentType.slice(0, 200), text };
};

/** One GET to one address, without following anything. Throws `PageFailed`, or what the connection threw. */
export const getPage = async (page: PageRequest, dial: EgressPorts['dial']): Promise<Page> => {
  const response = await respond(page, dial);
  try {
    return await toPage(response);
  } finally {
    // The connection is never used again.
    response.destroy();
  }
};
