// Restate's server as a child process, with a folder of its own, loopback addresses and no
// telemetry. Its durability is its default: each record of its log is flushed to disk.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, openSync } from 'node:fs';
import { createServer } from 'node:net';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

const READY_MS = 60_000;
/** The default of 24 is for a cluster. */
const PARTITIONS = 4;

/** The package of this platform; the wrapper around it reports its installs, so it is not run. */
const programPath = () => {
  const name = `@restatedev/restate-server-${process.platform}-${process.arch}/package.json`;
  return join(dirname(createRequire(import.meta.url).resolve(name)), 'bin/restate-server');
};

/** Returns a port that was free just now. */
export const freePort = async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
};

const isUp = async (url) => {
  try {
    return (await fetch(url)).ok;
  } catch {
    return false;
  }
};

const waitUntilUp = async (child, url) => {
  const until = performance.now() + READY_MS;
  while (!(await isUp(url))) {
    if (hasEnded(child) || performance.now() > until)
      throw new Error(`Restate's server did not start (${child.signalCode ?? child.exitCode})`);
    await wait(50);
  }
};

const environmentOf = ({ ingress, admin, node }) => ({
  PATH: process.env.PATH,
  DO_NOT_TRACK: '1',
  RESTATE_DISABLE_TELEMETRY: 'true',
  RESTATE_DEFAULT_NUM_PARTITIONS: String(PARTITIONS),
  RESTATE_LISTEN_MODE: 'tcp',
  RESTATE_BIND_ADDRESS: `127.0.0.1:${node}`,
  RESTATE_ADVERTISED_ADDRESS: `http://127.0.0.1:${node}`,
  RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
  RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
  RESTATE_ADMIN__DISABLE_WEB_UI: 'true',
  RESTATE_LOG_FILTER: 'error',
});

const hasEnded = ({ exitCode, signalCode }) => exitCode !== null || signalCode !== null;

const launch = (folder, env) => {
  const log = openSync(join(folder, 'server.log'), 'a');
  const args = ['--base-dir', join(folder, 'data'), '--no-logo', '--log-disable-ansi-codes', 'true'];
  return spawn(programPath(), args, { env, cwd: folder, stdio: ['ignore', log, log] });
};

/** Starts the server. `restart` starts it again on its data after it was killed. */
export const startRestateServer = async (folder) => {
  mkdirSync(folder, { recursive: true });
  const ports = { ingress: await freePort(), admin: await freePort(), node: await freePort() };
  const env = environmentOf(ports);
  const ingressUrl = `http://127.0.0.1:${ports.ingress}`;
  const adminUrl = `http://127.0.0.1:${ports.admin}`;
  let child;
  const killAtExit = () => child?.kill('SIGKILL');
  process.once('exit', killAtExit);
  const start = async () => {
    // The next server needs the ports and the lock of the last one.
    if (child !== undefined && !hasEnded(child)) await once(child, 'exit');
    child = launch(folder, env);
    await waitUntilUp(child, `${adminUrl}/health`);
    await waitUntilUp(child, `${ingressUrl}/restate/health`);
  };
  await start();
  return {
    ingressUrl,
    pid: () => child.pid,
    restart: start,
    /** Makes the server call the services at this address. */
    register: async (uri) => {
      const headers = { 'content-type': 'application/json' };
      const body = JSON.stringify({ uri });
      const response = await fetch(`${adminUrl}/deployments`, { method: 'POST', headers, body });
      if (!response.ok) throw new Error(`Restate did not accept ${uri}: ${await response.text()}`);
    },
    stop: async () => {
      process.off('exit', killAtExit);
      if (hasEnded(child)) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
};
