import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Controller, Inject, Module } from '@nestjs/common';
import {
  listLogArchives,
  listLogProjections,
  listParkedStreams,
  listRestores,
  readLogRoots,
  verifyReport,
} from '@antiphon/contracts/log';
import { inTransaction, inWorkspace, readRestores } from '@antiphon/database';
import {
  checkArchiveFile,
  createLogReader,
  isSignedReport,
  listArchiveRequests,
  listArchives,
  listParked,
  listProjections,
  readNewestRoots,
} from '@antiphon/event-store';
import type { KnownArchive } from '@antiphon/event-store';
import type { Clock, JsonObject } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import type pg from 'pg';
import type { z } from 'zod';
import { LogRootsHost, LogRootsModule } from './log-roots.module.js';
import type { Environment } from './service-env.js';
import { CLOCK, DATABASE_POOL, ENVIRONMENT } from './tokens.js';

type Reply<Contract extends { readonly reply: z.ZodType }> = z.input<Contract['reply']>;
type FileState = {
  readonly bytes: number | null;
  readonly state: 'intact' | 'changed' | 'missing';
  readonly checkedAt: string;
};

/** Time after which an unchanged archive file is hashed again, ms. */
const CHECK_EVERY_MS = 10 * 60_000;

const PARKED_COUNTS = 'select projection, count(*)::integer as parked from projection_parked group by 1';

/** Returns the folder of archive files: the configured one, else that of this home if it exists. */
const findArchiveFolder = (env: Environment): string | null => {
  const given = env['ANTIPHON_ARCHIVE_FOLDER'];
  if (given) return given;
  const own = join(env['ANTIPHON_HOME'] ?? '', 'archives');
  return env['ANTIPHON_HOME'] && existsSync(own) ? own : null;
};

/** Intervals without a root after which no other process is assumed to sign. */
const SILENT_INTERVALS = 3;

/** True if another process of this service signs: its newest root is recent, or covers the log. */
const isSignedByOther = (at: string, uncovered: number, everyMs: number): boolean =>
  uncovered === 0 || Date.now() - Date.parse(at) < SILENT_INTERVALS * everyMs;

interface CheckedFile {
  readonly mark: string;
  /** Time of the check, ms. */
  readonly at: number;
  readonly state: Promise<FileState>;
}

/**
 * Hashes archive files. A file is hashed again after a change of its size or its time, and after 10
 * minutes, because a damaged disk changes neither. Reads at the same time share one check.
 */
class ArchiveFiles {
  readonly #checked = new Map<string, CheckedFile>();

  constructor(private readonly now: () => number) {}

  async check(path: string, sha256: Buffer): Promise<FileState> {
    const found = await stat(path).catch(() => null);
    const now = this.now();
    if (found === null) return { bytes: null, state: 'missing', checkedAt: new Date(now).toISOString() };
    const mark = `${found.size}/${found.mtimeMs}/${sha256.toString('hex')}`;
    const known = this.#checked.get(path);
    if (known?.mark === mark && now - known.at < CHECK_EVERY_MS) return known.state;
    const state = this.#hash(path, sha256, found.size, now);
    this.#checked.set(path, { mark, at: now, state });
    return state;
  }

  async #hash(path: string, sha256: Buffer, bytes: number, now: number): Promise<FileState> {
    const isIntact = await checkArchiveFile(path, sha256).then(
      () => true,
      () => false,
    );
    return { bytes, state: isIntact ? 'intact' : 'changed', checkedAt: new Date(now).toISOString() };
  }
}

/** Reads the state of the log: roots, archives, projections and restores. */
@Controller()
export class LogStatus {
  readonly #files: ArchiveFiles;

  constructor(
    @Inject(DATABASE_POOL) private readonly pool: pg.Pool,
    @Inject(ENVIRONMENT) private readonly environment: Environment,
    @Inject(LogRootsHost) private readonly roots: Pick<LogRootsHost, 'state' | 'reportKeys'>,
    @Inject(CLOCK) clock: Clock,
  ) {
    this.#files = new ArchiveFiles(() => clock.now());
  }

  @HandleRequest(readLogRoots)
  async readRoots({ limit }: z.output<typeof readLogRoots.request>): Promise<Reply<typeof readLogRoots>> {
    const { signs: isSigner, refusal, everyMs } = this.roots.state();
    const [head, newest] = await Promise.all([
      createLogReader(this.pool).headPosition(),
      readNewestRoots(this.pool, limit),
    ]);
    const last = newest[0];
    const uncovered = Math.max(0, head - (last?.position ?? 0));
    const signs = isSigner || (last !== undefined && isSignedByOther(last.at, uncovered, everyMs));
    const isDue = signs && refusal === null && uncovered > 0 && last !== undefined;
    return {
      ...{ signs, refusal, head, uncovered, position: last?.position ?? null, everySeconds: everyMs / 1_000 },
      nextAt: isDue ? new Date(Date.parse(last.at) + everyMs).toISOString() : null,
      roots: newest.map(({ number, kind, epoch, position, root, keyId, at }) => ({
        ...{ number, kind, epoch, position, root, keyId, at },
      })),
    };
  }

  @HandleRequest(verifyReport)
  verifyReport({
    kind,
    report,
    ...proof
  }: z.output<typeof verifyReport.request>): Promise<Reply<typeof verifyReport>> {
    const keys = this.roots.reportKeys();
    const isValid = isSignedReport(kind, report as JsonObject, proof, keys);
    return Promise.resolve({ isValid, hasKeys: keys.length > 0 });
  }

  @HandleRequest(listLogArchives)
  async listArchives({
    limit,
  }: z.output<typeof listLogArchives.request>): Promise<Reply<typeof listLogArchives>> {
    const folder = findArchiveFolder(this.environment);
    const [known, requests] = await Promise.all([listArchives(this.pool), listArchiveRequests(this.pool)]);
    const archives: Reply<typeof listLogArchives>['archives'] = [];
    for (const archive of known.reverse().slice(0, limit)) archives.push(await this.#view(folder, archive));
    return {
      folder,
      archives,
      requests: requests.map(({ archiveId, file, cutPosition, refusal }) => ({
        ...{ archiveId, file, cutPosition, refusal },
      })),
    };
  }

  async #view(
    folder: string | null,
    archive: KnownArchive,
  ): Promise<Reply<typeof listLogArchives>['archives'][number]> {
    const { archiveId, file, cutPosition, streams, events, archivedAt, sha256 } = archive;
    const checked =
      folder === null
        ? { bytes: null, state: 'unknown' as const, checkedAt: null }
        : await this.#files.check(join(folder, file), sha256);
    return {
      ...{ archiveId, file, cutPosition, streams, events, archivedAt },
      ...{ sha256: sha256.toString('hex'), ...checked },
    };
  }

  @HandleRequest(listParkedStreams)
  async listParked({
    workspace,
    limit,
  }: z.output<typeof listParkedStreams.request>): Promise<Reply<typeof listParkedStreams>> {
    const found = await listParked(this.pool, { workspace, limit: limit + 1 });
    const streams = found.slice(0, limit).map(({ workspace: _, ...stream }) => stream);
    return { streams, hasMore: found.length > limit };
  }

  @HandleRequest(listLogProjections)
  async listProjections({
    workspace,
  }: z.output<typeof listLogProjections.request>): Promise<Reply<typeof listLogProjections>> {
    const [listed, head, { rows }] = await Promise.all([
      listProjections(this.pool, []),
      createLogReader(this.pool).headPosition(),
      inWorkspace(this.pool, workspace).query<{ projection: string; parked: number }>(PARKED_COUNTS),
    ]);
    const parked = new Map(rows.map((row) => [row.projection, row.parked]));
    const projections = listed.map((one) => ({
      ...one,
      // The name of a projection begins with its service.
      service: one.name.slice(0, one.name.indexOf('-')),
      parked: parked.get(one.name) ?? 0,
    }));
    return { head, projections };
  }

  @HandleRequest(listRestores)
  async listRestores(): Promise<Reply<typeof listRestores>> {
    const restores = await inTransaction(this.pool, readRestores);
    return { restores: restores.map(({ id, phase, folder, beganAt }) => ({ id, phase, folder, beganAt })) };
  }
}

/** Serves reads of the state of the log, in the service that signs its roots. */
@Module({ imports: [LogRootsModule], controllers: [LogStatus] })
export class LogStatusModule {}
