import { isIP } from 'node:net';

/** Capability of a plug-in: requests to one host, or access to one named store. */
export type Capability =
  { readonly type: 'http'; readonly host: string } | { readonly type: 'store'; readonly name: string };

export type CapabilityResult =
  { readonly ok: true; readonly capability: Capability } | { readonly ok: false; readonly message: string };

export const CAPABILITY_TYPES = ['http', 'store'] as const;

const HOST_NAME = /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]{0,62})(?:\.[a-z0-9][a-z0-9-]{0,62})*$/;
const STORE_NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/;
const LOCAL_NAMES = /(?:^|\.)(?:localhost|local|internal)$/;
/**
 * Last label of a numeric address. `127.0.0.1` may be written 2130706433, 0x7f.1 or 0177.1; no
 * public host name ends like this.
 */
const NUMERIC_LABEL = /^(?:0x[0-9a-f]*|\d+)$/;

const refuse = (message: string): CapabilityResult => ({ ok: false, message });

const parseHost = (host: string): CapabilityResult => {
  const name = host.toLowerCase();
  if (isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0 || NUMERIC_LABEL.test(name.split('.').at(-1) ?? ''))
    return refuse(`http:${host} names an address; a plug-in may only call public host names`);
  if (!HOST_NAME.test(name))
    return refuse(`http:${host} is not a host name (no scheme, port, path or wildcard)`);
  if (LOCAL_NAMES.test(name)) return refuse(`http:${host} names this machine or its network`);
  return { ok: true, capability: { type: 'http', host: name } };
};

/** Parses `http:HOST` or `store:NAME`. Returns the reason if the text is neither. */
export const parseCapability = (text: string): CapabilityResult => {
  const colon = text.indexOf(':');
  const type = colon === -1 ? text : text.slice(0, colon);
  const rest = colon === -1 ? '' : text.slice(colon + 1);
  if (type === 'http') return parseHost(rest);
  if (type !== 'store') return refuse(`unknown capability type ${JSON.stringify(type)}`);
  if (!STORE_NAME.test(rest)) return refuse(`${JSON.stringify(rest)} is not the name of a store`);
  return { ok: true, capability: { type: 'store', name: rest } };
};
