import { BlockList, isIP } from 'node:net';
import type { Environment } from './build-config.js';
import { parseNetwork } from './network.js';
import { isLoopbackHost } from './provider-url.js';

/** Value of `proxy` for a provider that is reached directly under any environment. */
export const NO_PROXY_SETTING = 'none';

/** The way to a provider. */
export type ProxyChoice =
  | {
      readonly kind: 'direct';
      readonly reason: 'no proxy is set' | 'loopback' | 'proxy = "none"' | 'NO_PROXY';
    }
  | {
      readonly kind: 'proxy';
      readonly url: URL;
      /** Setting or variable that names the proxy, such as `HTTPS_PROXY`. */
      readonly from: string;
    }
  /** The setting or variable `from` is no usable URL. Its value may hold a password. */
  | { readonly kind: 'invalid'; readonly from: string };

const isDecodable = (text: string): boolean => {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
};

/** Parses the URL of a proxy. A scheme may be missing, as in `proxy:3128`. Returns null otherwise. */
export const parseProxy = (text: string): URL | null => {
  const url = URL.parse(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`);
  const isUsable = url !== null && /^https?:$/.test(url.protocol) && url.hostname !== '';
  if (url === null || !isDecodable(url.username) || !isDecodable(url.password)) return null;
  return isUsable && /^\/?$/.test(url.pathname) && url.search === '' && url.hash === '' ? url : null;
};

/** Returns the address of a proxy without user and password. */
export const proxyAddress = ({ protocol, host }: URL): string => `${protocol}//${host}`;

/** Returns the secrets in the URL of a proxy, as it has them and as a request sends them. */
export const secretsOfProxy = ({ username, password }: URL): string[] => {
  if (username === '' && password === '') return [];
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  const own = password === '' ? [username] : [password];
  const texts = [...own, ...own.map(decodeURIComponent), Buffer.from(pair).toString('base64')];
  return [...new Set(texts)];
};

const portOf = ({ port, protocol }: URL): string => port || (protocol === 'https:' ? '443' : '80');

/** Returns true if a rule of NO_PROXY names the host: itself, a domain above it, or its network. */
const matchesRule = (rule: string, target: URL): boolean => {
  if (rule === '*') return true;
  const host = target.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  const network = parseNetwork(rule.replace(/^\[|\]$/g, ''));
  if (network !== null) {
    const version = isIP(host);
    if (version === 0 || `ipv${version}` !== network.family) return false;
    const list = new BlockList();
    list.addSubnet(network.address, network.prefix, network.family);
    return list.check(host, network.family);
  }
  const [, name = '', port = ''] = /^(?:\*?\.)?(\[[^\]]*\]|[^:]*)(?::(\d+))?$/.exec(rule) ?? [];
  const domain = name.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  if (domain === '' || (port !== '' && port !== portOf(target))) return false;
  return host === domain || host.endsWith(`.${domain}`);
};

const variable = (env: Environment, name: string): { name: string; value: string } | null => {
  const found = [name.toLowerCase(), name].find((one) => (env[one] ?? '').trim() !== '');
  return found === undefined ? null : { name: found, value: (env[found] ?? '').trim() };
};

const isExempt = (target: URL, env: Environment): boolean =>
  (variable(env, 'NO_PROXY')?.value ?? '')
    .toLowerCase()
    .split(/[\s,]+/)
    .some((rule) => rule !== '' && matchesRule(rule, target));

const toChoice = (text: string, from: string): ProxyChoice => {
  const url = parseProxy(text);
  return url === null ? { kind: 'invalid', from } : { kind: 'proxy', url, from };
};

/**
 * Chooses the way to a provider. A loopback address is always reached directly. Elsewhere the
 * setting of the provider wins over HTTPS_PROXY and HTTP_PROXY, to which NO_PROXY makes exceptions.
 * A variable in lower case wins over the same one in upper case.
 */
export const chooseProxy = (
  provider: { readonly name: string; readonly proxy?: string | undefined },
  target: URL,
  env: Environment,
): ProxyChoice => {
  if (isLoopbackHost(target.hostname)) return { kind: 'direct', reason: 'loopback' };
  if (provider.proxy === NO_PROXY_SETTING) return { kind: 'direct', reason: 'proxy = "none"' };
  if (provider.proxy !== undefined) return toChoice(provider.proxy, `proxy of provider ${provider.name}`);
  const found = variable(env, target.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY');
  if (found === null) return { kind: 'direct', reason: 'no proxy is set' };
  return isExempt(target, env) ? { kind: 'direct', reason: 'NO_PROXY' } : toChoice(found.value, found.name);
};
