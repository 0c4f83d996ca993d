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
  readonly replySecret: string | null;
}

const TOKEN = '{token}';
const REPLY_SECRET = '{reply_secret}';
const HEADERS: ReadonlySet<string> = new Set(['accept', 'authorization', 'content-type']);
const HEADER_VALUE = /^[\x20-\x7e]{0,4200}$/;

const refuse = (reason: string): FillResult => ({ ok: false, reason });

const toVetted = (url: URL): VettedUrl => {
  const secure = url.protocol === 'https:';
  const port = url.port === '' ? (secure ? 443 : 80) : Number(url.port);
  const { hostname, pathname, search, href } = url;
  return {
    ok: true,
    host: hostname,
    authority: url.host,
    secure,
    port,
    target: `${pathname}${search}`,
    href,
  };
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

/** Secrets by their placeholders. */
type Secrets = readonly (readonly [placeholder: string, secret: string | null])[];

const fill = (text: string, secrets: Secrets): string =>
  secrets.reduce((filled, [mark, secret]) => filled.split(mark).join(secret ?? ''), text);

const hide = (text: string, secrets: Secrets): string =>
  secrets.reduce((hidden, [mark, secret]) => (secret ? hidden.split(secret).join(mark) : hidden), text);

/**
 * Inserts the secrets into the URL and the headers of a request. It may go below the address of the
 * file, or to a granted host.
 */
export const fillRequest = (request: ChannelHttpRequest, placing: Placing): FillResult => {
  const secrets: Secrets = [
    [TOKEN, placing.token],
    [REPLY_SECRET, placing.replySecret],
  ];
  const headers = Object.entries(request.headers).map(
    ([name, value]) => [name.toLowerCase(), value] as const,
  );
  const texts = [request.url, ...headers.map(([, value]) => value)];
  const missing = secrets.find(
    ([mark, secret]) => secret === null && texts.some((text) => text.includes(mark)),
  );
  if (missing?.[0] === TOKEN) return refuse('the channel has no token: store it with "channel connect"');
  if (missing) return refuse('the platform gave no secret for this reply');
  const odd = headers.find(([name, value]) => !HEADERS.has(name) || !HEADER_VALUE.test(value));
  if (odd) return refuse(`a plug-in may not set the header ${odd[0].slice(0, 60)}`);
  const placed = place(request.url, fill(request.url, secrets), placing);
  if (typeof placed === 'string') return refuse(hide(placed, secrets));
  return {
    ok: true,
    request: {
      ...{ method: request.method, body: request.body, ...placed },
      headers: Object.fromEntries(headers.map(([name, value]) => [name, fill(value, secrets)])),
    },
  };
};

/** Removes the secrets from the answer of a platform, which may repeat the request. */
export const hideSecrets = (
  text: string,
  { token, replySecret }: Pick<Placing, 'token' | 'replySecret'>,
): string =>
  hide(text, [
    ['[redacted]', token],
    ['[redacted]', replySecret],
  ]);
