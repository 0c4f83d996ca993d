// Antiphon as `npm start` runs it: its supervisor starts a killed service again.
import { execFile, execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import WebSocket from 'ws';
import { providerConfig, startStack } from '../../lib/stack.mjs';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const CLI = join(ROOT, 'apps/cli/bin/antiphon.mjs');
/** The tool's client calls public addresses only, so the target has one that a preload redirects. */
const TARGET_HOST = 'target.example.com';
const TARGET_ADDRESS = '93.184.216.34';
/** The supervisor delays the restart of a process that died sooner after its start. */
const HEALTHY_MS = 2_300;
const READY_MS = 60_000;
const REPEAT_MS = 20;

const preloadText = (port) => `
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

const utf16 = (text) => Buffer.from(text, 'utf16le');

/**
 * Returns `http-get` without its declaration that it is idempotent: in the copy, another key of the
 * same length replaces the declaration's.
 */
const buildCharge = () => {
  execFileSync(process.execPath, [join(ROOT, 'plugins/build.mjs')]);
  const module = readFileSync(join(ROOT, 'plugins/dist/http-get.wasm'));
  utf16('"idempotenT":true}').copy(module, module.indexOf(utf16('"idempotent":true}')));
  return module;
};

const configure = (providerUrl) => (folder) => {
  writeFileSync(join(folder, 'charge.wasm'), buildCharge());
  return `${providerConfig(providerUrl)}
[[agents]]
id = "main"
provider = "bench"
model = "mock"
tools = ["charge"]

[[plugins]]
name = "charge"
path = "${join(folder, 'charge.wasm')}"
capabilities = ["http:${TARGET_HOST}"]
`;
};

const connect = async (url) => {
  const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/ws`);
  const waiting = new Map();
  await new Promise((resolve, reject) => {
    socket.on('message', (data) => {
      const frame = JSON.parse(data);
      if (frame.type === 'session.ack') resolve();
      else waiting.get(frame.id)?.(frame);
    });
    socket.once('error', reject);
  });
  let lastId = 0;
  /** Resolves to the end of a turn, or to undefined if its request failed before it was accepted. */
  const send = (params, signal) =>
    new Promise((resolve, reject) => {
      const id = (lastId += 1);
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      waiting.set(id, ({ event, data, error }) => {
        if (error === undefined && event !== 'done') return;
        waiting.delete(id);
        resolve(error === undefined ? { status: data.status } : undefined);
      });
      socket.send(JSON.stringify({ id, method: 'chat.send', params }));
    });
  return { send, close: () => socket.close() };
};

/** Sends a turn, again with the same key as long as it is not accepted. */
const runTurn = async (client, id, content, signal) => {
  const params = { channel: 'kill', account: 'kill', peer: id, content, idempotencyKey: id };
  for (;;) {
    const end = await client.send(params, signal);
    if (end !== undefined) return end;
    await wait(REPEAT_MS, undefined, { signal });
  }
};

const auditOf = (env) =>
  new Promise((resolve) => {
    execFile(process.execPath, [CLI, 'audit'], { env }, (error, stdout) =>
      resolve({ code: error?.code ?? 0, last: stdout.trim().split('\n').at(-1) ?? '' }),
    );
  });

/** Starts a stack. `subject(service)` kills that service. */
export const startAntiphon = async (stubs) => {
  const preload = (folder) => {
    writeFileSync(join(folder, 'preload.mjs'), preloadText(stubs.targetPort));
    return configure(stubs.providerUrl)(folder);
  };
  const stack = await startStack(stubs.providerUrl, [], {
    write: preload,
    extra: (folder) => ({ ANTIPHON_NODE_OPTIONS: `--import ${join(folder, 'preload.mjs')}` }),
  });
  const client = await connect(stack.gatewayUrl());
  const firstOf = (service) => stack.read().services[service][0];
  const subject = (service) => {
    let restarts = 0;
    return {
      targetUrl: `http://${TARGET_HOST}`,
      turn: (id, content, signal) => runTurn(client, id, content, signal),
      kill: () => {
        const { pid, restarts: before = 0 } = firstOf(service);
        restarts = before;
        process.kill(pid, 'SIGKILL');
      },
      settle: async () => {
        const until = performance.now() + READY_MS;
        const isBack = ({ state, restarts: now }) => state === 'ready' && now > restarts;
        while (!isBack(firstOf(service))) {
          if (performance.now() > until) throw new Error(`${service} did not start again`);
          await wait(20);
        }
        await wait(HEALTHY_MS);
      },
      audit: () => auditOf(stack.env),
      close: async () => undefined,
    };
  };
  return {
    subject,
    adminUrl: () => stack.adminUrl(),
    pids: () => stack.pids(),
    /** Number of processes of the services: a hosted one is part of another's. */
    processes: () =>
      Object.values(stack.read().services)
        .flat()
        .filter(({ process: host }) => host === undefined).length,
    stop: async () => {
      client.close();
      await stack.stop();
    },
  };
};
