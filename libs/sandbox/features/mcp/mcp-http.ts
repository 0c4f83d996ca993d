import { lookup } from 'node:dns';
import { isIP } from 'node:net';
import type { LookupFunction } from 'node:net';
import { forbidden } from '@antiphon/kernel';
import { isPublicAddress } from '@antiphon/sandbox-domain';
import { Agent, Headers, Response, fetch } from 'undici';
import type { RequestInfo, RequestInit } from 'undici';
import { boundBody } from './bounded-body.js';
import { MAX_MESSAGE_BYTES, McpFlood, reading } from './mcp-flood.js';

const HTTP_TIMEOUT_MS = 65_000;
const CONNECT_TIMEOUT_MS = 5_000;

/** Addresses outside of the public internet that the operator allows, as `host` or `host:port`. */
export type PrivateHosts = readonly string[];

const isPrivateHostAllowed = ({ hostname, host }: URL, hosts: PrivateHosts): boolean =>
  hosts.includes(hostname) || hosts.includes(host);

const refused = (reason: string) =>
  forbidden('MCP.ADDRESS_REFUSED', `this address of an MCP server cannot be used: ${reason}`);

/**
 * Checks the URL of a request. Throws `MCP.ADDRESS_REFUSED`. A host of the public internet needs
 * https. All other hosts are refused unless the operator allows them.
 */
export const checkMcpUrl = (text: string, hosts: PrivateHosts): URL => {
  const url = URL.parse(text);
  if (url === null) throw refused('it is not a URL');
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw refused('it is not one of http or https');
  if (url.username !== '' || url.password !== '') throw refused('it has credentials in it');
  if (isPrivateHostAllowed(url, hosts)) return url;
  if (url.protocol !== 'https:') throw refused('a host of the public internet needs https');
  const literal = url.hostname.replace(/^\[|\]$/g, '');
  if (isIP(literal) !== 0 && !isPublicAddress(literal))
    throw refused(
      `${url.host} is not an address of the public internet. What to do: name it in mcp.private_hosts`,
    );
  return url;
};

/** Resolves a name for a connection. Fails if one of its addresses is not public. */
const lookupPublic: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { all: true, verbatim: true }, (error, addresses) => {
    if (error) return callback(error, '', 4);
    if (addresses.length === 0 || !addresses.every(({ address }) => isPublicAddress(address)))
      return callback(refused(`${hostname} leads to an address that is not of the public internet`), '', 4);
    const [first] = addresses;
    if (options.all) callback(null, addresses);
    else callback(null, first?.address ?? '', first?.family ?? 4);
  });
};

const NO_BODY: ReadonlySet<number> = new Set([101, 204, 205, 304]);

const boundResponse = (response: Response): Response => {
  const { status, statusText, headers, body } = response;
  if (body === null || NO_BODY.has(status)) return response;
  if (Number(headers.get('content-length') ?? 0) > MAX_MESSAGE_BYTES) {
    void body.cancel();
    throw new McpFlood(`a response has over ${MAX_MESSAGE_BYTES} bytes`);
  }
  const isStream = (headers.get('content-type') ?? '').startsWith('text/event-stream');
  return new Response(boundBody(body, isStream, reading), { status, statusText, headers });
};

/** HTTP client of one MCP server. It follows no redirect, and vets the address of each request. */
export class McpHttp {
  readonly #options = {
    connect: { timeout: CONNECT_TIMEOUT_MS },
    headersTimeout: HTTP_TIMEOUT_MS,
    // The deadline of the call ends a silent stream. The stream of notifications may be silent.
    bodyTimeout: 0,
    allowH2: false,
  };
  readonly #vetted = new Agent({
    ...this.#options,
    connect: { timeout: CONNECT_TIMEOUT_MS, lookup: lookupPublic },
  });
  readonly #allowed = new Agent(this.#options);

  constructor(private readonly hosts: PrivateHosts) {}

  readonly fetch = async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
    const url = checkMcpUrl(input instanceof URL ? input.href : String(input), this.hosts);
    const dispatcher = isPrivateHostAllowed(url, this.hosts) ? this.#allowed : this.#vetted;
    const headers = new Headers(init?.headers);
    return boundResponse(await fetch(url, { ...init, headers, redirect: 'manual', dispatcher }));
  };

  async close(): Promise<void> {
    await Promise.all([this.#vetted.destroy(), this.#allowed.destroy()]);
  }
}
