import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

const killed = (child, ms, what) =>
  setTimeout(() => {
    console.error(`${what} took longer than ${ms / 1000} s and is stopped`);
    child.kill('SIGKILL');
  }, ms);

/** Starts the model that answers at once; resolves to its base URL (without `/v1`). */
export const startMockProvider = async () => {
  const child = fork(here('./mock-provider.mjs'), { stdio: 'inherit' });
  const [{ port }] = await once(child, 'message');
  return { url: `http://127.0.0.1:${port}`, close: () => child.kill('SIGTERM') };
};

/**
 * No library of a peer reports its use to its vendor, in any environment, and none
 * prints a line for each turn.
 */
export const PEER_ENVIRONMENT = {
  DO_NOT_TRACK: '1',
  LANGSMITH_TRACING: 'false',
  LANGCHAIN_TRACING_V2: 'false',
  MASTRA_TELEMETRY_DISABLED: '1',
  SCARF_ANALYTICS: 'false',
  RESTATE_LOGGING: 'ERROR',
};

/**
 * A subject in a process of its own. `subjects/<name>.mjs` exports `open(options)`, which returns
 * functions that are called by name. A call that takes longer than its bound ends the subject and
 * the benchmark with it. `label` names the subject in figures.
 */
export const startSubject = async (name, options, { timeoutMs = 600_000, label = name } = {}) => {
  const child = fork(here('./subject-host.mjs'), [name], {
    stdio: 'inherit',
    serialization: 'advanced',
    env: { ...process.env, ...PEER_ENVIRONMENT },
  });
  let lastId = 0;
  const call = async (method, params) => {
    const id = (lastId += 1);
    const guard = killed(child, timeoutMs, `${name}.${method}`);
    const answered = new Promise((resolve, reject) => {
      const onMessage = (message) => {
        if (message.id !== id) return;
        child.off('message', onMessage);
        child.off('exit', onExit);
        if (message.error === undefined) resolve(message.result);
        else reject(new Error(`${name}.${method}: ${message.error}`));
      };
      const onExit = (code, signal) =>
        reject(new Error(`${name} ended (${signal ?? code}) during ${method}`));
      child.on('message', onMessage);
      child.once('exit', onExit);
    });
    child.send({ id, method, params });
    try {
      return await answered;
    } finally {
      clearTimeout(guard);
    }
  };
  await call('open', options);
  return {
    name: label,
    call,
    close: async () => {
      if (child.exitCode !== null) return;
      const gone = once(child, 'exit');
      await call('close').catch(() => undefined);
      child.disconnect();
      const guard = killed(child, 10_000, `closing ${name}`);
      await gone;
      clearTimeout(guard);
    },
  };
};
