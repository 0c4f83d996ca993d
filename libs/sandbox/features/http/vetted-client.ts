import { abortable } from '@antiphon/kernel';
import { fillSecrets, isPublicAddress, parseHttpRequest, vetUrl } from '@antiphon/sandbox-domain';
import type { UrlVerdict, VettedUrl } from '@antiphon/sandbox-domain';
import type { Logger } from '@antiphon/observability';
import type { HttpResponse, ServeHttp } from '../cell/exchange.js';
import { PageFailed, fetchPage } from './fetch-page.js';
import type { EgressPorts, Page } from './fetch-page.js';
import { fillHeaders, fillUrl, openSecrets } from './request-secrets.js';
import type { OpenedSecrets, SecretGrant, WrittenRequest } from './request-secrets.js';

/** HTTP access of one call of a plug-in. */
export interface HttpGrant {
  readonly plugin: string;
  readonly hosts: ReadonlySet<string>;
  /** Secrets that its requests may have; none without the capability. */
  readonly secrets?: SecretGrant | undefined;
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

const NO_BODY = new Uint8Array(0);

/** A request as the cell wrote it. */
interface AskedPage {
  readonly request: string;
  readonly body: Uint8Array;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();
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
    return (request, signal, body = NO_BODY) => {
      pages += 1;
      return pages > MAX_PAGES_PER_CALL
        ? Promise.resolve(refusedResponse(`a call may request ${MAX_PAGES_PER_CALL} pages at most`))
        : this.serve({ request, body }, { ...grant, idempotencyKey: pageKey(grant, pages) }, signal);
    };
  }

  private async serve(asked: AskedPage, grant: HttpGrant, callEnded: AbortSignal): Promise<HttpResponse> {
    const { plugin, timeoutMs } = grant;
    const { logger } = this.options;
    const timeout = AbortSignal.timeout(Math.min(MAX_PAGE_MS, timeoutMs * SHARE_OF_CALL));
    const signal = AbortSignal.any([callEnded, timeout]);
    // A response or an error may repeat the request.
    let opened: OpenedSecrets | null = null;
    const hide = (text: string): string => (opened === null ? text : opened.hide(text));
    try {
      const request = this.vetRequest(asked, grant);
      opened = await this.openSecrets(request, grant);
      const page = await this.fetch(request, opened, grant, signal);
      if (page.kind !== 'page') return failedResponse('a redirect without an end');
      const { status, contentType, text } = page;
      return {
        head: { end: 'answered', status, contentType: hide(contentType) },
        body: encoder.encode(hide(text)),
      };
    } catch (error) {
      if (error instanceof PageRefused) {
        const reason = hide(error.message);
        logger.warn({ plugin, reason }, 'plugin HTTP request refused');
        return refusedResponse(reason);
      }
      const reason = hide(describeFailure(error, signal));
      logger.info({ plugin, reason }, 'plugin HTTP request failed');
      return failedResponse(reason);
    }
  }

  /** Checks what a plug-in wrote, before a secret is read. */
  private vetRequest({ request: text, body }: AskedPage, { hosts, secrets }: HttpGrant): WrittenRequest {
    const request = parseHttpRequest(text, secrets !== undefined);
    if (!request.ok) throw new PageRefused(request.reason);
    const { method, headers } = request;
    if (body.length > 0 && (secrets === undefined || method === 'GET'))
      throw new PageRefused('only GET, which has no body');
    return { method, url: requireVetted(vetUrl(request.url, hosts)), headers, body: decoder.decode(body) };
  }

  private async openSecrets(request: WrittenRequest, { secrets }: HttpGrant): Promise<OpenedSecrets> {
    const opened = await openSecrets(request, secrets).catch(() => {
      throw new PageFailed('a secret could not be read; try again later');
    });
    if ('refusal' in opened) throw new PageRefused(opened.refusal);
    return opened;
  }

  /** Fetches a page and follows redirects. Vets the URL and the address of each hop. */
  private async fetch(
    written: WrittenRequest,
    { values }: OpenedSecrets,
    { hosts, plugin, idempotencyKey, beforeRequest }: HttpGrant,
    signal: AbortSignal,
  ): Promise<Page> {
    const { method, headers } = written;
    if (!this.windowOf(plugin).countPage())
      throw new PageFailed(`over ${MAX_PAGES_PER_WINDOW} pages in a minute; try again later`);
    const body = fillSecrets(written.body, values);
    // Placeholders of the plug-in alone are filled, none of a redirect.
    let url = requireVetted(fillUrl(written.url, values, hosts));
    for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
      const address = await this.resolvePublic(url.host, signal);
      await beforeRequest?.(signal);
      const isSameOrigin = url.authority === written.url.authority && url.secure === written.url.secure;
      const sent = { method, url, address, body, headers: fillHeaders(headers, values, isSameOrigin) };
      const page = await fetchPage({ ...sent, idempotencyKey, signal }, this.options.egress.dial);
      if (page.kind === 'page') return page;
      if (method !== 'GET') throw new PageFailed('the host redirects a request that is no GET');
      const next = vetUrl(page.location, hosts, url);
      // The reason could repeat a secret of the redirect, in a form that the parser changed.
      if (!next.ok && values.size > 0) throw new PageRefused('a redirect leads to a URL that is not granted');
      url = requireVetted(next);
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
