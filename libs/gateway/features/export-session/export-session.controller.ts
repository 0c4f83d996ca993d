import { Readable } from 'node:stream';
import { Controller, Get, Inject, Param, Query, StreamableFile } from '@nestjs/common';
import { ExportQuery, Id } from '@antiphon/contracts/gateway';
import type { EventStore } from '@antiphon/event-store';
import { EVENT_STORE } from '@antiphon/service-host';
import type { z } from 'zod';
import { WORKSPACE } from '../gateway.tokens.js';
import { ReadPipe } from '../read-body/read-body.js';
import { exportText, verifySession } from './export-session.js';

const MEDIA = { jsonl: 'application/jsonl', json: 'application/json' } as const;

/** `GET /api/v1/sessions/:id/export`: the events of a session with their hashes, held against their chain first. */
@Controller('api/v1/sessions')
export class ExportSessionController {
  constructor(
    @Inject(EVENT_STORE) private readonly store: EventStore,
    @Inject(WORKSPACE) private readonly workspace: string,
  ) {}

  @Get(':id/export')
  async export(
    @Param('id', new ReadPipe(Id)) sessionId: string,
    @Query(new ReadPipe(ExportQuery, 'GATEWAY.INVALID_QUERY')) { format }: z.output<typeof ExportQuery>,
  ): Promise<StreamableFile> {
    // Read twice: what is broken is said before the first byte, and nothing is kept in memory.
    const header = await verifySession(this.store, this.workspace, sessionId);
    const text = Readable.from(exportText(this.store, header, format));
    const disposition = `attachment; filename="session-${sessionId}.${format}"`;
    return new StreamableFile(text, { type: MEDIA[format], disposition });
  }
}
