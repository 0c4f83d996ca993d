import { join } from 'node:path';
import type { AntiphonConfig } from '@antiphon/config';
import type { ServiceName } from '@antiphon/contracts/messaging';
import { createStickyPort } from '../home/sticky-port.js';
import { connectionsFor } from '../mounts/mount-engines.js';
import type { Engines, EnginesOptions } from '../mounts/mount-engines.js';
import { superviseProcess } from '../process/supervised-process.js';
import type { SupervisedProcess } from '../process/supervised-process.js';
import { SERVICE_WAVES, serviceProcess } from '../services/service-process.js';
import type { ServiceContext } from '../services/service-process.js';
import type { Scale } from '../stack-options.js';
import { createLeaseReleaser } from './database.js';
import type { LeaseReleaser } from './database.js';
import type { RunningService } from './stack-view.js';

export interface StackPlan extends EnginesOptions {
  readonly config: AntiphonConfig;
  readonly scale: Scale;
  readonly cwd: string;
  readonly mainFiles: Readonly<Record<string, string>>;
  /** Owners of leases that a previous supervisor of this home knew. */
  readonly formerServiceIds: readonly string[];
}

/** Engines and services of one home. */
export interface Stack {
  readonly engines: Engines;
  readonly services: readonly RunningService[];
  /** Engines first, then the services wave by wave; resolves when all of them are ready. */
  start(): Promise<void>;
  /** The other way round; safe at any moment of a start. */
  stop(note: (line: string) => void, urgent: AbortSignal): Promise<void>;
}

const LOOPBACK = '127.0.0.1';

const instances = (
  { scale, config, context, hooks }: StackPlan,
  services: ServiceContext,
): RunningService[] =>
  SERVICE_WAVES.flat().flatMap((service) =>
    Array.from({ length: scale[service] }, (_, i) => {
      const isGateway = service === 'gateway';
      const host = isGateway ? config.gateway.host : LOOPBACK;
      const preferred = isGateway && i === 0 && context.usualPorts ? config.gateway.port : 0;
      const sticky = createStickyPort({ ports: context.ports, name: `${service}-${i + 1}`, preferred, host });
      const port = isGateway ? () => sticky.ensure() : () => Promise.resolve(0);
      const spec = serviceProcess({ service, index: i + 1, host, port }, services);
      return { service, host, process: superviseProcess(spec, hooks) };
    }),
  );

const freeFormerLeases = async (
  { formerServiceIds }: StackPlan,
  isOurs: boolean,
  releaser: LeaseReleaser,
): Promise<void> => {
  // Nobody else uses a database of ours, and none of our services runs yet: whoever holds a lease is dead.
  const owners = isOurs ? [''] : formerServiceIds;
  for (const owner of owners) await releaser.release(owner);
};

const stopAll = async (processes: readonly SupervisedProcess[], urgent: AbortSignal): Promise<void> => {
  const now = (): void => {
    for (const process of processes) void process.stop({ now: true });
  };
  urgent.addEventListener('abort', now, { once: true });
  await Promise.all(processes.map((process) => process.stop({ now: urgent.aborted })));
  urgent.removeEventListener('abort', now);
};

const present = (process: SupervisedProcess | null): SupervisedProcess[] =>
  process === null ? [] : [process];

/** Puts a stack together; nothing runs yet. */
export const createStack = (plan: StackPlan, engines: Engines): Stack => {
  const { hooks, context, progress, env, root, cache, cwd, config, mainFiles } = plan;
  let releaser: LeaseReleaser | null = null;
  const services = instances(plan, {
    root,
    cache,
    cwd,
    env,
    home: context.paths.home,
    logs: context.paths.logs,
    config: config.source,
    connections: (service) => connectionsFor(engines, service),
    mainFile: (service) => mainFiles[service] ?? join(root, 'apps', service, 'dist', 'main.js'),
    releaseLeases: async (serviceId) => releaser?.release(serviceId),
  });
  const processesOf = (wave: readonly ServiceName[]): SupervisedProcess[] =>
    services.filter(({ service }) => wave.includes(service)).map(({ process }) => process);

  const start = async (): Promise<void> => {
    const temporal = engines.temporal.start();
    const first = Promise.all([engines.postgres.start(), engines.nats.start()]);
    // Temporal may take longer, but its failure ends the start at once.
    await Promise.race([first, temporal.then(() => first)]);
    releaser = createLeaseReleaser(engines.postgres.ownerUrl(), hooks.logger);
    await freeFormerLeases(plan, engines.postgres.isOurs, releaser);
    for (const wave of SERVICE_WAVES) {
      if (wave.includes('agent')) await temporal;
      await progress.step(`${wave.join(', ')}: starting`, () =>
        Promise.all(processesOf(wave).map((process) => process.start())),
      );
    }
  };

  return {
    engines,
    services,
    start,
    stop: async (note, urgent) => {
      const stopping = async (what: string, processes: readonly SupervisedProcess[]): Promise<void> => {
        if (processes.some((process) => process.status().pid !== null)) note(`stopping ${what}`);
        await stopAll(processes, urgent);
      };
      for (const wave of [...SERVICE_WAVES].reverse()) await stopping(wave.join(', '), processesOf(wave));
      await releaser?.close();
      const { temporal, nats, postgres } = engines;
      await stopping('Temporal and NATS', [...present(temporal.process), ...present(nats.process)]);
      await stopping('PostgreSQL', present(postgres.process));
    },
  };
};
