import { abortable } from '@antiphon/kernel';
import { isPublicAddress, parseHttpRequest, vetUrl } from '@antiphon/sandbox-domain';
import type { UrlVerdict, VettedUrl } from '@antiphon/sandbox-domain';
import type { Logger } from '@antiphon/observability';
import type { HttpResponse, ServeHttp } from '../cell/exchange.js';
import { PageFailed, fetchPage } from './fetch-page.js';
import type { EgressPorts, Page } from './fetch-page.js';

/** HTTP access of one call of a plug-in. */
export interface HttpGrant {
  readonly plugin: string;
  readonly hosts: ReadonlySet<string>;
  /** Timeout of the call, ms. A page gets most of it, so that the plug-in can report a failure. */
  readonly timeoutMs: number;
  /** Key of the call: its first page has this `Idempotency-Key`, the nth `<key>.n`. */
  readonly idempotencyKey: string;
  /**
   * Called right before a request leaves. The request waits for the promise, and fails when it
   * rejects.
   */
  readonly beforeRequest?: (signal: AbortSignal) => Promise<void>;
}

export interface VettedClientOptions {
  readonly egress: EgressPorts;
  readonly logger: Logger;
  /** Monotonic clock, ms. */
  readonly now: () => number;
}

const MAX_REDIRECTS = 3;
const MAX_PAGES_PER_CALL = 5;
const MAX_PAGES_PER_WINDOW = 60;
const WINDOW_MS = 60_000;
const MAX_PAGE_MS = 10_000;
const SHARE_OF_CALL = 0.8;

/**
 * Refusal of a page that the plug-in may not have; the message is for the model and the operator.
 */
class PageRefused extends Error {}

const encoder = new TextEncoder();
const refusedResponse = (reason: string): HttpResponse => ({
  head: { end: 'refused', reason: `http: ${reason}` },
  body: new Uint8Array(0),
});
const failedResponse = (reason: string): HttpResponse => ({
  head: { end: 'failed' },
  body: encoder.encode(`http: ${reason}`),
});

const requireVetted = (verdict: UrlVerdict): VettedUrl => {
  if (verdict.ok) return verdict;
  throw new PageRefused(verdict.reason);
};

/** Returns a distinct key for each page of a call, because two pages are two requests. */
const pageKey = ({ idempotencyKey }: HttpGrant, page: number): string =>
  page === 1 ? idempotencyKey : `${idempotencyKey}.${page}`;

const describeFailure = (error: unknown, signal: AbortSignal): string => {
  if (error instanceof PageFailed) return error.message;
  if (signal.aborted) return 'the page did not arrive in time';
  const code = (error as { readonly code?: unknown } | null)?.code;
  return `the page could not be had (${typeof code === 'string' ? code : 'unknown error'})`;
};

/** Rate limit: pages of one plug-in in a window of a minute. */
class PageWindow {
  private startedAt = -Infinity;
  private pages = 0;

  constructor(private readonly now: () => number) {}

  /** Counts a page. Returns false when the window is full. */
  countPage(): boolean {
    if (this.now() - this.startedAt >= WINDOW_MS) {
      this.startedAt = this.now();
      this.pages = 0;
    }
    this.pages += 1;
    return this.pages <= MAX_PAGES_PER_WINDOW;
  }
}

/** Only HTTP access of the sandbox. Vets each request in the service, never in a cell. */
export class VettedClient {
  private readonly windows = new Map<string, PageWindow>();

  constructor(private readonly options: VettedClientOptions) {}

  /** Creates the HTTP access of one call, which may request a few pages one after another. */
  serveCall(grant: HttpGrant): ServeHttp {
    let pages = 0;
    return (request, signal) => {
      pages += 1;
      return pages > MAX_PAGES_PER_CALL
        ? Promise.resolve(refusedResponse(`a call may request ${MAX_PAGES_PER_CALL} pages at most`))
        : this.serve(request, { ...grant, idempotencyKey: pageKey(grant, pages) }, signal);
    };
  }

  private async serve(text: string, grant: HttpGrant, callEnded: AbortSignal): Promise<HttpResponse> {
    const { plugin, timeoutMs } = grant;
    const { logger } = this.options;
    const timeout = AbortSignal.timeout(Math.min(MAX_PAGE_MS, timeoutMs * SHARE_OF_CALL));
    const signal = AbortSignal.any([callEnded, timeout]);
    try {
      const page = await this.fetch(text, grant, signal);
      if (page.kind !== 'page') return failedResponse('a redirect without an end');
      const { status, contentType, text: content } = page;
      return { head: { end: 'answered', status, contentType }, body: encoder.encode(content) };
    } catch (error) {
      if (error instanceof PageRefused) {
        logger.warn({ plugin, reason: error.message }, 'plugin HTTP request refused');
        return refusedResponse(error.message);
      }
      logger.info({ plugin, err: error }, 'plugin HTTP request failed');
      return failedResponse(describeFailure(error, signal));
    }
  }

  /** Fetches a page and follows redirects. Vets the URL and the address of each hop. */
  private async fetch(text: string, grant: HttpGrant, signal: AbortSignal): Promise<Page> {
    const { hosts, plugin, idempotencyKey } = grant;
    const { dial } = this.options.egress;
    const request = parseHttpRequest(text);
    if (!request.ok) throw new PageRefused(request.reason);
    const { headers } = request;
    let url = requireVetted(vetUrl(request.url, hosts));
    if (!this.windowOf(plugin).countPage())
      throw new PageFailed(`over ${MAX_PAGES_PER_WINDOW} pages in a minute; try again later`);
    for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
      const address = await this.resolvePublic(url.host, signal);
      await grant.beforeRequest?.(signal);
      const page = await fetchPage({ url, address, headers, idempotencyKey, signal }, dial);
      if (page.kind === 'page') return page;
      url = requireVetted(vetUrl(page.location, hosts, url));
    }
    throw new PageRefused(`the page is behind more than ${MAX_REDIRECTS} redirects`);
  }

  /** Resolves a name. All of its addresses must be public, because any of them could be used. */
  private async resolvePublic(host: string, signal: AbortSignal): Promise<string> {
    const { resolve } = this.options.egress;
    const addresses = await abortable(resolve(host), signal).catch((error: unknown) => {
      if (signal.aborted) throw error;
      throw new PageFailed(`${host} could not be resolved`);
    });
    if (!addresses.every(isPublicAddress))
      throw new PageRefused(`${host} leads to an address that is not of the public internet`);
    const [address] = addresses;
    if (address === undefined) throw new PageFailed(`${host} has no address`);
    return address;
  }

  private windowOf(plugin: string): PageWindow {
    const window = this.windows.get(plugin) ?? new PageWindow(this.options.now);
    this.windows.set(plugin, window);
    return window;
  }
}
