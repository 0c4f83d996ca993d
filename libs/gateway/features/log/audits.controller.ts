import { Controller, Inject } from '@nestjs/common';
import type { Principal } from '@antiphon/contracts/identity';
import { AuditRecorded } from '@antiphon/contracts/keys';
import { AUDIT_ROUTES, type RouteInput } from '@antiphon/contracts/reference';
import type { Clock, JsonObject } from '@antiphon/kernel';
import { CLOCK, DATABASE_POOL, REQUESTS } from '@antiphon/service-host';
import type { Pool } from 'pg';
import type { z } from 'zod';
import { CurrentPrincipal, refuseAgentKey } from '../access/access-guard.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { HandleRoute } from '../route/handle-route.js';
import { IDENTITY_LOG, type IdentityLog } from '../identity/identity-log.js';
import { requireSignedReport } from './signed-reports.js';
import { readRecords, requireDefaultWorkspace } from './workspace-records.js';

type Routes = typeof AUDIT_ROUTES;

/** Records and lists the results of audits, as facts of the workspace `default`. */
@Controller()
export class AuditsController {
  constructor(
    @Inject(IDENTITY_LOG) private readonly log: Pick<IdentityLog, 'appendRecord'>,
    @Inject(DATABASE_POOL) private readonly pool: Pool,
    @Inject(REQUESTS) readonly requests: GatewayRequests,
    @Inject(CLOCK) readonly clock: Clock,
  ) {}

  @HandleRoute(AUDIT_ROUTES.recordAudit)
  async record(
    { body }: RouteInput<Routes['recordAudit']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<{ recorded: true }> {
    requireDefaultWorkspace(principal, 'AUDIT.OTHER_WORKSPACE', 'an audit reads every workspace');
    await requireSignedReport(this, 'audit', body as JsonObject);
    const { workspace, caller } = principal;
    // Every reader of the workspace sees the fact: it names no record of another workspace.
    const place = body.first?.workspace ?? workspace;
    const first = place === workspace ? body.first : null;
    const data = { ...body, first, recordedBy: caller };
    await this.log.appendRecord(workspace, 'AuditRecorded', body.auditId, data as JsonObject);
    return { recorded: true };
  }

  @HandleRoute(AUDIT_ROUTES.listAudits)
  async list(
    { query: { limit, at } }: RouteInput<Routes['listAudits']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.input<Routes['listAudits']['reply']['schema']>> {
    refuseAgentKey(principal, 'reads no audits');
    const query = { type: 'AuditRecorded', schema: AuditRecorded, limit, at } as const;
    const { records, position, head } = await readRecords(this.pool, principal.workspace, query);
    const audits = records.map(({ data, ...recorded }) => ({ ...data, ...recorded }));
    return { audits, ...(at === undefined ? {} : { position, head }) };
  }
}
