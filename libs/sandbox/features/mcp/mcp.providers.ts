import type { Provider } from '@nestjs/common';
import type { AntiphonConfig } from '@antiphon/config';
import type { EventStore } from '@antiphon/event-store';
import type { Clock, Ids } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import {
  CLOCK,
  CONFIG,
  ENVIRONMENT,
  EVENT_STORE,
  IDS,
  LOGGER,
  SERVICE_IDENTITY,
} from '@antiphon/service-host';
import type { Environment, ServiceIdentity } from '@antiphon/service-host';
import { McpRegistry } from './mcp-registry.js';
import { McpServers } from './mcp-servers.js';
import { MCP_REGISTRY, MCP_SERVERS } from './mcp.tokens.js';

/** Facts about MCP servers, and the connections to them. */
export const mcpProviders: Provider[] = [
  {
    provide: MCP_REGISTRY,
    inject: [EVENT_STORE, IDS, CLOCK],
    useFactory: (store: EventStore, ids: Ids, clock: Clock) => new McpRegistry({ store, ids, clock }),
  },
  {
    provide: MCP_SERVERS,
    inject: [CONFIG, ENVIRONMENT, MCP_REGISTRY, LOGGER, SERVICE_IDENTITY],
    useFactory: (
      config: AntiphonConfig,
      environment: Environment,
      registry: McpRegistry,
      logger: Logger,
      { home }: ServiceIdentity,
    ) => new McpServers({ config, environment, registry, logger, home }),
  },
];
