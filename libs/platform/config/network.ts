import { isIP } from 'node:net';

/** A range of addresses. A single address has the longest prefix of its family. */
export interface Network {
  readonly address: string;
  readonly prefix: number;
  readonly family: 'ipv4' | 'ipv6';
}

/** Parses an address or a CIDR range such as `10.0.0.0/8`. Returns null for any other text. */
export const parseNetwork = (text: string): Network | null => {
  const match = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(text);
  const address = match?.[1] ?? '';
  const version = isIP(address);
  if (match === null || version === 0) return null;
  const longest = version === 4 ? 32 : 128;
  const prefix = match[2] === undefined ? longest : Number(match[2]);
  return prefix > longest ? null : { address, prefix, family: version === 4 ? 'ipv4' : 'ipv6' };
};
