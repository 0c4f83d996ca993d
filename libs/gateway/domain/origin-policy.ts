import { isIPv4, isIPv6 } from './ip-literal.js';

/** The headers of an upgrade or a request that decide whether it may be served at all. */
export interface RequestOrigin {
  readonly host: string | undefined;
  readonly origin: string | undefined;
  /**
   * True when any `Forwarded` or `X-Forwarded-*` header is there: a proxy in front voids what
   * loopback means.
   */
  readonly forwarded: boolean;
}

export type OriginVerdict = { readonly allowed: true } | { readonly allowed: false; readonly reason: string };

const ALLOWED: OriginVerdict = { allowed: true };
const refuse = (reason: string): OriginVerdict => ({ allowed: false, reason });

/** The host name of a `Host` header without its port; undefined when it is not one. */
const hostName = (host: string): string | undefined => {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:/?#@\s[\]]+))(?::(\d{1,5}))?$/.exec(host);
  return match?.[1] ?? match?.[2]?.toLowerCase();
};

/** Loopback is decided on parsed literals and the one name `localhost`, never on a prefix. */
export const isLoopbackHost = (name: string): boolean => {
  if (name === 'localhost') return true;
  if (isIPv4(name)) return name.split('.')[0] === '127';
  return isIPv6(name) && /^(?:0{0,4}:){2,7}0{0,3}1$/.test(name);
};

const sameOrigin = (origin: string, host: string): boolean =>
  origin === `http://${host}` || origin === `https://${host}`;

/**
 * Decides before the upgrade, on the presence of headers and not on what a client says it is.
 * Without a token only a loopback `Host` is served, and only without an `Origin` or with our own
 * (the dashboard's page). With a token a foreign `Origin` is refused all the same: a page must not
 * use what its user's network can reach.
 */
export const judgeOrigin = (request: RequestOrigin, hasToken: boolean): OriginVerdict => {
  const { host, origin, forwarded } = request;
  const name = host === undefined ? undefined : hostName(host);
  if (host === undefined || name === undefined) return refuse('the Host header is missing or malformed');
  if (!hasToken && !isLoopbackHost(name))
    return refuse('without a token only requests to a loopback host are served; set gateway.token');
  if (!hasToken && forwarded)
    return refuse('without a token requests through a proxy are not served; set gateway.token');
  if (origin !== undefined && !sameOrigin(origin, host)) return refuse('this Origin is not allowed');
  return ALLOWED;
};
