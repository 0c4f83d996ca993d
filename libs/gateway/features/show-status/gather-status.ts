import { healthContract, SERVICES, type HealthReport, type ServiceName } from '@antiphon/contracts/messaging';
import type { JsonValue } from '@antiphon/kernel';
import type { GatewayRequests } from '../gateway-requests.port.js';
import type { Remembered } from './remembered.js';

export interface StatusDeps {
  readonly requests: GatewayRequests;
  readonly version: string;
  /** Milliseconds since this gateway started. */
  readonly uptimeMs: () => number;
  readonly ownHealth: () => Promise<HealthReport>;
  readonly plugins: () => Promise<Remembered<JsonValue>>;
  readonly sessionCount: () => Promise<Remembered<number>>;
  readonly features: Readonly<Record<string, boolean>>;
  /** Where Temporal shows its workflows, null when nobody said. */
  readonly temporalUi: string | null;
  /** `scripted` says so here, as wherever it shows. */
  readonly provider: { readonly name: string; readonly kind: string; readonly model: string };
}

type ServiceHealth = Pick<HealthReport, 'healthy'> & Partial<HealthReport> & { readonly error?: string };

const healthOf = async (
  { requests, ownHealth }: StatusDeps,
  service: ServiceName,
): Promise<ServiceHealth> => {
  try {
    return service === 'gateway' ? await ownHealth() : await requests.request(healthContract(service), {});
  } catch (error) {
    return { healthy: false, error: error instanceof Error ? error.message : 'unknown' };
  }
};

/** Whether each engine is healthy by every service that uses it; unknown when no service could tell. */
const enginesOf = (
  reports: readonly ServiceHealth[],
): Record<string, { healthy: boolean; detail?: string }> => {
  const engines: Record<string, { healthy: boolean; detail?: string }> = {};
  for (const { name, healthy, detail } of reports.flatMap((report) => report.checks ?? [])) {
    const worse = engines[name]?.healthy === false;
    if (!worse) engines[name] = { healthy, ...(detail === undefined ? {} : { detail }) };
  }
  return engines;
};

/** Null where nobody can tell, nor ever could. */
const orUnknown = async <T>(ask: Promise<Remembered<T>>): Promise<Remembered<T | null>> =>
  ask.catch(() => ({ value: null, stale: false }));

/** Everything that `status` and `/api/v1/health` tell, asked of all services side by side. */
export const gatherStatus = async (deps: StatusDeps): Promise<Record<string, JsonValue>> => {
  const { version, uptimeMs, features, provider, temporalUi } = deps;
  const [reports, plugins, sessions] = await Promise.all([
    Promise.all(SERVICES.map((service) => healthOf(deps, service))),
    orUnknown(deps.plugins()),
    orUnknown(deps.sessionCount()),
  ]);
  const services = Object.fromEntries(
    SERVICES.map((service, i) => [service, reports[i] ?? { healthy: false }]),
  );
  return {
    status: reports.every((report) => report.healthy) ? 'ok' : 'degraded',
    version,
    uptime: Math.round(uptimeMs() / 1_000),
    provider: { ...provider },
    services: services as unknown as JsonValue,
    engines: enginesOf(reports),
    plugins: plugins.value,
    sessions: sessions.value,
    stale: Object.entries({ plugins, sessions }).flatMap(([name, { stale }]) => (stale ? [name] : [])),
    temporalUi,
    features: { ...features },
  };
};
