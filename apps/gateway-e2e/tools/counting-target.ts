import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The name under which tools ask for it, and the public address that the name is said to have. */
export const TARGET_HOST = 'target.example.com';
const TARGET_ADDRESS = '93.184.216.34';

/**
 * A server out in the world, which acts each time that it is asked and counts that by the key of
 * the request.
 */
export interface CountingTarget {
  /** How often it was asked under each key. */
  readonly asked: ReadonlyMap<string, number>;
  /** Called with each request, counted from 1, after it has acted and before it answers. */
  onAct: (nth: number) => Promise<void> | void;
  /**
   * Absolute path of a module that, loaded first, leads a process's connections to the target here.
   */
  readonly preload: string;
  close(): void;
}

/* Names and addresses are vetted by the code under test as ever; only the last hop, a connection that it allows, is bent. */
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
  const asked = new Map<string, number>();
  let acts = 0;
  const server = createServer((request, response) => {
    const key = String(request.headers['idempotency-key'] ?? '');
    asked.set(key, (asked.get(key) ?? 0) + 1);
    void Promise.resolve(target.onAct(++acts)).then(() =>
      response.writeHead(200, { 'content-type': 'text/plain' }).end(`done ${key}`),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const preload = join(mkdtempSync(join(tmpdir(), 'antiphon-target-')), 'preload.mjs');
  writeFileSync(preload, preloadText((server.address() as AddressInfo).port));
  const target: CountingTarget = {
    asked,
    onAct: () => undefined,
    preload,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
  return target;
};
