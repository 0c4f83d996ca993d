import { Readable } from 'node:stream';
import { Controller, Inject, StreamableFile } from '@nestjs/common';
import { forkSession, rewindFiles } from '@antiphon/contracts/agent';
import type { Principal } from '@antiphon/contracts/identity';
import { SESSION_ROUTES, type RouteInput } from '@antiphon/contracts/reference';
import type { EventStore } from '@antiphon/event-store';
import { EVENT_STORE, REQUESTS } from '@antiphon/service-host';
import type { z } from 'zod';
import { AgentReads } from '../agents/agent-reads.js';
import { CurrentPrincipal } from '../access/access-guard.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { HandleRoute } from '../http/handle-route.js';
import { commonOf } from './session-methods.js';
import { exportText, verifySession } from './export-session.js';

type Routes = typeof SESSION_ROUTES;

const MEDIA = { jsonl: 'application/jsonl', json: 'application/json' } as const;

/** Serves the records of sessions: export, fork and the rewind of files. */
@Controller()
export class SessionsController {
  private readonly reads: AgentReads;

  constructor(
    @Inject(EVENT_STORE) private readonly store: EventStore,
    @Inject(REQUESTS) private readonly requests: GatewayRequests,
  ) {
    this.reads = new AgentReads(requests);
  }

  @HandleRoute(SESSION_ROUTES.exportSession)
  async export(
    { params: { id }, query: { format } }: RouteInput<Routes['exportSession']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<StreamableFile> {
    const { workspace } = principal;
    await this.reads.requireSession(principal, this.store, id);
    // Read twice: the chain is verified before the first byte, and the session is never held in
    // memory.
    const header = await verifySession(this.store, workspace, id);
    // One event at a time: the client's reading sets the pace of the reads.
    const text = Readable.from(exportText(this.store, header, format), { highWaterMark: 1 });
    const disposition = `attachment; filename="session-${id}.${format}"`;
    return new StreamableFile(text, { type: MEDIA[format], disposition });
  }

  @HandleRoute(SESSION_ROUTES.forkSession)
  fork(
    { params, body, idempotencyKey }: RouteInput<Routes['forkSession']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.output<typeof forkSession.reply>> {
    return this.requests.request(forkSession, {
      ...body,
      sessionId: params.id,
      ...commonOf(principal),
      idempotencyKey,
    });
  }

  @HandleRoute(SESSION_ROUTES.rewindFiles)
  rewind(
    { params, body, idempotencyKey }: RouteInput<Routes['rewindFiles']>,
    @CurrentPrincipal() { workspace, caller: actor }: Principal,
  ): Promise<z.output<typeof rewindFiles.reply>> {
    return this.requests.request(rewindFiles, {
      ...body,
      ...{ sessionId: params.id, workspace, actor, idempotencyKey },
    });
  }
}
