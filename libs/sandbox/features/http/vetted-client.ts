import { isPublicAddress, readHttpRequest, vetUrl } from '@antiphon/sandbox-domain';
import type { UrlVerdict, VettedUrl } from '@antiphon/sandbox-domain';
import type { Logger } from '@antiphon/observability';
import type { HttpAnswer, ServeHttp } from '../cell/exchange.js';
import type { EgressPorts } from './egress.port.js';
import { PageFailed, getPage } from './get-page.js';
import type { Page } from './get-page.js';

/** What one plug-in may ask the world for. */
export interface HttpGrant {
  readonly plugin: string;
  readonly hosts: ReadonlySet<string>;
  /** Of its calls, ms: a page gets most of it, so that the plug-in can still say what went wrong. */
  readonly timeoutMs: number;
  /** Of the call: its first page has this `Idempotency-Key`, the nth `<key>.n`. */
  readonly idempotencyKey: string;
}

/** The one way out of the sandbox: every request is vetted here, in the service, never in a cell. */
export interface VettedClient {
  /** For one call of a plug-in, which may ask for a few pages one after another. */
  forCall(grant: HttpGrant): ServeHttp;
}

export interface VettedClientOptions {
  readonly egress: EgressPorts;
  readonly logger: Logger;
  /** Milliseconds, of any clock that does not go back. */
  readonly now: () => number;
}

const MAX_REDIRECTS = 3;
const MAX_PAGES_PER_CALL = 5;
const MAX_PAGES_PER_WINDOW = 60;
const WINDOW_MS = 60_000;
const MAX_PAGE_MS = 10_000;
const SHARE_OF_CALL = 0.8;

/** The plug-in may not have this; the message is for the model and the operator. */
class PageRefused extends Error {}

const encoder = new TextEncoder();
const refused = (reason: string): HttpAnswer => ({
  head: { end: 'refused', reason: `http: ${reason}` },
  body: new Uint8Array(0),
});
const failedWith = (reason: string): HttpAnswer => ({
  head: { end: 'failed' },
  body: encoder.encode(`http: ${reason}`),
});

const orRefuse = (verdict: UrlVerdict): VettedUrl => {
  if (verdict.ok) return verdict;
  throw new PageRefused(verdict.reason);
};

/** Rejects when the signal says so, whatever the work does. */
const unlessAborted = <T>(work: Promise<T>, signal: AbortSignal): Promise<T> => {
  const aborted = new Promise<never>((_, reject) => {
    const stop = (): void => reject(signal.reason as Error);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  });
  return Promise.race([work, aborted]);
};

/** All addresses of a name have to be public: of a mixed answer, nobody could say which one was meant. */
const resolvePublic = async (
  host: string,
  { resolve }: EgressPorts,
  signal: AbortSignal,
): Promise<string> => {
  const addresses = await unlessAborted(resolve(host), signal).catch((error: unknown) => {
    if (signal.aborted) throw error;
    throw new PageFailed(`${host} could not be resolved`);
  });
  if (!addresses.every(isPublicAddress))
    throw new PageRefused(`${host} leads to an address that is not of the public internet`);
  const [address] = addresses;
  if (address === undefined) throw new PageFailed(`${host} has no address`);
  return address;
};

/** How many pages a plug-in may still have in this minute. */
const createWindow = (now: () => number) => {
  let begun = -Infinity;
  let pages = 0;
  return (): boolean => {
    if (now() - begun >= WINDOW_MS) {
      begun = now();
      pages = 0;
    }
    pages += 1;
    return pages <= MAX_PAGES_PER_WINDOW;
  };
};

/** Two pages of one call are two requests, whatever their host takes the key for. */
const keyOfPage = ({ idempotencyKey }: HttpGrant, page: number): string =>
  page === 1 ? idempotencyKey : `${idempotencyKey}.${page}`;

const describe = (error: unknown, signal: AbortSignal): string => {
  if (error instanceof PageFailed) return error.message;
  if (signal.aborted) return 'the page did not come in time';
  const code = (error as { readonly code?: unknown } | null)?.code;
  return `the page could not be had (${typeof code === 'string' ? code : 'unknown error'})`;
};

export const createVettedClient = ({ egress, logger, now }: VettedClientOptions): VettedClient => {
  const windows = new Map<string, () => boolean>();
  const windowOf = (plugin: string): (() => boolean) => {
    const window = windows.get(plugin) ?? createWindow(now);
    windows.set(plugin, window);
    return window;
  };

  const follow = async (
    text: string,
    { hosts, plugin, idempotencyKey }: HttpGrant,
    signal: AbortSignal,
  ): Promise<Page> => {
    const request = readHttpRequest(text);
    if (!request.ok) throw new PageRefused(request.reason);
    const { headers } = request;
    let url = orRefuse(vetUrl(request.url, hosts));
    if (!windowOf(plugin)())
      throw new PageFailed(`over ${MAX_PAGES_PER_WINDOW} pages in a minute; try again later`);
    for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
      const address = await resolvePublic(url.host, egress, signal);
      const page = await getPage({ url, address, headers, idempotencyKey, signal }, egress.dial);
      if (page.kind === 'page') return page;
      url = orRefuse(vetUrl(page.location, hosts, url));
    }
    throw new PageRefused(`the page is behind more than ${MAX_REDIRECTS} redirects`);
  };

  const serve = async (text: string, grant: HttpGrant, over: AbortSignal): Promise<HttpAnswer> => {
    const { plugin, timeoutMs } = grant;
    const signal = AbortSignal.any([
      over,
      AbortSignal.timeout(Math.min(MAX_PAGE_MS, timeoutMs * SHARE_OF_CALL)),
    ]);
    try {
      const page = await follow(text, grant, signal);
      if (page.kind !== 'page') return failedWith('a redirect without an end');
      const { status, contentType, text: content } = page;
      return { head: { end: 'answered', status, contentType }, body: encoder.encode(content) };
    } catch (error) {
      if (error instanceof PageRefused) {
        logger.warn({ plugin, reason: error.message }, 'a plug-in asked for a page that it may not have');
        return refused(error.message);
      }
      logger.info({ plugin, err: error }, 'a page for a plug-in could not be had');
      return failedWith(describe(error, signal));
    }
  };

  return {
    forCall: (grant) => {
      let pages = 0;
      return (request, signal) => {
        pages += 1;
        return pages > MAX_PAGES_PER_CALL
          ? Promise.resolve(refused(`a call may ask for ${MAX_PAGES_PER_CALL} pages at most`))
          : serve(request, { ...grant, idempotencyKey: keyOfPage(grant, pages) }, signal);
      };
    },
  };
};
