import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { judgeOrigin, type OriginVerdict } from '@antiphon/gateway-domain';
import { forbidden } from '@antiphon/kernel';

/** Header that each unsafe request of a dashboard carries. A form of another page cannot send it. */
export const CSRF_HEADER = 'x-antiphon-csrf';
const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/** Returns true if any proxy header is present, with any value. */
const isForwarded = (headers: IncomingHttpHeaders): boolean =>
  Object.keys(headers).some((name) => name === 'forwarded' || name.startsWith('x-forwarded-'));

/**
 * Judges the Host and the Origin of a request. Without a token the rules are stricter. `foreign`
 * has the origins of foreign pages that may use the API.
 */
export const judgeHeaders = (
  headers: IncomingHttpHeaders,
  isLocal: boolean,
  foreign?: ReadonlySet<string>,
): OriginVerdict => {
  const { host, origin, 'sec-fetch-site': site } = headers;
  const first = Array.isArray(site) ? site[0] : site;
  return judgeOrigin({ host, origin, forwarded: isForwarded(headers), site: first }, !isLocal, foreign);
};

const siteOf = (headers: IncomingHttpHeaders): string => String(headers['sec-fetch-site'] ?? 'same-origin');

/** Returns true for a request that names exactly its own origin. */
export const isOwnPage = (headers: IncomingHttpHeaders): boolean => {
  const { origin, host = '' } = headers;
  const isOwn = origin === `http://${host}` || origin === `https://${host}`;
  return isOwn && siteOf(headers) === 'same-origin';
};

/**
 * Throws `GATEWAY.ORIGIN_REFUSED` unless a request with a cookie comes from the dashboard's own
 * page. An unsafe one names its origin and has a header that needs a script of that origin.
 */
export const requireOwnPage = (method: string, headers: IncomingHttpHeaders): void => {
  const isAllowed = SAFE.has(method)
    ? ['same-origin', 'none'].includes(siteOf(headers)) &&
      (headers.origin === undefined || isOwnPage(headers))
    : isOwnPage(headers) && headers[CSRF_HEADER] !== undefined;
  if (isAllowed) return;
  const message = `a cookie is accepted from the own page of the dashboard only; changes need the header ${CSRF_HEADER}`;
  throw forbidden('GATEWAY.ORIGIN_REFUSED', message);
};

const firstOf = (value: string | string[] | undefined): string =>
  ([value].flat()[0] ?? '').split(',', 1)[0]?.trim().toLowerCase() ?? '';

/**
 * Returns true for a request that came by https to the proxy in front. A header that a client
 * invents only makes the rules of the cookie stricter.
 */
const isHttps = (headers: IncomingHttpHeaders): boolean =>
  [headers.origin, headers.referer].some((url) => url?.startsWith('https://') === true) ||
  firstOf(headers['x-forwarded-proto']) === 'https' ||
  firstOf(headers.forwarded)
    .split(';')
    .some((part) => part.trim().replaceAll('"', '') === 'proto=https');

/**
 * Cookie of the dashboard's sessions. A cookie is sent to every port of a host, so its name has the
 * home: two homes on one machine keep their sessions apart.
 */
export class SessionCookie {
  readonly #name: string;

  constructor(home: string) {
    this.#name = `antiphon_${createHash('sha256').update(home).digest('hex').slice(0, 10)}`;
  }

  /**
   * Returns the value of the cookie, or undefined for none. Behind https only the name with its
   * prefix counts: any other port of the host could set the plain one.
   */
  read(headers: IncomingHttpHeaders): string | undefined {
    const prefixed = this.#find(headers, `__Host-${this.#name}`);
    return prefixed ?? (isHttps(headers) ? undefined : this.#find(headers, this.#name));
  }

  /** Returns the `Set-Cookie` of a session. An age of 0 removes it. */
  render(headers: IncomingHttpHeaders, value: string, maxAgeSeconds: number): string {
    const isSecure = isHttps(headers);
    const name = isSecure ? `__Host-${this.#name}` : this.#name;
    const rules = ['Path=/', 'HttpOnly', 'SameSite=Strict', `Max-Age=${maxAgeSeconds}`];
    return [`${name}=${value}`, ...rules, ...(isSecure ? ['Secure'] : [])].join('; ');
  }

  #find({ cookie }: IncomingHttpHeaders, wanted: string): string | undefined {
    for (const part of cookie?.split(';') ?? []) {
      const [name, value] = part.trim().split('=', 2);
      if (name === wanted && value !== undefined && value !== '') return value;
    }
    return undefined;
  }
}
