import { findJsonExcess } from '@antiphon/kernel';

/** Returns an IPv4 address as a number, or null when the text is not one. */
const parseV4 = (text: string): number | null => {
  const parts = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text)?.slice(1).map(Number);
  if (!parts || parts.some((part) => part > 255)) return null;
  return parts.reduce((value, part) => value * 256 + part, 0);
};

/**
 * Prefixes that no public host has, as first address and length. Source: IANA's special-purpose
 * registry, and Azure's wire server.
 */
const NON_PUBLIC_V4 = (
  [
    ['0.0.0.0', 8], // this network
    ['10.0.0.0', 8], // private
    ['100.64.0.0', 10], // carriers' NAT; also a cloud's metadata
    ['127.0.0.0', 8], // loopback
    ['168.63.129.16', 32], // a cloud's wire server
    ['169.254.0.0', 16], // link-local, clouds' metadata
    ['172.16.0.0', 12], // private
    ['192.0.0.0', 24], // protocol assignments
    ['192.0.2.0', 24], // documentation
    ['192.88.99.0', 24], // 6to4 relays
    ['192.168.0.0', 16], // private
    ['198.18.0.0', 15], // benchmarks
    ['198.51.100.0', 24], // documentation
    ['203.0.113.0', 24], // documentation
    ['224.0.0.0', 4], // multicast
    ['240.0.0.0', 4], // reserved, broadcast
  ] as const
).map(([first, length]) => ({ first: parseV4(first) ?? 0, size: 2 ** (32 - length) }));

const isPublicV4 = (address: number): boolean =>
  !NON_PUBLIC_V4.some(({ first, size }) => address >= first && address < first + size);

const parseGroups = (text: string): number[] | null => {
  if (text === '') return [];
  const groups = text.split(':');
  return groups.every((group) => /^[0-9a-f]{1,4}$/i.test(group))
    ? groups.map((group) => parseInt(group, 16))
    : null;
};

/** Returns the eight groups of an IPv6 address, or null. An address with a zone is refused. */
const parseV6 = (text: string): number[] | null => {
  const dotted = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(text);
  const tail = dotted ? parseV4(dotted[2] ?? '') : 0;
  if (tail === null) return null;
  const hex = dotted ? `${dotted[1]}${(tail >>> 16).toString(16)}:${(tail & 0xffff).toString(16)}` : text;
  const halves = hex.split('::');
  if (halves.length > 2) return null;
  const [head, rest] = [parseGroups(halves[0] ?? ''), parseGroups(halves[1] ?? '')];
  if (!head || !rest) return null;
  const missing = 8 - head.length - rest.length;
  if (halves.length === 1 ? missing !== 0 : missing < 1) return null;
  return [...head, ...Array<number>(missing).fill(0), ...rest];
};

/**
 * Accepts global unicast only. Of that, refuses Teredo and the rest of 2001::/23, documentation and
 * 6to4, since those embed another address or name no host.
 */
const isPublicV6 = ([first = 0, second = 0]: readonly number[]): boolean => {
  if (first >> 13 !== 1) return false;
  if (first === 0x2002) return false;
  if (first === 0x2001 && (second < 0x0200 || second === 0x0db8)) return false;
  return !(first === 0x3fff && second < 0x1000);
};

/**
 * Returns whether an address that a resolver returned belongs to the public internet. An unreadable
 * address does not.
 */
export const isPublicAddress = (text: string): boolean => {
  const v4 = parseV4(text);
  if (v4 !== null) return isPublicV4(v4);
  const v6 = parseV6(text);
  return v6 !== null && isPublicV6(v6);
};

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
export type HttpMethod = (typeof METHODS)[number];

export type RequestVerdict =
  | {
      readonly ok: true;
      readonly method: HttpMethod;
      readonly url: string;
      readonly headers: Readonly<Record<string, string>>;
    }
  | { readonly ok: false; readonly reason: string };

/** Headers that each plug-in may set. The host sets all others. */
const HEADERS = ['accept', 'accept-language'];
/** Further headers of a plug-in with a secret, which takes part in a service's authentication. */
const SECRET_HEADERS = ['authorization', 'api-key', 'private-token', 'content-type'];
/** Headers of services. Those about the sender of a request are the host's. */
const OWN_HEADER = /^x-(?!forwarded|real|original|client-ip)[a-z0-9-]{1,40}$/;
const HEADER_VALUE = /^[\x20-\x7e]{1,200}$/;

const refuseRequest = (reason: string): RequestVerdict => ({ ok: false, reason });
const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const parseJson = (text: string): unknown => {
  if (findJsonExcess(text) !== null) return null;
  try {
    return JSON.parse(text);
  } catch {
    return null; // the caller reports it
  }
};

const isMethod = (method: unknown): method is HttpMethod => METHODS.some((known) => known === method);

const maySet = (name: string, hasSecrets: boolean): boolean =>
  HEADERS.includes(name) || (hasSecrets && (SECRET_HEADERS.includes(name) || OWN_HEADER.test(name)));

/**
 * Parses a request as Extism's development kits write it: `{"url", "method", "headers"}`. A plug-in
 * with secrets may also change things, and set headers of a service.
 */
export const parseHttpRequest = (text: string, hasSecrets = false): RequestVerdict => {
  const request = parseJson(text);
  if (!isRecord(request) || typeof request['url'] !== 'string')
    return refuseRequest('the request is not {"url": "…"}');
  const { url, method = 'GET', headers = {} } = request;
  if (!hasSecrets && method !== 'GET') return refuseRequest('only GET is available');
  if (!isMethod(method)) return refuseRequest(`the method is not one of ${METHODS.join(', ')}`);
  if (!isRecord(headers)) return refuseRequest('the headers of the request are not an object');
  const accepted: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase();
    if (!maySet(lower, hasSecrets))
      return refuseRequest(`a plug-in may not set the header ${lower.slice(0, 60)}`);
    if (typeof value !== 'string' || !HEADER_VALUE.test(value))
      return refuseRequest(`the header ${lower} has no valid value`);
    accepted[lower] = value;
  }
  return { ok: true, method, url: url as string, headers: accepted };
};

const TEXTUAL =
  /^(?:text\/[a-z0-9.+-]+|application\/(?:json|xml|x-ndjson|javascript|yaml|[a-z0-9.-]+\+(?:json|xml)))$/;

/** Returns the charset of a textual response, or null for any other content type. */
export const textCharset = (contentType: string | undefined): string | null => {
  const [type = '', ...parameters] = (contentType ?? '').toLowerCase().split(';');
  if (!TEXTUAL.test(type.trim())) return null;
  const charset = parameters.map((one) => /^\s*charset\s*=\s*"?([a-z0-9._-]{1,40})"?\s*$/.exec(one)?.[1]);
  return charset.find((one) => one !== undefined) ?? 'utf-8';
};
