import { isVisibleIn } from '@antiphon/config';
import type { AntiphonConfig } from '@antiphon/config';
import type { EventStore } from '@antiphon/event-store';
import type { Clock, Ids } from '@antiphon/kernel';
import type { NatsLink } from '@antiphon/messaging';
import {
  CLOCK,
  CONFIG,
  EVENT_STORE,
  IDS,
  LOGGER,
  NATS,
  REQUESTS,
  provideClass,
} from '@antiphon/service-host';
import type { Provider } from '@nestjs/common';
import { PluginRegistry } from '../plugins/plugin-registry.js';
import { BUNDLED_TOOLS } from '../plugins/plugin-source.js';
import { EndpointTools } from './endpoint-tool.js';
import { RemoteToolRegistry } from './remote-tool-registry.js';
import { RemoteToolSource } from './remote-tool-source.js';
import { ToolWorkerTable } from './tool-worker-table.js';
import { ToolWorkersListener, askForWorkers } from './tool-workers.listener.js';

const isPluginName = ({ plugins }: AntiphonConfig, workspace: string, name: string): boolean =>
  BUNDLED_TOOLS.includes(name) ||
  plugins.some((plugin) => plugin.name === name && isVisibleIn(plugin, workspace));

/** Objects that serve the tools of programs outside. */
export const remoteToolProviders: Provider[] = [
  {
    provide: RemoteToolRegistry,
    inject: [EVENT_STORE, IDS, CLOCK, CONFIG, PluginRegistry],
    useFactory: (
      store: EventStore,
      ids: Ids,
      clock: Clock,
      config: AntiphonConfig,
      plugins: PluginRegistry,
    ) =>
      new RemoteToolRegistry({
        ...{ store, ids, clock },
        isTaken: async (workspace, name) =>
          isPluginName(config, workspace, name) || (await plugins.read(workspace)).added.has(name),
      }),
  },
  {
    provide: ToolWorkerTable,
    inject: [NATS],
    useFactory: (nats: NatsLink) => new ToolWorkerTable(() => askForWorkers(nats)),
  },
  provideClass(EndpointTools, { requests: REQUESTS, ids: IDS, clock: CLOCK, config: CONFIG }),
  provideClass(RemoteToolSource, {
    ...{ registry: RemoteToolRegistry, workers: ToolWorkerTable, requests: REQUESTS, nats: NATS },
    ...{ ids: IDS, logger: LOGGER, endpoints: EndpointTools },
  }),
  ToolWorkersListener,
];
