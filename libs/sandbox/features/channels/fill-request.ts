import type { ChannelHttpRequest } from '@antiphon/contracts/sandbox';
import { vetUrl } from '@antiphon/sandbox-domain';
import type { VettedUrl } from '@antiphon/sandbox-domain';

/** A request as it leaves, to a vetted host. */
export interface FilledRequest {
  readonly method: string;
  readonly url: VettedUrl;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** True if the file of the operator names the address, which may be of this machine. */
  readonly isOperators: boolean;
}

export type FillResult =
  { readonly ok: true; readonly request: FilledRequest } | { readonly ok: false; readonly reason: string };

export interface Placing {
  /** Hosts that the plug-in was granted. */
  readonly hosts: ReadonlySet<string>;
  /** Address of the file; null for that of the plug-in. */
  readonly baseUrl: string | null;
  /** Address that the plug-in declares. */
  readonly declaredUrl: string | null;
  readonly token: string | null;
}

const TOKEN = '{token}';
const HEADERS: ReadonlySet<string> = new Set(['accept', 'authorization', 'content-type']);
const HEADER_VALUE = /^[\x20-\x7e]{0,4200}$/;

const refuse = (reason: string): FillResult => ({ ok: false, reason });

const toVetted = (url: URL): VettedUrl => {
  const secure = url.protocol === 'https:';
  const port = url.port === '' ? (secure ? 443 : 80) : Number(url.port);
  const { hostname, pathname, search, href } = url;
  return { ok: true, host: hostname, secure, port, target: `${pathname}${search}`, href };
};

/** Returns the URL of a path below an address. */
const join = (base: string, path: string): string =>
  `${base.endsWith('/') ? base.slice(0, -1) : base}${path}`;

interface Placed {
  readonly url: VettedUrl;
  readonly isOperators: boolean;
}

/** A reason never has the token: it quotes the text of the plug-in. */
const place = (written: string, filled: string, placing: Placing): Placed | string => {
  const { hosts, baseUrl, declaredUrl } = placing;
  const base = baseUrl ?? declaredUrl;
  const isPath = written.startsWith('/') && !written.startsWith('//');
  if (isPath && base === null)
    return 'the plug-in has no address of its own, and the channel has no base_url';
  const url = URL.parse(isPath && base !== null ? join(base, filled) : filled);
  if (url === null) return 'the plug-in wrote no URL';
  const own = baseUrl === null ? null : URL.parse(baseUrl);
  if (own !== null && url.origin === own.origin && url.username === '' && url.password === '')
    return { url: toVetted(url), isOperators: true };
  const verdict = vetUrl(url.href, hosts);
  return verdict.ok ? { url: verdict, isOperators: false } : verdict.reason;
};

/**
 * Inserts the token into the URL and the headers of a request. It may go below the address of the
 * file, or to a granted host.
 */
export const fillRequest = (request: ChannelHttpRequest, placing: Placing): FillResult => {
  const { token } = placing;
  const headers = Object.entries(request.headers).map(
    ([name, value]) => [name.toLowerCase(), value] as const,
  );
  const usesToken = [request.url, ...headers.map(([, value]) => value)].some((text) => text.includes(TOKEN));
  if (usesToken && token === null) return refuse('the channel has no token: store it with "channel connect"');
  const fill = (text: string): string => text.split(TOKEN).join(token ?? '');
  const odd = headers.find(([name, value]) => !HEADERS.has(name) || !HEADER_VALUE.test(value));
  if (odd) return refuse(`a plug-in may not set the header ${odd[0].slice(0, 60)}`);
  const placed = place(request.url, fill(request.url), placing);
  if (typeof placed === 'string') return refuse(token === null ? placed : placed.split(token).join(TOKEN));
  return {
    ok: true,
    request: {
      ...{ method: request.method, body: request.body, ...placed },
      headers: Object.fromEntries(headers.map(([name, value]) => [name, fill(value)])),
    },
  };
};
