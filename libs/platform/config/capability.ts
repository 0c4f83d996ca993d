import { isIP } from 'node:net';
import { findNearest } from './find-nearest.js';

/** Capability of a plug-in: what its calls may reach, next to their input. */
export type Capability =
  | {
      readonly type: 'http';
      readonly host: string;
      /** Null for the usual port of the scheme. */
      readonly port: number | null;
      /** Prefix of the path, in whole segments; `/` for each path. */
      readonly path: string;
    }
  | { readonly type: 'store' | 'secret'; readonly name: string }
  | { readonly type: 'log' | 'clock' | 'random' };

export type CapabilityResult =
  | { readonly ok: true; readonly capability: Capability }
  | {
      readonly ok: false;
      readonly message: string;
      /** The nearest known type, if one is similar. */
      readonly nearest?: string | null;
    };

export const CAPABILITY_TYPES = ['http', 'store', 'secret', 'log', 'clock', 'random'] as const;
/** Forms of all capabilities, for errors and the reference. */
export const CAPABILITY_FORMS = 'http:HOST[:PORT][/PATH], store:NAME, secret:NAME, log, clock or random';

const HOST_NAME = /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]{0,62})(?:\.[a-z0-9][a-z0-9-]{0,62})*$/;
const STORE_NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/;
const LOCAL_NAMES = /(?:^|\.)(?:localhost|local|internal)$/;
const HTTP_FORM = /^([^:/]*)(?::(\d{1,5}))?(\/.*)?$/;
/** Segments of a path, of characters that no server decodes to another path. */
const PATH = /^\/(?:[A-Za-z0-9._~-]+\/)*(?:[A-Za-z0-9._~-]+)?$/;
const DOT_SEGMENT = /(?:^|\/)\.{1,2}(?:\/|$)/;
const MAX_PORT = 65_535;
/**
 * Last label of a numeric address. `127.0.0.1` may be written 2130706433, 0x7f.1 or 0177.1; no
 * public host name ends like this.
 */
const NUMERIC_LABEL = /^(?:0x[0-9a-f]*|\d+)$/;

const refuse = (message: string): CapabilityResult => ({ ok: false, message });

const isAddress = (name: string): boolean =>
  isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0 || NUMERIC_LABEL.test(name.split('.').at(-1) ?? '');

const parseHttp = (text: string): CapabilityResult => {
  const [, host, port, path = '/'] = HTTP_FORM.exec(text) ?? [];
  const name = (host ?? text).toLowerCase();
  if (isAddress(name))
    return refuse(`http:${text} names an address; a plug-in may only call public host names`);
  if (host === undefined || !HOST_NAME.test(name))
    return refuse(`http:${text} is not HOST[:PORT][/PATH] (no scheme, query or wildcard)`);
  if (LOCAL_NAMES.test(name)) return refuse(`http:${text} names this machine or its network`);
  if (port !== undefined && (Number(port) === 0 || Number(port) > MAX_PORT))
    return refuse(`http:${text} has no port from 1 to ${MAX_PORT}`);
  if (!PATH.test(path) || DOT_SEGMENT.test(path))
    return refuse(`http:${text} has a path with other characters than letters, digits and . _ ~ - /`);
  return {
    ok: true,
    capability: { type: 'http', host: name, port: port === undefined ? null : Number(port), path },
  };
};

/** Parses the text of a capability. Returns the reason if it is none. */
export const parseCapability = (text: string): CapabilityResult => {
  const colon = text.indexOf(':');
  const type = colon === -1 ? text : text.slice(0, colon);
  const rest = colon === -1 ? null : text.slice(colon + 1);
  switch (type) {
    case 'http':
      return parseHttp(rest ?? '');
    case 'store':
    case 'secret':
      return STORE_NAME.test(rest ?? '')
        ? { ok: true, capability: { type, name: rest ?? '' } }
        : refuse(`${JSON.stringify(rest ?? '')} is not the name of a ${type}`);
    case 'log':
    case 'clock':
    case 'random':
      return rest === null
        ? { ok: true, capability: { type } }
        : refuse(`the capability ${type} has no ${JSON.stringify(rest)} after it`);
    default: {
      const nearest = findNearest(type, CAPABILITY_TYPES);
      const message = `unknown capability type ${JSON.stringify(type.slice(0, 60))}`;
      return { ok: false, message, nearest };
    }
  }
};
