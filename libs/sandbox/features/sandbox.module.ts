import { Inject, Module } from '@nestjs/common';
import type { DynamicModule, OnApplicationShutdown } from '@nestjs/common';
import type { AntiphonConfig } from '@antiphon/config';
import type { Logger } from '@antiphon/observability';
import { CONFIG, HEALTH, LOGGER } from '@antiphon/service-host';
import type { HealthRegistry } from '@antiphon/service-host';
import { transient } from '@antiphon/kernel';
import { CallToolController } from './call-tool/call-tool.controller.js';
import { CancelCallListener } from './cancel-call/cancel-call.listener.js';
import { FindCallListener } from './find-call/find-call.listener.js';
import { ListPluginsController } from './list-plugins/list-plugins.controller.js';
import { ListToolsController } from './list-tools/list-tools.controller.js';
import { SANDBOX, createSandbox } from './sandbox.js';
import type { Sandbox } from './sandbox.js';

const reportHealth = (sandbox: Sandbox, health: HealthRegistry): void => {
  health.addCheck('cells', () => {
    const { cells } = sandbox.stats();
    return cells > 0
      ? Promise.resolve(`${cells} open`)
      : Promise.reject(transient('SANDBOX.NO_CELLS', 'no cell is open'));
  });
  health.addFact('layers', () => [...sandbox.layers]);
  health.addFact('plugins', () => sandbox.plugins.map(({ name, status }) => ({ name, status })));
};

/** Tools in WebAssembly: loads the plug-ins, keeps their cells, and answers `cmd.sandbox.*`. */
@Module({})
export class SandboxModule implements OnApplicationShutdown {
  constructor(@Inject(SANDBOX) private readonly sandbox: Sandbox) {}

  /** `bundledDirectory`: absolute path of the folder where `npm run build:plugins` leaves its modules. */
  static withBundled(bundledDirectory: string): DynamicModule {
    return {
      module: SandboxModule,
      controllers: [CallToolController, ListToolsController, ListPluginsController],
      providers: [
        CancelCallListener,
        FindCallListener,
        {
          provide: SANDBOX,
          inject: [CONFIG, LOGGER, HEALTH],
          useFactory: async (
            config: AntiphonConfig,
            logger: Logger,
            health: HealthRegistry,
          ): Promise<Sandbox> => {
            const sandbox = await createSandbox({ bundledDirectory, plugins: config.plugins, logger });
            reportHealth(sandbox, health);
            return sandbox;
          },
        },
      ],
    };
  }

  async onApplicationShutdown(): Promise<void> {
    await this.sandbox.close();
  }
}
