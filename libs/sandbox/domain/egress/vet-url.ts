/** A page that a plug-in may ask for. */
export interface VettedUrl {
  readonly ok: true;
  readonly host: string;
  readonly secure: boolean;
  readonly port: number;
  /** Path and query, as they go into the request. */
  readonly target: string;
  readonly href: string;
}
export type UrlVerdict = VettedUrl | { readonly ok: false; readonly reason: string };

const MAX_URL_CHARS = 2_048;
const PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };

const refuse = (reason: string): UrlVerdict => ({ ok: false, reason });

/**
 * Judges a URL, or where a redirect leads, by the hosts that a plug-in was granted. Decided on the URL as it is parsed, which is what is
 * asked for: `2130706433` and `0x7f.1` are 127.0.0.1 by then, and no address is ever granted.
 */
export const vetUrl = (text: string, hosts: ReadonlySet<string>, base?: VettedUrl): UrlVerdict => {
  if (text.length > MAX_URL_CHARS) return refuse(`the URL has over ${MAX_URL_CHARS} characters`);
  const url = URL.parse(text, base?.href);
  if (url === null) return refuse('this is not a URL');
  const port = PORTS[url.protocol];
  if (port === undefined) return refuse(`the scheme ${url.protocol} is not one of http, https`);
  if (url.username !== '' || url.password !== '') return refuse('the URL has credentials in it');
  if (hosts.size === 0)
    return refuse(`no host is granted to this plug-in; grant one with capabilities = ["http:HOST"]`);
  const host = url.hostname;
  if (!hosts.has(host)) return refuse(`the host ${host} is not granted to this plug-in`);
  if (url.port !== '') return refuse(`port ${url.port} is not the usual one of ${url.protocol}`);
  const secure = url.protocol === 'https:';
  if (base?.secure && !secure) return refuse('a redirect leads from https to http');
  url.hash = '';
  return { ok: true, host, secure, port, target: `${url.pathname}${url.search}`, href: url.href };
};

export type RequestVerdict =
  | { readonly ok: true; readonly url: string; readonly headers: Readonly<Record<string, string>> }
  | { readonly ok: false; readonly reason: string };

/** Headers that a plug-in may choose; everything else is the host's to say, credentials above all. */
const HEADERS = ['accept', 'accept-language'];
const HEADER_VALUE = /^[\x20-\x7e]{1,200}$/;

const deny = (reason: string): RequestVerdict => ({ ok: false, reason });
const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return null; // the caller says so in its own words
  }
};

/** Reads a request as Extism's development kits write it: `{"url", "method", "headers"}`, of at most a few KiB. */
export const readHttpRequest = (text: string): RequestVerdict => {
  const request = parse(text);
  if (!isRecord(request) || typeof request['url'] !== 'string')
    return deny('the request is not {"url": "…"}');
  const { url, method = 'GET', headers = {} } = request;
  if (method !== 'GET') return deny('only GET is available');
  if (!isRecord(headers)) return deny('the headers of the request are not an object');
  const chosen: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase();
    if (!HEADERS.includes(lower)) return deny(`a plug-in may not set the header ${lower.slice(0, 60)}`);
    if (typeof value !== 'string' || !HEADER_VALUE.test(value))
      return deny(`the header ${lower} has no valid value`);
    chosen[lower] = value;
  }
  return { ok: true, url: url as string, headers: chosen };
};

const TEXTUAL =
  /^(?:text\/[a-z0-9.+-]+|application\/(?:json|xml|x-ndjson|javascript|yaml|[a-z0-9.-]+\+(?:json|xml)))$/;

/** The charset of a response that is text, or null when it is none. */
export const textCharset = (contentType: string | undefined): string | null => {
  const [type = '', ...parameters] = (contentType ?? '').toLowerCase().split(';');
  if (!TEXTUAL.test(type.trim())) return null;
  const charset = parameters.map((one) => /^\s*charset\s*=\s*"?([a-z0-9._-]{1,40})"?\s*$/.exec(one)?.[1]);
  return charset.find((one) => one !== undefined) ?? 'utf-8';
};
