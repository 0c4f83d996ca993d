import { Controller, Inject } from '@nestjs/common';
import { workspaceConfig, type AntiphonConfig } from '@antiphon/config';
import type { Principal } from '@antiphon/contracts/identity';
import { getAgent, listAgents, listProviders } from '@antiphon/contracts/agent';
import { healthContract, SERVICES, type HealthReport, type ServiceName } from '@antiphon/contracts/messaging';
import { GATEWAY_ROUTES, type StatusView } from '@antiphon/contracts/reference';
import { listPlugins } from '@antiphon/contracts/sandbox';
import { inWorkspace, translateDatabaseError } from '@antiphon/database';
import type { Pool } from 'pg';
import type { z } from 'zod';
import { CurrentPrincipal } from '../access/access-guard.js';
import { STATUS, type GatewayRequests } from '../gateway.ports.js';
import { isInstallationOperator } from '../access/key-rights.js';
import { HandleRoute } from '../route/handle-route.js';
import { createStaleCache, type Cached } from '../route/stale-cache.js';

export type Status = z.output<typeof StatusView>;
/** Returns the status of the installation, as its reader may see it. */
export type StatusReader = (reader: Principal) => Promise<Status>;

export interface StatusDeps {
  readonly requests: GatewayRequests;
  readonly pool: Pool;
  readonly config: AntiphonConfig;
  readonly version: string;
  /** Returns the milliseconds since this gateway started. */
  readonly uptimeMs: () => number;
  readonly ownHealth: () => Promise<HealthReport>;
  /** URL of Temporal's web interface, null for none. */
  readonly temporalUi: string | null;
  readonly now?: () => number;
}

type ServiceHealth = Status['services'][string];

const readHealth = async (
  { requests, ownHealth }: StatusDeps,
  service: ServiceName,
): Promise<ServiceHealth> => {
  try {
    return service === 'gateway' ? await ownHealth() : await requests.request(healthContract(service), {});
  } catch (error) {
    return { healthy: false, error: error instanceof Error ? error.message : 'unknown' };
  }
};

/** Returns the health of each engine, which is unhealthy if any service reports it so. */
const enginesOf = (reports: readonly ServiceHealth[]): Status['engines'] => {
  const engines: Status['engines'] = {};
  for (const { name, healthy, detail } of reports.flatMap((report) => report.checks ?? []))
    if (engines[name]?.healthy !== false)
      engines[name] = { healthy, ...(detail === undefined ? {} : { detail }) };
  return engines;
};

const COUNT_SESSIONS = `select count(*) from events where workspace = $1 and type = 'SessionStarted'`;

const countSessions = async (pool: Pool, workspace: string): Promise<number> => {
  const { rows } = await inWorkspace(pool, workspace)
    .query<{ count: string }>(COUNT_SESSIONS, [workspace])
    .catch((error: unknown) => {
      throw translateDatabaseError(error);
    });
  return Number(rows[0]?.count ?? 0);
};

/**
 * Returns the provider of the default agent, which may be changed at run time. It is that of
 * the configuration while the agent service does not answer. The kind shows a `scripted` provider.
 */
const readProvider = async (
  { requests, config }: StatusDeps,
  workspace: string,
): Promise<Status['provider']> => {
  const { agents, providers } = workspaceConfig(config, workspace);
  const [configured] = agents;
  const kindOf = (name: string) => providers.find((one) => one.name === name)?.kind;
  const found =
    configured && (await getOrNull(requests.request(getAgent, { workspace, agentId: configured.id })));
  const { provider: name = '', model = '' } = found?.agent ?? configured ?? {};
  const kind = kindOf(name);
  if (kind !== undefined || name === '') return { name, kind: kind ?? '', model };
  const connected = await getOrNull(requests.request(listProviders, { workspace }));
  return { name, kind: connected?.providers.find((one) => one.name === name)?.kind ?? '', model };
};

const getOrNull = <T>(read: Promise<T>): Promise<T | null> => read.catch(() => null);

/**
 * Returns the part of a status that every workspace may see: which services and engines work.
 * Processes, addresses, providers and reasons are for operators of the installation.
 */
const tenantPart = (status: Status): Status => ({
  ...status,
  services: mapValues(status.services, ({ healthy }) => ({ healthy })),
  engines: mapValues(status.engines, ({ healthy }) => ({ healthy })),
  temporalUi: null,
});

const mapValues = <T, R>(record: Readonly<Record<string, T>>, map: (value: T) => R): Record<string, R> =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value)]));

/** Remembers since when parts of the installation are unhealthy. */
class UnhealthySince {
  readonly #since = new Map<string, string>();

  constructor(private readonly now: () => number) {}

  /** Returns the parts, each unhealthy one with the time of the first status that has it so. */
  mark<T extends { readonly healthy: boolean }>(
    kind: string,
    parts: Readonly<Record<string, T>>,
  ): Record<string, T & { since?: string }> {
    return Object.fromEntries(
      Object.entries(parts).map(([name, part]) => {
        const key = `${kind} ${name}`;
        if (part.healthy) {
          this.#since.delete(key);
          return [name, part];
        }
        const since = this.#since.get(key) ?? new Date(this.now()).toISOString();
        this.#since.set(key, since);
        return [name, { ...part, since }];
      }),
    );
  }
}

const valueOrNull = <T>(read: Promise<Cached<T>>): Promise<Cached<T | null>> =>
  read.catch(() => ({ value: null, stale: false }));

/** Maximum number of agents in error that a status lists. */
const MAX_IN_ERROR = 100;

/** Returns the agents of a workspace whose turns wait after failures; null if unknown. */
const readAgentsInError = async (
  { requests }: StatusDeps,
  workspace: string,
): Promise<Status['agentsInError']> => {
  const query = { workspace, state: 'error' as const, limit: MAX_IN_ERROR };
  const listed = await getOrNull(requests.request(listAgents, query));
  return (
    listed?.agents.map(({ id: agentId, error }) => ({
      ...{ agentId, code: error?.code ?? '', retryAt: error?.retryAt ?? '' },
    })) ?? null
  );
};

/** Creates the reader of the status. It asks all services concurrently. */
export const createStatusReader = (deps: StatusDeps): StatusReader => {
  const { requests, pool, config, version, uptimeMs, temporalUi } = deps;
  const readPlugins = createStaleCache(
    async (workspace) =>
      (await requests.request(listPlugins, { workspace })).plugins as unknown as Status['plugins'],
  );
  const unhealthy = new UnhealthySince(deps.now ?? Date.now);
  const readSessions = createStaleCache((workspace) => countSessions(pool, workspace));

  return async (reader) => {
    const { workspace } = reader;
    const [reports, plugins, sessions, agentsInError, provider] = await Promise.all([
      Promise.all(SERVICES.map((service) => readHealth(deps, service))),
      valueOrNull(readPlugins(workspace)),
      valueOrNull(readSessions(workspace)),
      readAgentsInError(deps, workspace),
      readProvider(deps, workspace),
    ]);
    const isWell = reports.every(({ healthy }) => healthy) && (agentsInError ?? []).length === 0;
    const services = SERVICES.map((name, i) => [name, reports[i] ?? { healthy: false }] as const);
    const status: Status = {
      status: isWell ? 'ok' : 'degraded',
      version,
      uptime: Math.round(uptimeMs() / 1_000),
      provider,
      services: unhealthy.mark('service', Object.fromEntries(services)),
      engines: unhealthy.mark('engine', enginesOf(reports)),
      agentsInError,
      plugins: plugins.value,
      sessions: sessions.value,
      stale: [
        ...(plugins.stale ? (['plugins'] as const) : []),
        ...(sessions.stale ? (['sessions'] as const) : []),
      ],
      temporalUi,
      features: { ...config.features },
    };
    return isInstallationOperator(reader) ? status : tenantPart(status);
  };
};

/** Serves `GET /api/v1/health`, which returns the same as `status` of the WebSocket. */
@Controller()
export class StatusController {
  constructor(@Inject(STATUS) private readonly status: StatusReader) {}

  @HandleRoute(GATEWAY_ROUTES.health)
  read(_input: unknown, @CurrentPrincipal() principal: Principal): Promise<Status> {
    return this.status(principal);
  }
}
