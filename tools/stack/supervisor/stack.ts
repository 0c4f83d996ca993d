import { join } from 'node:path';
import { compileTime } from '@antiphon/bootstrap/build';
import { readJson } from '@antiphon/bootstrap/files';
import type { HomeLayout } from '@antiphon/bootstrap/project';
import { SERVICES } from '@antiphon/contracts/messaging';
import type { ServiceName } from '@antiphon/contracts/messaging';
import { connectionsFor } from '../engines/engines.js';
import type { Engines, EnginesOptions } from '../engines/engines.js';
import { StickyPort } from '../home/ports.js';
import { SERVICE_WAVES, serviceProcess } from '../process/service-process.js';
import type { ServiceContext } from '../process/service-process.js';
import { SupervisedProcess } from '../process/supervised-process.js';
import type { ServiceEntry, StackJson } from '../stack-json.js';
import type { Scale } from '../stack-options.js';
import type { LastGoodConfiguration } from './configuration.js';
import { createLeaseReleaser } from './database.js';
import type { LeaseReleaser } from './database.js';

const LOOPBACK = '127.0.0.1';
const ANY_ADDRESS = new Set(['0.0.0.0', '::', '[::]', '']);

export interface StackPlan extends EnginesOptions {
  readonly configuration: LastGoodConfiguration;
  readonly watchesHealth: boolean;
  readonly scale: Scale;
  /** True runs memory and metering in the process of the agent. */
  readonly isHosting: boolean;
  readonly cwd: string;
  readonly mainFiles: Readonly<Record<string, string>>;
  /** Lease owners of this home's previous supervisor. */
  readonly formerServiceIds: readonly string[];
}

interface RunningService {
  readonly service: ServiceName;
  readonly host: string;
  readonly process: SupervisedProcess;
  /** HTTP port of a service in the process of another one, null before it is ready. */
  readonly hosted?: { readonly id: string; readonly port: () => number | null };
}

/** Services in the process of the agent in the compact form (docs/adr/0165, 0173). */
const HOSTED: readonly ServiceName[] = ['memory', 'metering'];

/**
 * Returns the program of a service. The joined modules of `tools/bundle` start in half the time.
 * Where they are missing, or older than the compiled modules, the modules run.
 */
const programOf = (root: string, service: ServiceName, isHost: boolean): string => {
  const folder = join(root, 'apps', service, 'dist');
  const stamp = readJson(join(folder, 'bundle', 'inputs.json')) as { compiledAt: number } | null;
  if (!isHost && stamp !== null && stamp.compiledAt >= compileTime(root))
    return join(folder, 'bundle', 'main.mjs');
  return join(folder, isHost ? 'hosting-main.js' : 'main.js');
};

/** Returns the URL for clients on this machine. */
const urlOf = (host: string, port: number): string => {
  if (ANY_ADDRESS.has(host)) return `http://${LOOPBACK}:${port}`;
  return host.includes(':') ? `http://[${host}]:${port}` : `http://${host}:${port}`;
};

const entryOf = ({ process, hosted }: RunningService): ServiceEntry => {
  const { pid, port, state, restarts, startedAt } = process.status();
  const entry = { pid, state, restarts, startedAt };
  return hosted === undefined
    ? { id: process.name, port, ...entry }
    : { id: hosted.id, port: hosted.port(), ...entry, process: process.name };
};

/** Stops processes in parallel; an abort of `urgent` kills those that still run. */
const stopAll = async (processes: readonly SupervisedProcess[], urgent: AbortSignal): Promise<void> => {
  const kill = (): void => {
    for (const process of processes) void process.stop({ now: true });
  };
  urgent.addEventListener('abort', kill, { once: true });
  await Promise.all(processes.map((process) => process.stop({ now: urgent.aborted })));
  urgent.removeEventListener('abort', kill);
};

/** Engines and services of one home. */
export class Stack {
  private readonly services: readonly RunningService[];
  private releaser: LeaseReleaser | null = null;

  constructor(
    private readonly plan: StackPlan,
    private readonly engines: Engines,
  ) {
    const services = this.serviceContext();
    this.services = SERVICE_WAVES.flat()
      .filter((service) => !plan.isHosting || !HOSTED.includes(service))
      .flatMap((service) =>
        Array.from({ length: plan.scale[service] }, (_, i) => this.createServices(service, i + 1, services)),
      )
      .flat();
  }

  /** Starts the engines, then the services wave by wave. Resolves when all of them are ready. */
  async start(): Promise<void> {
    const { postgres, nats, temporal } = this.engines;
    const temporalStarted = temporal.start();
    const othersStarted = Promise.all([postgres.start(), nats.start()]);
    // Temporal may take longer, but its failure ends the start at once.
    await Promise.race([othersStarted, temporalStarted.then(() => othersStarted)]);
    this.releaser = createLeaseReleaser(postgres.ownerUrl(), this.plan.hooks.logger);
    await this.releaseFormerLeases(this.releaser);
    for (const wave of SERVICE_WAVES) {
      if (wave.includes('agent')) await temporalStarted;
      const processes = this.processesOf(wave);
      const names = [
        ...new Set(
          this.services.filter(({ process }) => processes.includes(process)).map(({ service }) => service),
        ),
      ];
      await this.plan.progress.step(`${names.join(', ')}: starting`, () =>
        Promise.all(processes.map((process) => process.start())),
      );
    }
  }

  /** Stops services and engines in reverse order. Safe at any moment of a start. */
  async stop(note: (line: string) => void, urgent: AbortSignal): Promise<void> {
    const stopGroup = async (
      name: string,
      processes: readonly (SupervisedProcess | null)[],
    ): Promise<void> => {
      const present = processes.filter((process) => process !== null);
      if (present.some((process) => process.status().pid !== null)) note(`stopping ${name}`);
      await stopAll(present, urgent);
    };
    for (const wave of [...SERVICE_WAVES].reverse()) await stopGroup(wave.join(', '), this.processesOf(wave));
    await this.releaser?.close();
    const { temporal, nats, postgres } = this.engines;
    await stopGroup('Temporal and NATS', [temporal.process, nats.process]);
    await stopGroup('PostgreSQL', [postgres.process]);
  }

  /** Returns the content of `stack.json`. */
  view(paths: HomeLayout, startedAt: string, state: StackJson['state']): StackJson {
    const { postgres, nats, temporal } = this.engines;
    const gateways = this.services.flatMap(({ service, host, process }) => {
      const { port } = process.status();
      return service === 'gateway' && port !== null ? [urlOf(host, port)] : [];
    });
    const temporalUi = temporal.uiUrl();
    return {
      state,
      home: paths.home,
      supervisor: { pid: process.pid, startedAt },
      services: Object.fromEntries(
        SERVICES.map((name) => [name, this.services.filter(({ service }) => service === name).map(entryOf)]),
      ) as Record<ServiceName, ServiceEntry[]>,
      engines: { postgres: postgres.entry(), nats: nats.entry(), temporal: temporal.entry() },
      urls: {
        gateway: gateways[0] ?? null,
        gateways,
        ...(gateways[0] === undefined ? {} : { dashboard: `${gateways[0]}/` }),
        ...(temporalUi === null ? {} : { temporalUi }),
      },
      adminKeyFile: paths.adminKeyFile,
      masterKeyFile: paths.masterKeyFile,
      credentials: { databaseUrlFile: paths.databaseUrlFile, natsUsersFile: paths.natsUsersFile },
      logs: paths.logs,
    };
  }

  private serviceContext(): ServiceContext {
    const { context, env, root, cache, cwd, configuration, mainFiles, watchesHealth } = this.plan;
    return {
      cache,
      cwd,
      env,
      home: context.paths.home,
      logs: context.paths.logs,
      configuration: () => configuration.reload(),
      watchesHealth,
      connections: (service) => connectionsFor(this.engines, service),
      mainFile: (service, isHost) => mainFiles[service] ?? programOf(root, service, isHost),
      releaseLeases: async (serviceId) => this.releaser?.release(serviceId),
    };
  }

  /** Creates one process of a service. Returns the service, then those that its process hosts. */
  private createServices(service: ServiceName, index: number, services: ServiceContext): RunningService[] {
    const { configuration, context, hooks } = this.plan;
    const { gateway } = configuration.current().config;
    const isGateway = service === 'gateway';
    const host = isGateway ? gateway.host : LOOPBACK;
    const preferred = isGateway && index === 1 && context.usualPorts ? gateway.port : 0;
    const sticky = new StickyPort({ ports: context.ports, name: `${service}-${index}`, preferred, host });
    const port = isGateway ? () => sticky.ensure() : () => Promise.resolve(0);
    const hosts = this.plan.isHosting && service === 'agent' ? HOSTED : [];
    let hostedPorts: Readonly<Record<string, number>> = {};
    const onHosted = (ports: typeof hostedPorts): void => void (hostedPorts = ports);
    const spec = serviceProcess({ service, index, host, port, hosts, onHosted }, services);
    const process = new SupervisedProcess(spec, hooks);
    const hosted = hosts.map((other): RunningService => {
      const view = { id: `${other}-${index}`, port: () => hostedPorts[other] ?? null };
      return { service: other, host, process, hosted: view };
    });
    return [{ service, host, process }, ...hosted];
  }

  private processesOf(wave: readonly ServiceName[]): SupervisedProcess[] {
    return this.services
      .filter(({ service, hosted }) => wave.includes(service) && hosted === undefined)
      .map(({ process }) => process);
  }

  private async releaseFormerLeases(releaser: LeaseReleaser): Promise<void> {
    // No service runs yet. In a managed database every lease therefore belongs to a dead process.
    const owners = this.engines.postgres.isOurs ? [''] : this.plan.formerServiceIds;
    for (const owner of owners) await releaser.release(owner);
  }
}
