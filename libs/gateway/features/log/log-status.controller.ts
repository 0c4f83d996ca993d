import { Controller, Inject } from '@nestjs/common';
import { isPermitted, type Principal } from '@antiphon/contracts/identity';
import { BackupRecorded } from '@antiphon/contracts/keys';
import {
  DEFAULT_WORKSPACE,
  listDeadLetters,
  listLogArchives,
  listLogProjections,
  listParkedStreams,
  listRestores,
  PROJECTION_SERVICES,
  readLogRates,
  readLogRoots,
  replayDeadLetter,
  replayParkedContract,
} from '@antiphon/contracts/log';
import { LOG_ROUTES, RATE_ROUTES, type RecordedBackup, type RouteInput } from '@antiphon/contracts/reference';
import { notFound, type Clock, type JsonObject } from '@antiphon/kernel';
import { CLOCK, DATABASE_POOL, REQUESTS } from '@antiphon/service-host';
import type { Pool } from 'pg';
import type { z } from 'zod';
import { CurrentPrincipal, refuseAgentKey } from '../access/access-guard.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { HandleRoute } from '../route/handle-route.js';
import { isInstallationOperator } from '../access/key-rights.js';
import { IDENTITY_LOG, type IdentityLog } from '../identity/identity-log.js';
import { requireSignedReport } from './signed-reports.js';
import { readRecords, requireDefaultWorkspace } from './workspace-records.js';

type Routes = typeof LOG_ROUTES & typeof RATE_ROUTES;
type Reply<Name extends keyof Routes> = Promise<z.input<Routes[Name]['reply']['schema']>>;

const NONE: z.output<typeof listLogArchives.reply> = { folder: null, archives: [], requests: [] };

/** Refuses the key of an agent: these reads show every agent of the workspace, or all workspaces. */
const requireOperator = (principal: Principal): void => refuseAgentKey(principal, 'reads no operator data');

/** Serves the state of the log, and replays its failed parts. */
@Controller()
export class LogStatusController {
  constructor(
    @Inject(REQUESTS) readonly requests: GatewayRequests,
    @Inject(IDENTITY_LOG) private readonly log: Pick<IdentityLog, 'appendRecord'>,
    @Inject(DATABASE_POOL) private readonly pool: Pool,
    @Inject(CLOCK) readonly clock: Clock,
  ) {}

  @HandleRoute(LOG_ROUTES.listDeadLetters)
  async listDeadLetters(
    { query: { limit, after } }: RouteInput<Routes['listDeadLetters']>,
    @CurrentPrincipal() principal: Principal,
  ): Reply<'listDeadLetters'> {
    requireOperator(principal);
    const { workspace } = principal;
    const includesRequests = isPermitted(principal, 'operations:write');
    const [parked, letters] = await Promise.all([
      this.requests.request(listParkedStreams, { workspace, limit }),
      this.requests.request(listDeadLetters, { workspace, limit, after, includesRequests }),
    ]);
    const { messages, nextAfter } = letters;
    return { streams: parked.streams, messages, hasMore: parked.hasMore || nextAfter !== null, nextAfter };
  }

  @HandleRoute(LOG_ROUTES.replayDeadLetters)
  async replay(
    { body }: RouteInput<Routes['replayDeadLetters']>,
    @CurrentPrincipal() principal: Principal,
  ): Reply<'replayDeadLetters'> {
    requireOperator(principal);
    const { workspace } = principal;
    if ('sequence' in body) {
      await this.requests.request(replayDeadLetter, { workspace, sequence: body.sequence });
      return { replayed: 1, failed: [] };
    }
    const { projection, streamId } = body;
    const service = PROJECTION_SERVICES.find((name) => projection.startsWith(`${name}-`));
    if (service === undefined)
      throw notFound('LOG.PROJECTION_NOT_FOUND', `there is no projection ${projection}`);
    return this.requests.request(replayParkedContract(service), { workspace, projection, streamId });
  }

  @HandleRoute(LOG_ROUTES.listProjections)
  async listProjections(_input: unknown, @CurrentPrincipal() principal: Principal): Reply<'listProjections'> {
    requireOperator(principal);
    const { workspace } = principal;
    const { head, projections } = await this.requests.request(listLogProjections, { workspace });
    if (isInstallationOperator(principal)) return { head, projections };
    // Positions count the events of every workspace.
    const own = projections.map((view) => ({ ...view, position: null, lag: null, movedAt: null }));
    return { head: null, projections: own };
  }

  @HandleRoute(RATE_ROUTES.readRates)
  async readRates(
    { query }: RouteInput<Routes['readRates']>,
    @CurrentPrincipal() principal: Principal,
  ): Reply<'readRates'> {
    requireOperator(principal);
    const { workspace } = principal;
    const rates = await this.requests.request(readLogRates, { workspace, ...query });
    if (isPermitted(principal, 'budgets:read')) return rates;
    return { ...rates, buckets: rates.buckets.map((bucket) => ({ ...bucket, microUsd: null })) };
  }

  @HandleRoute(LOG_ROUTES.listRoots)
  async listRoots(
    { query: { limit } }: RouteInput<Routes['listRoots']>,
    @CurrentPrincipal() principal: Principal,
  ): Reply<'listRoots'> {
    const found = await this.requests.request(readLogRoots, { limit });
    if (isInstallationOperator(principal)) return found;
    // The roots are evidence for everyone. Whether events are missing is for operators.
    return { ...found, head: null, uncovered: null, refusal: null, nextAt: null };
  }

  @HandleRoute(LOG_ROUTES.listArchives)
  async listArchives(
    { query: { limit } }: RouteInput<Routes['listArchives']>,
    @CurrentPrincipal() principal: Principal,
  ): Reply<'listArchives'> {
    requireOperator(principal);
    if (principal.workspace !== DEFAULT_WORKSPACE) return NONE;
    return this.requests.request(listLogArchives, { limit });
  }

  @HandleRoute(LOG_ROUTES.listBackups)
  async listBackups(
    { query: { limit, at } }: RouteInput<Routes['listBackups']>,
    @CurrentPrincipal() principal: Principal,
  ): Reply<'listBackups'> {
    requireOperator(principal);
    const { workspace } = principal;
    const query = { type: 'BackupRecorded', schema: BackupRecorded, limit, at } as const;
    const { records, position, head } = await readRecords(this.pool, workspace, query);
    const backups: RecordedBackup[] = records.map(({ data, recordedAt, position: recordPosition }) => ({
      ...data,
      recordedAt,
      recordPosition,
    }));
    const asOf = at === undefined ? { head } : { position, head };
    if (workspace !== DEFAULT_WORKSPACE) return { backups, restores: [], ...asOf };
    const { restores } = await this.requests.request(listRestores, {});
    return { backups, restores, ...asOf };
  }

  @HandleRoute(LOG_ROUTES.recordBackup)
  async recordBackup(
    { body }: RouteInput<Routes['recordBackup']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<{ recorded: true }> {
    requireDefaultWorkspace(principal, 'BACKUP.OTHER_WORKSPACE', 'a backup has every workspace');
    await requireSignedReport(this, 'backup', body as JsonObject);
    const { workspace, caller } = principal;
    const data = { ...body, recordedBy: caller } as JsonObject;
    await this.log.appendRecord(workspace, 'BackupRecorded', body.backupId, data);
    return { recorded: true };
  }
}
