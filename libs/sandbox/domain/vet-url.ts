/** A URL that a plug-in may request. */
export interface VettedUrl {
  readonly ok: true;
  readonly host: string;
  readonly secure: boolean;
  readonly port: number;
  /** Value of the header `host`: the host, with a port that is not the usual one of the scheme. */
  readonly authority: string;
  /** Path and query, as sent in the request. */
  readonly target: string;
  readonly href: string;
}
export type UrlVerdict = VettedUrl | { readonly ok: false; readonly reason: string };

const MAX_URL_CHARS = 2_048;
const PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };
/**
 * Parts of a path that some servers read as a separator or a dot segment. Such a path could leave
 * the prefix that was granted.
 */
const AMBIGUOUS_PATH = /%(?:2f|5c|00|25)|%2e|(?:^|\/)\.{1,2};|\\/i;

const refuseUrl = (reason: string): UrlVerdict => ({ ok: false, reason });

/** One granted part of the web: `HOST[:PORT][/PATH]`. */
interface Rule {
  readonly host: string;
  readonly port: string;
  readonly path: string;
}

const toRule = (text: string): Rule => {
  const slash = text.indexOf('/');
  const [host = '', port = ''] = (slash === -1 ? text : text.slice(0, slash)).split(':');
  return { host, port, path: slash === -1 ? '/' : text.slice(slash) };
};

/** Returns whether a path is the prefix or below it, by whole segments. */
const isBelow = (path: string, prefix: string): boolean => {
  if (prefix === '/') return true;
  if (AMBIGUOUS_PATH.test(path)) return false;
  return prefix.endsWith('/') ? path.startsWith(prefix) : path === prefix || path.startsWith(`${prefix}/`);
};

/** Returns why no rule allows a URL, or null. */
const findExcess = ({ hostname, port, protocol, pathname }: URL, rules: readonly Rule[]): string | null => {
  const forHost = rules.filter(({ host }) => host === hostname);
  if (forHost.length === 0) return `the host ${hostname} is not granted to this plug-in`;
  // A port that a rule names may be the usual one of the scheme, which the URL leaves out.
  const actual = port === '' ? String(PORTS[protocol]) : port;
  const forPort = forHost.filter((rule) => (rule.port === '' ? port === '' : rule.port === actual));
  if (forPort.length === 0)
    return port === ''
      ? `the usual port of ${protocol} is not granted to this plug-in`
      : `port ${port} is not the usual one of ${protocol}, and not granted to this plug-in`;
  return forPort.some(({ path }) => isBelow(pathname, path))
    ? null
    : `the path of the URL is not below one that is granted to this plug-in`;
};

/**
 * Checks a URL, or the target of a redirect, against the granted parts of the web. Each is a host
 * with an optional port and an optional prefix of the path. Checks the parsed URL, because
 * that is what is requested: `2130706433` and `0x7f.1` are 127.0.0.1 after parsing, and no address
 * is ever granted.
 */
export const vetUrl = (text: string, granted: ReadonlySet<string>, base?: VettedUrl): UrlVerdict => {
  if (text.length > MAX_URL_CHARS) return refuseUrl(`the URL has over ${MAX_URL_CHARS} characters`);
  const url = URL.parse(text, base?.href);
  if (url === null) return refuseUrl('this is not a URL');
  const usual = PORTS[url.protocol];
  if (usual === undefined) return refuseUrl(`the scheme ${url.protocol} is not one of http, https`);
  if (url.username !== '' || url.password !== '') return refuseUrl('the URL has credentials in it');
  if (granted.size === 0)
    return refuseUrl(`no host is granted to this plug-in; grant one with capabilities = ["http:HOST"]`);
  const excess = findExcess(url, [...granted].map(toRule));
  if (excess !== null) return refuseUrl(excess);
  const secure = url.protocol === 'https:';
  if (base?.secure && !secure) return refuseUrl('a redirect leads from https to http');
  url.hash = '';
  return {
    ...{ ok: true, host: url.hostname, secure, port: url.port === '' ? usual : Number(url.port) },
    ...{ authority: url.host, target: `${url.pathname}${url.search}`, href: url.href },
  };
};
