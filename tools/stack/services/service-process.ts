import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import type { ServiceName } from '@antiphon/contracts/messaging';
import type { RunningChild } from '../process/child-process.js';
import type { Incarnation, ProcessSpec } from '../process/supervised-process.js';
import { serviceEnvironment } from './service-environment.js';
import type { ServiceConnections } from './service-environment.js';

/** In which order services start; those of one wave start side by side. Stopping goes backwards. */
export const SERVICE_WAVES: readonly (readonly ServiceName[])[] = [
  ['memory', 'metering', 'sandbox'],
  ['agent'],
  ['gateway'],
];

const FIRST_SERVICE_RANK = 10;
const rankOf = (service: ServiceName): number =>
  FIRST_SERVICE_RANK + SERVICE_WAVES.findIndex((wave) => wave.includes(service));

/** What every service of a stack has in common. */
export interface ServiceContext {
  readonly root: string;
  readonly home: string;
  readonly cache: string;
  readonly logs: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly config: string | null;
  readonly connections: (service: ServiceName) => ServiceConnections;
  /** Program of a service; a test runs something smaller in its place. */
  readonly mainFile: (service: ServiceName) => string;
  readonly releaseLeases: (serviceId: string) => Promise<void>;
}

export interface ServiceInstance {
  readonly service: ServiceName;
  /** From 1. */
  readonly index: number;
  readonly host: string;
  /** The port to listen on now; 0 for any. */
  readonly port: () => Promise<number>;
}

const ReadyMessage = z.object({ type: z.literal('ready'), port: z.int().positive().nullish() });

/** Resolves with the port of `{type:'ready', port}` over the channel. */
const awaitReadyMessage = (child: RunningChild, signal: AbortSignal): Promise<number | null> =>
  new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    child.onMessage((message) => {
      const parsed = ReadyMessage.safeParse(message);
      if (parsed.success) resolve(parsed.data.port ?? null);
    });
  });

/**
 * Node begins with one MiB for what is new, and so looks through it a hundred times a second under load: what a turn has
 * just made is still in use then, and is copied. With 8 MiB most of it is gone by the next look (ADR 25).
 */
const SERVICE_FLAGS = ['--min-semi-space-size=8', '--max-semi-space-size=16'];

/** How one process of a service is run. */
export const serviceProcess = (instance: ServiceInstance, context: ServiceContext): ProcessSpec => {
  const { service, index, host } = instance;
  const name = `${service}-${index}`;
  const prepare = async (): Promise<Incarnation> => {
    // A new owner of leases each time: what the dead one held must not look like the new one's.
    const serviceId = `${name}-${randomBytes(4).toString('hex')}`;
    const { home, cache, config, cwd } = context;
    const settings = { service, serviceId, host, home, cache, config, port: await instance.port() };
    const env = serviceEnvironment({ ...settings, connections: context.connections(service) }, context.env);
    const logFile = join(context.logs, `${name}.log`);
    const args = [...SERVICE_FLAGS, context.mainFile(service)];
    return { serviceId, launch: { command: process.execPath, args, env, cwd, home, logFile, ipc: true } };
  };
  return {
    name,
    rank: rankOf(service),
    stopSignal: 'SIGTERM',
    graceMs: 20_000,
    readyTimeoutMs: 60_000,
    attempts: 2,
    prepare,
    whenReady: awaitReadyMessage,
    afterDeath: ({ serviceId }) =>
      serviceId === undefined ? Promise.resolve() : context.releaseLeases(serviceId),
  };
};
