import type { IncomingHttpHeaders } from 'node:http';
import { BlockList, isIP } from 'node:net';
import { parseNetwork } from '@antiphon/config';

/** Removes the zone of an IPv6 address, and the IPv6 form of an IPv4 address. */
const plainAddress = (address: string): string =>
  (address.split('%', 1)[0] ?? '').replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '');

/** Removes the port and the brackets of an address in a proxy's header. */
const withoutPort = (text: string): string =>
  /^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1] ?? /^([^:]*):\d+$/.exec(text)?.[1] ?? text;

const forwardedFor = (headers: IncomingHttpHeaders): string[] => {
  const listed = headers['x-forwarded-for'];
  const text = Array.isArray(listed) ? listed.join(',') : listed;
  if (text !== undefined) return text.split(',').map((part) => withoutPort(part.trim()));
  return [...(headers.forwarded ?? '').matchAll(/(?:^|[;,])\s*for="?([^;,"]*)"?/gi)].map((match) =>
    withoutPort((match[1] ?? '').trim()),
  );
};

/** Returns the client's address for a peer and its headers. */
export type ReadClientAddress = (peer: string | undefined, headers: IncomingHttpHeaders) => string;

/**
 * Creates the reader of client addresses. Only a trusted proxy's header names the client, and of
 * its list the last address that is no trusted proxy. Any other peer is itself the client.
 */
export const createClientAddress = (trustedProxies: readonly string[]): ReadClientAddress => {
  const trusted = new BlockList();
  for (const text of trustedProxies) {
    const network = parseNetwork(text);
    if (network) trusted.addSubnet(network.address, network.prefix, network.family);
  }
  const isTrusted = (address: string): boolean =>
    trusted.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
  return (peer = '', headers) => {
    let client = plainAddress(peer);
    if (trustedProxies.length === 0) return client;
    const hops = forwardedFor(headers);
    while (isIP(client) !== 0 && isTrusted(client)) {
      const next = plainAddress(hops.pop() ?? '');
      if (isIP(next) === 0) break;
      client = next;
    }
    return client;
  };
};

/**
 * Returns the group in which limits count an address: an IPv4 address alone, an IPv6 address with
 * its /64, which may be one host.
 */
export const addressGroup = (address: string): string => {
  const plain = plainAddress(address);
  if (isIP(plain) !== 6) return plain;
  const [head = '', tail] = new URL(`http://[${plain}]`).hostname.slice(1, -1).split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0');
  return `${[...before, ...zeros, ...after].slice(0, 4).join(':')}::/64`;
};
