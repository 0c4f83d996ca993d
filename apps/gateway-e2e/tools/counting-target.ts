import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Host name of the target for tools, and the public address that the name resolves to. */
export const TARGET_HOST = 'target.example.com';
const TARGET_ADDRESS = '93.184.216.34';

/** A server that acts on each request, and counts the requests by their idempotency key. */
export interface CountingTarget {
  /** Number of requests by key. */
  readonly requests: ReadonlyMap<string, number>;
  /** Called with each request, counted from 1, after it has acted and before it responds. */
  onAct: (nth: number) => Promise<void> | void;
  /**
   * Path of a module that redirects a process's connections to the target, when it is loaded first.
   */
  readonly preload: string;
  /** Address of the target on this machine, for programs without rules of egress. */
  readonly url: string;
  close(): void;
}

// The code under test checks names and addresses as usual. Only the allowed connection is
// redirected.
const preloadText = (port: number): string => `
import dns from 'node:dns/promises';
import net from 'node:net';
import { syncBuiltinESMExports } from 'node:module';
const { lookup } = dns;
const { connect } = net;
dns.lookup = (host, options) =>
  host === '${TARGET_HOST}' ? Promise.resolve([{ address: '${TARGET_ADDRESS}', family: 4 }]) : lookup(host, options);
net.connect = (...args) =>
  args[0]?.host === '${TARGET_ADDRESS}' ? connect({ host: '127.0.0.1', port: ${port} }) : connect(...args);
syncBuiltinESMExports();
`;

export const startCountingTarget = async (): Promise<CountingTarget> => {
  const requests = new Map<string, number>();
  let acts = 0;
  const server = createServer((request, response) => {
    const key = String(request.headers['idempotency-key'] ?? '');
    requests.set(key, (requests.get(key) ?? 0) + 1);
    void Promise.resolve(target.onAct(++acts)).then(() =>
      response.writeHead(200, { 'content-type': 'text/plain' }).end(`done ${key}`),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const preload = join(mkdtempSync(join(tmpdir(), 'antiphon-target-')), 'preload.mjs');
  const { port } = server.address() as AddressInfo;
  writeFileSync(preload, preloadText(port));
  const target: CountingTarget = {
    requests,
    onAct: () => undefined,
    preload,
    url: `http://127.0.0.1:${port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
  return target;
};
