import { describe, expect, it } from '@jest/globals';
import type { AntiphonConfig } from '@antiphon/config';
import type { Principal } from '@antiphon/contracts/identity';
import { HTTP_ROUTES } from '@antiphon/contracts/reference';
import { LOCAL_OPERATOR } from '../access/authenticator.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { createStatusReader } from '../status/status.controller.js';
import { LogStatusController } from './log-status.controller.js';

const READERS: readonly Principal[] = [
  { ...LOCAL_OPERATOR, role: 'viewer' },
  { ...LOCAL_OPERATOR, scopes: ['status:read', 'events:read'] },
  { ...LOCAL_OPERATOR, workspace: 'beta' },
  { ...LOCAL_OPERATOR, workspace: 'beta', role: 'viewer' },
];
const REPORT = {
  ...{ service: 'agent' as const, healthy: true, pid: 4_242, uptimeMs: 1, version: '1' },
  checks: [{ name: 'postgres', healthy: false, detail: 'connect ECONNREFUSED 10.1.2.3:5432' }],
  facts: { providers: [{ name: 'p', baseUrl: 'http://10.1.2.3/v1', keyEnv: 'SECRET_KEY' }] },
};
const PROJECTION = {
  ...{ name: 'agent-tasks', service: 'agent', position: 77_777, lag: 3, parked: 1 },
  ...{ movedAt: '2026-11-22T10:00:00.000Z', stale: false },
};
const ROOTS = {
  ...{ signs: true, refusal: 'the log lost 77777', head: 77_777, position: 500, uncovered: 77_277 },
  ...{ everySeconds: 600, nextAt: '2026-11-22T10:00:00.000Z', roots: [] },
};
const requests = {
  request: ({ subject }: { readonly subject: string }) => {
    if (subject.endsWith('health.check')) return Promise.resolve(REPORT);
    if (subject.endsWith('log.projections'))
      return Promise.resolve({ head: 77_777, projections: [PROJECTION] });
    return Promise.resolve(subject.endsWith('log.roots') ? ROOTS : { plugins: [], agents: [] });
  },
} as unknown as GatewayRequests;
const readStatus = createStatusReader({
  ...{ requests, version: '1', uptimeMs: () => 1, temporalUi: 'http://10.1.2.3:8233' },
  ownHealth: () => Promise.resolve(REPORT),
  pool: { query: () => Promise.reject(new Error('down')) } as never,
  config: {
    agents: [],
    providers: [],
    plugins: [],
    mcp: { servers: [] },
    channels: [],
    bindings: [],
    features: {},
  } as unknown as AntiphonConfig,
});
const controller = new LogStatusController(requests, {} as never, {} as never, {} as never);
const roots = (reader: Principal) => controller.listRoots({ query: { limit: 1 } } as never, reader);

describe('readers that are no operators of the installation', () => {
  // @shows review2-13-status-roots-read-models
  it.each(READERS)('see which services and engines work, and no process, address or key', async (reader) => {
    const status = await readStatus(reader);
    expect(status.services['agent']).toEqual({ healthy: true });
    expect(status.engines['postgres']).toEqual({ healthy: false });
    expect(JSON.stringify(status)).not.toMatch(/4242|10\.1\.2\.3|SECRET_KEY/);
  });

  it.each(READERS)('see the roots and read models without positions of other workspaces', async (reader) => {
    const projections = await controller.listProjections(undefined, reader);
    expect(JSON.stringify([await roots(reader), projections])).not.toMatch(/7777/);
    expect(projections.projections).toMatchObject([
      { name: 'agent-tasks', position: null, lag: null, parked: 1 },
    ]);
    expect(await roots(reader)).toMatchObject({ signs: true, position: 500, head: null, uncovered: null });
  });
});

describe('an operator of the installation', () => {
  it('sees all of it', async () => {
    const operator: Principal = { ...LOCAL_OPERATOR, role: 'operator' };
    expect((await readStatus(operator)).services['agent']).toMatchObject({ pid: 4_242, facts: REPORT.facts });
    expect(await roots(operator)).toEqual(ROOTS);
    expect(await controller.listProjections(undefined, operator)).toMatchObject({ head: 77_777 });
  });

  it('alone reads the metrics of the gateway', () =>
    expect(HTTP_ROUTES.filter(({ isForOperators }) => isForOperators).map(({ path }) => path)).toEqual([
      '/metrics',
    ]));
});
