import { randomBytes } from 'node:crypto';
import { get } from 'node:http';
import { join } from 'node:path';
import type { ServiceName } from '@antiphon/contracts/messaging';
import { z } from 'zod';
import type { ServiceConfiguration } from '../supervisor/configuration.js';
import type { RunningChild } from './child-process.js';
import { IDLE_START_MS } from './idle-process.js';
import { renderHostedEnvironments, serviceEnvironment } from './service-environment.js';
import type { Environment, ServiceConnections } from './service-environment.js';
import type { Incarnation, ProcessSpec } from './supervised-process.js';

/** Start order of the services; those of one wave start in parallel. Stopping reverses it. */
export const SERVICE_WAVES: readonly (readonly ServiceName[])[] = [
  ['memory', 'metering', 'sandbox'],
  ['agent'],
  ['gateway'],
];

const FIRST_SERVICE_RANK = 10;
const rankOf = (service: ServiceName): number =>
  FIRST_SERVICE_RANK + SERVICE_WAVES.findIndex((wave) => wave.includes(service));

/** Settings that all services of a stack share. */
export interface ServiceContext {
  readonly home: string;
  readonly cache: string;
  readonly logs: string;
  readonly cwd: string;
  readonly env: Environment;
  /** Returns the configuration for the next start of a service. */
  readonly configuration: () => ServiceConfiguration;
  readonly watchesHealth: boolean;
  readonly connections: (service: ServiceName) => ServiceConnections;
  /** Returns the program of a service; tests run a smaller one. */
  readonly mainFile: (service: ServiceName, isHost: boolean) => string;
  readonly releaseLeases: (serviceId: string) => Promise<void>;
}

export interface ServiceInstance {
  readonly service: ServiceName;
  /** Services in the process of this one. */
  readonly hosts: readonly ServiceName[];
  /** Called with the HTTP ports of the hosted services, by name, each time the process is ready. */
  readonly onHosted: (ports: Readonly<Record<string, number>>) => void;
  /** From 1. */
  readonly index: number;
  readonly host: string;
  /** Returns the port for the next start; 0 for any. */
  readonly port: () => Promise<number>;
}

const ReadyMessage = z.object({
  type: z.literal('ready'),
  port: z.int().positive().nullish(),
  hosted: z.record(z.string(), z.int().positive()).optional(),
});
type ReadyMessage = z.infer<typeof ReadyMessage>;

/** Waits for `{type:'ready', port, hosted}` on the channel. */
const waitForReadyMessage = (child: RunningChild, signal: AbortSignal): Promise<ReadyMessage> =>
  new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    child.onMessage((message) => {
      const parsed = ReadyMessage.safeParse(message);
      if (parsed.success) resolve(parsed.data);
    });
  });

const HEALTH_TIMEOUT_MS = 4_000;
const ANY_ADDRESS = new Set(['0.0.0.0', '::', '[::]', '']);

/** Resolves at any HTTP response: the event loop of the service runs. */
const requestHealth = (host: string, port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const target = { host: ANY_ADDRESS.has(host) ? '127.0.0.1' : host, port, path: '/healthz' };
    const request = get({ ...target, agent: false, timeout: HEALTH_TIMEOUT_MS }, (response) => {
      response.resume();
      resolve();
    });
    request.on('timeout', () => request.destroy(new Error('no response')));
    request.on('error', reject);
  });

const PING_TIMEOUT_MS = 2_000;

/** Resolves at the response to a message on the channel, which no client of the service can fill. */
const ping = (child: RunningChild): Promise<void> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('no response')), PING_TIMEOUT_MS);
    child.onceMessage('pong', () => {
      clearTimeout(timer);
      resolve();
    });
    child.send({ type: 'ping' });
  });

/**
 * Asks a service whether its event loop runs, by HTTP and then by its channel. A gateway whose
 * clients use up its sockets does not hang. Dependencies that do not work are no reason to restart
 * a service. Rejects without a response in time.
 */
export const checkHealth = (host: string, port: number, child: RunningChild): Promise<void> =>
  requestHealth(host, port).catch(() => ping(child));

/**
 * Flags for a larger young generation. Node begins with 1 MiB, collects it 100 times a second under
 * load and copies what open turns still use. With 16 MiB most of it is garbage by then.
 */
const SERVICE_FLAGS = ['--min-semi-space-size=16', '--max-semi-space-size=32'];

/** Returns how one process of a service is run. */
export const serviceProcess = (instance: ServiceInstance, context: ServiceContext): ProcessSpec => {
  const { service, index, host, hosts } = instance;
  const name = `${service}-${index}`;
  const prepare = async (): Promise<Incarnation> => {
    // A new owner of leases for each start: those of the dead process must not look like its own.
    // Hosted services share it, since they end together.
    const serviceId = `${name}-${randomBytes(4).toString('hex')}`;
    const { home, cache, cwd } = context;
    const configuration = context.configuration();
    const port = await instance.port();
    const settings = { serviceId, host, home, cache, configuration };
    const environmentOf = (other: ServiceName, port: number): Environment =>
      serviceEnvironment(
        { ...settings, service: other, port, connections: context.connections(other) },
        context.env,
      );
    const hosted = hosts.map((other) => [other, environmentOf(other, 0)] as const);
    const env = {
      ...environmentOf(service, port),
      ...(hosts.length > 0 ? renderHostedEnvironments(Object.fromEntries(hosted)) : {}),
    };
    const logFile = join(context.logs, `${name}.log`);
    const args = [...SERVICE_FLAGS, context.mainFile(service, hosts.length > 0)];
    return { serviceId, launch: { command: process.execPath, args, env, cwd, home, logFile, ipc: true } };
  };
  return {
    name,
    rank: rankOf(service),
    stopSignal: 'SIGTERM',
    graceMs: 20_000,
    readyTimeoutMs: 60_000,
    idleTimeoutMs: IDLE_START_MS,
    attempts: 2,
    prepare,
    whenReady: async (child, signal) => {
      const { port, hosted = {} } = await waitForReadyMessage(child, signal);
      instance.onHosted(hosted);
      return port ?? null;
    },
    ...(context.watchesHealth ? { checkHealth: (port, child) => checkHealth(host, port, child) } : {}),
    afterExit: async ({ serviceId }) => {
      if (serviceId !== undefined) await context.releaseLeases(serviceId);
    },
  };
};
