/** Headers of an upgrade or a request that decide if it may be served. */
export interface RequestOrigin {
  readonly host: string | undefined;
  readonly origin: string | undefined;
  /**
   * True if any `Forwarded` or `X-Forwarded-*` header is present: behind a proxy a loopback address
   * proves nothing.
   */
  readonly forwarded: boolean;
  /** `Sec-Fetch-Site`, which browsers set and pages cannot. */
  readonly site: string | undefined;
}

export type OriginVerdict =
  /** A foreign page of a configured origin needs a credential of its own. */
  | { readonly allowed: true; readonly isForeign: boolean }
  | { readonly allowed: false; readonly reason: string };

const OCTET = '(?:25[0-5]|2[0-4]\\d|1?\\d?\\d)';
const IPV4 = new RegExp(`^${OCTET}(?:\\.${OCTET}){3}$`);

/** Returns true for a dotted quad in decimal form, but not for `127.1` or `0x7f.1`. */
const isIPv4 = (text: string): boolean => IPV4.test(text);

/** Returns true for an IPv6 literal without brackets or zone. */
const isIPv6 = (text: string): boolean =>
  /^[0-9a-fA-F:]{2,39}$/.test(text) &&
  (text.match(/::/g)?.length ?? 0) <= 1 &&
  !text.includes(':::') &&
  (text.includes('::') ? text.split(':').length <= 8 : text.split(':').length === 8) &&
  text.split(':').every((group) => group.length <= 4);

const ALLOWED: OriginVerdict = { allowed: true, isForeign: false };
const NONE: ReadonlySet<string> = new Set();
/** Values of `Sec-Fetch-Site` for requests that no other page caused. */
const OWN_SITES: ReadonlySet<string> = new Set(['same-origin', 'none']);
const refuse = (reason: string): OriginVerdict => ({ allowed: false, reason });

/**
 * Returns the host name of a `Host` header without its port, or undefined for a malformed header.
 */
const hostName = (host: string): string | undefined => {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:/?#@\s[\]]+))(?::(\d{1,5}))?$/.exec(host);
  return match?.[1] ?? match?.[2]?.toLowerCase();
};

/**
 * Returns true for a loopback literal or `localhost`. The literal is parsed; a prefix never
 * suffices.
 */
export const isLoopbackHost = (name: string): boolean => {
  if (name === 'localhost') return true;
  if (isIPv4(name)) return name.split('.')[0] === '127';
  return isIPv6(name) && /^(?:0{0,4}:){2,7}0{0,3}1$/.test(name);
};

const sameOrigin = (origin: string, host: string): boolean =>
  origin === `http://${host}` || origin === `https://${host}`;

/**
 * Decides on a request by its headers, before an upgrade. Without a token only a loopback `Host` is
 * served, and only without an `Origin` or with the gateway's own. With a token a foreign `Origin`
 * is refused as well: a web page must not reach the gateway through its visitor's network. A
 * request without CORS has no `Origin`. There `Sec-Fetch-Site` shows that a page caused it. An
 * origin of `foreign` is served as a foreign page. It is compared exactly, so a port, a letter case
 * or a suffix makes another origin.
 */
export const judgeOrigin = (
  request: RequestOrigin,
  hasToken: boolean,
  foreign: ReadonlySet<string> = NONE,
): OriginVerdict => {
  const { host, origin, forwarded, site } = request;
  const name = host === undefined ? undefined : hostName(host);
  if (host === undefined || name === undefined) return refuse('the Host header is missing or malformed');
  if (!hasToken && !isLoopbackHost(name))
    return refuse('without a token only requests to a loopback host are served; set gateway.token');
  if (!hasToken && forwarded)
    return refuse('without a token requests through a proxy are not served; set gateway.token');
  if (origin !== undefined && !sameOrigin(origin, host))
    return foreign.has(origin) ? { allowed: true, isForeign: true } : refuse('this Origin is not allowed');
  if (!hasToken && site !== undefined && !OWN_SITES.has(site))
    return refuse('without a token requests that another page causes are not served; set gateway.token');
  return ALLOWED;
};
