import type { HomeLayout } from '@antiphon/bootstrap/project';
import { SERVICES } from '@antiphon/contracts/messaging';
import type { ServiceName } from '@antiphon/contracts/messaging';
import type { Engines } from '../mounts/mount-engines.js';
import type { SupervisedProcess } from '../process/supervised-process.js';
import type { ServiceEntry, StackJson } from '../stack-json.js';

/** One running process of a service. */
export interface RunningService {
  readonly service: ServiceName;
  readonly host: string;
  readonly process: SupervisedProcess;
}

export interface StackParts {
  readonly paths: HomeLayout;
  readonly startedAt: string;
  readonly state: StackJson['state'];
  readonly engines: Engines;
  readonly services: readonly RunningService[];
}

const entryOf = ({ process }: RunningService): ServiceEntry => {
  const { pid, port, state, restarts, startedAt } = process.status();
  return { id: process.name, pid, port, state, restarts, startedAt };
};

const ANY_ADDRESS = new Set(['0.0.0.0', '::', '[::]', '']);

/** Where a client on this machine reaches what listens on `host`. */
const urlOf = (host: string, port: number): string => {
  if (ANY_ADDRESS.has(host)) return `http://127.0.0.1:${port}`;
  return host.includes(':') ? `http://[${host}]:${port}` : `http://${host}:${port}`;
};

const gatewayUrls = (services: readonly RunningService[]): string[] =>
  services.flatMap(({ service, host, process }) => {
    const { port } = process.status();
    return service === 'gateway' && port !== null ? [urlOf(host, port)] : [];
  });

/** The stack as `stack.json` shows it. */
export const viewStack = ({ paths, startedAt, state, engines, services }: StackParts): StackJson => {
  const gateways = gatewayUrls(services);
  const temporalUi = engines.temporal.uiUrl();
  return {
    state,
    home: paths.home,
    supervisor: { pid: process.pid, startedAt },
    services: Object.fromEntries(
      SERVICES.map((name) => [name, services.filter(({ service }) => service === name).map(entryOf)]),
    ) as Record<ServiceName, ServiceEntry[]>,
    engines: {
      postgres: engines.postgres.entry(),
      nats: engines.nats.entry(),
      temporal: engines.temporal.entry(),
    },
    urls: { gateway: gateways[0] ?? null, gateways, ...(temporalUi === null ? {} : { temporalUi }) },
    adminKeyFile: paths.adminKeyFile,
    credentials: { databaseUrlFile: paths.databaseUrlFile, natsUsersFile: paths.natsUsersFile },
    logs: paths.logs,
  };
};
