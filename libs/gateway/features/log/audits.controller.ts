import { Controller, Inject } from '@nestjs/common';
import { upcast } from '@antiphon/contracts/events';
import type { Principal } from '@antiphon/contracts/identity';
import { AuditRecorded, workspaceStream } from '@antiphon/contracts/keys';
import { DEFAULT_WORKSPACE } from '@antiphon/contracts/log';
import { AUDIT_ROUTES, type RecordedAudit, type RouteInput } from '@antiphon/contracts/reference';
import { forbidden, type JsonObject } from '@antiphon/kernel';
import { DATABASE_POOL } from '@antiphon/service-host';
import type { Pool } from 'pg';
import { CurrentPrincipal } from '../access/access-guard.js';
import { readEventPage } from '../events/event-view.js';
import { HandleRoute } from '../http/handle-route.js';
import { IDENTITY_LOG, type IdentityLog } from '../identity/identity-log.js';

type Routes = typeof AUDIT_ROUTES;

/** Records and lists the results of audits, as facts of the workspace `default`. */
@Controller()
export class AuditsController {
  constructor(
    @Inject(IDENTITY_LOG) private readonly log: Pick<IdentityLog, 'appendRecord'>,
    @Inject(DATABASE_POOL) private readonly pool: Pool,
  ) {}

  @HandleRoute(AUDIT_ROUTES.recordAudit)
  async record(
    { body }: RouteInput<Routes['recordAudit']>,
    @CurrentPrincipal() { workspace, caller }: Principal,
  ): Promise<{ recorded: true }> {
    if (workspace !== DEFAULT_WORKSPACE)
      throw forbidden(
        'AUDIT.OTHER_WORKSPACE',
        `an audit reads every workspace. What to do: record it with a key of the workspace ${DEFAULT_WORKSPACE}`,
      );
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
    @CurrentPrincipal() { workspace, agentId }: Principal,
  ): Promise<{ audits: RecordedAudit[] }> {
    if (agentId !== null) throw forbidden('AGENT.NOT_ALLOWED', `agent "${agentId}" may not read audits`);
    if (workspace !== DEFAULT_WORKSPACE) return { audits: [] };
    const stream = workspaceStream(workspace);
    const query = { stream, type: 'AuditRecorded', order: 'desc', limit, at } as const;
    const { events } = await readEventPage(this.pool, workspace, query);
    const audits = events.map((event) => ({
      ...AuditRecorded.parse(upcast({ ...event, data: event.data as JsonObject })).data,
      recordedAt: event.recordedAt,
      position: event.position,
    }));
    return { audits };
  }
}
