import { BlockList, isIP } from 'node:net';

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');
LOOPBACK.addSubnet('::ffff:127.0.0.0', 104, 'ipv6');

/** Returns true for the host of a URL that this machine reaches without a network. */
export const isLoopbackHost = (hostname: string): boolean => {
  const host = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  if (host === 'localhost' || host.endsWith('.localhost')) return true;
  const version = isIP(host);
  if (version === 0) return false;
  // Linux reaches its own services at the unspecified address, too.
  return /^(?:0\.0\.0\.0|::)$/.test(host) || LOOPBACK.check(host, version === 4 ? 'ipv4' : 'ipv6');
};

/** Returns an address without what may hold a key: user, password, query and fragment. */
export const withoutUrlSecrets = (address: string): string => {
  const url = URL.parse(address);
  if (url === null || !(url.username || url.password || url.search || url.hash)) return address;
  [url.username, url.password, url.search, url.hash] = ['', '', '', ''];
  return url.href.replace(/(?<!\/)\/+$/, '');
};

/** Returns true for a URL of a loopback host. */
export const isLoopbackUrl = (text: string | null): boolean => {
  const url = URL.parse(text ?? '');
  return url !== null && /^https?:$/.test(url.protocol) && isLoopbackHost(url.hostname);
};
