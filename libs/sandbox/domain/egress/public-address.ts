const ipv4 = (text: string): number | null => {
  const parts = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text)?.slice(1).map(Number);
  if (!parts || parts.some((part) => part > 255)) return null;
  return parts.reduce((value, part) => value * 256 + part, 0);
};

/** First address and length of the prefix of what no host on the internet has (IANA's special-purpose registry, and Azure's own). */
const CLOSED_V4 = (
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
).map(([first, length]) => ({ first: ipv4(first) ?? 0, size: 2 ** (32 - length) }));

const isPublicV4 = (address: number): boolean =>
  !CLOSED_V4.some(({ first, size }) => address >= first && address < first + size);

const groupsOf = (text: string): number[] | null => {
  if (text === '') return [];
  const groups = text.split(':');
  return groups.every((group) => /^[0-9a-f]{1,4}$/i.test(group))
    ? groups.map((group) => parseInt(group, 16))
    : null;
};

/** The eight groups of an IPv6 address, or null; one with a zone is none that a name could mean. */
const ipv6 = (text: string): number[] | null => {
  const dotted = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(text);
  const tail = dotted ? ipv4(dotted[2] ?? '') : 0;
  if (tail === null) return null;
  const hex = dotted ? `${dotted[1]}${(tail >>> 16).toString(16)}:${(tail & 0xffff).toString(16)}` : text;
  const halves = hex.split('::');
  if (halves.length > 2) return null;
  const [head, rest] = [groupsOf(halves[0] ?? ''), groupsOf(halves[1] ?? '')];
  if (!head || !rest) return null;
  const missing = 8 - head.length - rest.length;
  if (halves.length === 1 ? missing !== 0 : missing < 1) return null;
  return [...head, ...Array<number>(missing).fill(0), ...rest];
};

/**
 * Only global unicast, and of that nothing that carries another address in it or names no host: Teredo and the rest of
 * 2001::/23, documentation, 6to4. IPv4-mapped addresses, loopback, link-local, unique local and multicast are outside.
 */
const isPublicV6 = ([first = 0, second = 0]: readonly number[]): boolean => {
  if (first >> 13 !== 1) return false;
  if (first === 0x2002) return false;
  if (first === 0x2001 && (second < 0x0200 || second === 0x0db8)) return false;
  return !(first === 0x3fff && second < 0x1000);
};

/** Whether an address, as a resolver answers it, is one of the public internet. What cannot be read is not. */
export const isPublicAddress = (text: string): boolean => {
  const v4 = ipv4(text);
  if (v4 !== null) return isPublicV4(v4);
  const v6 = ipv6(text);
  return v6 !== null && isPublicV6(v6);
};
