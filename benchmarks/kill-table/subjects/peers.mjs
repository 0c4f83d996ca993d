import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort, startRestateServer } from '../../lib/restate-server.mjs';
import { repeatUntilDone, runHostTurn } from '../client.mjs';
import { supervise } from '../supervised.mjs';

/** A peer in a process with its library. The process starts again at once after a kill. */
const startHost = async (host, env) => {
  const port = await freePort();
  const process = await supervise(host, { ...env, PORT: String(port) });
  return {
    turn: (id, content, signal) => runHostTurn(`http://127.0.0.1:${port}`, id, content, signal),
    kill: () => process.kill(),
    settle: () => process.whenReady(),
    close: () => process.close(),
  };
};

export const startDbos = ({ providerUrl }, databaseUrl) =>
  startHost('dbos-host', { PROVIDER_URL: providerUrl, DATABASE_URL: databaseUrl });

export const startLangGraph = ({ providerUrl }, databaseUrl, durability) =>
  startHost('langgraph-host', {
    ...{ PROVIDER_URL: providerUrl, DATABASE_URL: databaseUrl },
    ...(durability && { DURABILITY: durability }),
  });

/** A client of Restate's ingress. Requests that break are repeated with the same idempotency key. */
const runRestateTurn = async (ingressUrl, id, content, signal) => {
  const headers = { 'content-type': 'application/json', 'idempotency-key': id };
  const body = JSON.stringify(content);
  const send = () =>
    fetch(`${ingressUrl}/session/${id}/turn/send`, { method: 'POST', headers, body, signal });
  const { invocationId } = await repeatUntilDone(send, signal);
  const attach = () => fetch(`${ingressUrl}/restate/invocation/${invocationId}/attach`, { signal });
  return repeatUntilDone(attach, signal);
};

/** Kills the process with the service, or the server. */
export const startRestate = async ({ providerUrl }, killed) => {
  const folder = mkdtempSync(join(tmpdir(), 'antiphon-kill-restate-'));
  const server = await startRestateServer(folder);
  const port = await freePort();
  const service = await supervise('restate-host', { PROVIDER_URL: providerUrl, PORT: String(port) });
  await server.register(`http://127.0.0.1:${port}`);
  let restarted = Promise.resolve();
  const killServer = () => {
    process.kill(server.pid(), 'SIGKILL');
    restarted = server.restart();
    // `settle` reports the error, unless the run has ended before.
    restarted.catch(() => undefined);
  };
  return {
    turn: (id, content, signal) => runRestateTurn(server.ingressUrl, id, content, signal),
    kill: killed === 'server' ? killServer : () => service.kill(),
    settle: () => (killed === 'server' ? restarted : service.whenReady()),
    close: async () => {
      await service.close();
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};
