import { Controller, Inject, Module } from '@nestjs/common';
import type { DynamicModule, OnApplicationShutdown } from '@nestjs/common';
import type { AntiphonConfig } from '@antiphon/config';
import { listTools } from '@antiphon/contracts/sandbox';
import type { ToolDescription } from '@antiphon/contracts/sandbox';
import { transient } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import { CONFIG, ENVIRONMENT, HEALTH, LOGGER } from '@antiphon/service-host';
import type { Environment, HealthRegistry } from '@antiphon/service-host';
import type { z } from 'zod';
import { CallNotificationsListener } from './calls/call-notifications.listener.js';
import { CallTool } from './calls/call-tool.handler.js';
import { ReadHeldResult } from './calls/read-held-result.handler.js';
import { parseRequiredLayers } from './cell/isolation.js';
import { ChannelHandlers } from './channels/channels.handler.js';
import { channelProviders } from './channels/channels.providers.js';
import { SANDBOX, createSandbox } from './calls/sandbox.js';
import { mcpProviders } from './mcp/mcp.providers.js';
import { ChangeMcpServers } from './mcp/mcp-servers.handler.js';
import type { McpServers } from './mcp/mcp-servers.js';
import { McpTools } from './mcp/mcp-source.js';
import { MCP_SERVERS } from './mcp/mcp.tokens.js';
import type { Sandbox } from './calls/sandbox.js';
import { listHostedTools } from './calls/tool-source.js';
import { ChangePlugins } from './calls/plugins.handler.js';
import { PLUGIN_DATA, pluginProviders } from './plugins/plugins.providers.js';
import type { PluginData } from './plugins/plugins.providers.js';
import { RemoteToolSource } from './remote/remote-tool-source.js';
import { remoteToolProviders } from './remote/remote-tool.providers.js';
import { RemoteToolsHandler } from './remote/remote-tools.handler.js';

/** Handles `cmd.sandbox.tool.list`. */
@Controller()
export class ListTools {
  constructor(@Inject(SANDBOX) private readonly sandbox: Sandbox) {}

  @HandleRequest(listTools)
  async listTools({ workspace }: z.output<typeof listTools.request>): Promise<{ tools: ToolDescription[] }> {
    return { tools: await listHostedTools(this.sandbox.sources, workspace) };
  }
}

const reportHealth = ({ pool, layers, plugins }: Sandbox, health: HealthRegistry): void => {
  health.addCheck('cells', () => {
    const { cells } = pool.stats();
    return cells > 0
      ? Promise.resolve(`${cells} open`)
      : Promise.reject(transient('SANDBOX.NO_CELLS', 'no cell is open'));
  });
  health.addFact('layers', () => [...layers]);
  health.addFact('plugins', () => plugins.map(({ name, status }) => ({ name, status })));
};

/** Loads the WebAssembly plug-ins, holds their cells and handles `cmd.sandbox.*`. */
@Module({})
export class SandboxModule implements OnApplicationShutdown {
  constructor(
    @Inject(SANDBOX) private readonly sandbox: Sandbox,
    @Inject(MCP_SERVERS) private readonly mcpServers: McpServers,
  ) {}

  /** `bundledDirectory` is the absolute path of the folder that `npm run build:plugins` writes. */
  static withBundled(bundledDirectory: string): DynamicModule {
    const startSandbox = async (
      { plugins, agents, channels }: AntiphonConfig,
      logger: Logger,
      health: HealthRegistry,
      environment: Environment,
      data: PluginData,
      remote: RemoteToolSource,
      mcpServers: McpServers,
    ): Promise<Sandbox> => {
      const requiredLayers = parseRequiredLayers(environment['ANTIPHON_SANDBOX_LAYERS']);
      const options = { bundledDirectory, plugins, channels, agents, logger, requiredLayers };
      const sources = [remote, new McpTools(mcpServers)];
      const sandbox = await createSandbox({ ...options, ...data, sources });
      reportHealth(sandbox, health);
      return sandbox;
    };
    return {
      module: SandboxModule,
      controllers: [
        CallTool,
        ReadHeldResult,
        ListTools,
        ChangePlugins,
        RemoteToolsHandler,
        ChangeMcpServers,
        ChannelHandlers,
      ],
      providers: [
        CallNotificationsListener,
        ...pluginProviders,
        ...channelProviders,
        ...remoteToolProviders,
        ...mcpProviders,
        {
          provide: SANDBOX,
          inject: [CONFIG, LOGGER, HEALTH, ENVIRONMENT, PLUGIN_DATA, RemoteToolSource, MCP_SERVERS],
          useFactory: startSandbox,
        },
      ],
    };
  }

  async onApplicationShutdown(): Promise<void> {
    await this.sandbox.close();
    await this.mcpServers.close();
  }
}
