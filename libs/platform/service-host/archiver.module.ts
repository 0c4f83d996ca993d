import { isAbsolute } from 'node:path';
import { Inject, Injectable, Module } from '@nestjs/common';
import type { OnApplicationBootstrap, OnModuleDestroy } from '@nestjs/common';
import { ALL_WORKSPACES, createPool, withDatabaseTls } from '@antiphon/database';
import { settleArchiveRequests } from '@antiphon/event-store';
import type { ArchiveOutcome } from '@antiphon/event-store';
import { defineCounter } from '@antiphon/observability';
import type { Logger } from '@antiphon/observability';
import type pg from 'pg';
import { z } from 'zod';
import type { HealthRegistry } from './health-registry.js';
import { optionalVariable, parseVariables } from './service-env.js';
import type { Environment } from './service-env.js';
import { ENVIRONMENT, HEALTH, LOGGER } from './tokens.js';

const Variables = z.object({
  ANTIPHON_ARCHIVER_DATABASE_URL: optionalVariable(z.url({ protocol: /^postgres(ql)?$/ })),
  ANTIPHON_ARCHIVE_FOLDER: optionalVariable(z.string().refine(isAbsolute, 'must be an absolute path')),
});

const POLL_MS = 1_000;

const executed = defineCounter(
  'antiphon_archiver_executed_events',
  'Events that the archiver took out of the log',
);
const refused = defineCounter('antiphon_archiver_refusals', 'Archive requests that the archiver refused');

export interface ArchiverOptions {
  /** Connects as the role of the archiver. */
  readonly pool: pg.Pool;
  readonly folder: string;
  readonly logger: Logger;
  readonly pollMs?: number;
}

/**
 * Settles archive requests, one after another. It compares each file with the log before the events
 * leave the log. Several archivers on one log are safe.
 */
export class Archiver {
  readonly #options: ArchiverOptions;
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(options: ArchiverOptions) {
    this.#options = options;
    this.#schedule();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#round;
  }

  #schedule(): void {
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => {
      this.#round = this.#settle().finally(() => this.#schedule());
    }, this.#options.pollMs ?? POLL_MS);
  }

  async #settle(): Promise<void> {
    const { pool, folder, logger } = this.#options;
    try {
      for (const outcome of await settleArchiveRequests(pool, folder)) this.#report(outcome);
    } catch (err) {
      logger.warn({ err }, 'archive requests not settled');
    }
  }

  #report(outcome: ArchiveOutcome): void {
    const { logger } = this.#options;
    const { archiveId, file } = outcome.request;
    if ('refusal' in outcome) {
      refused.add(1);
      return logger.error({ archiveId, file, err: outcome.refusal }, 'archive request refused');
    }
    executed.add(outcome.archived.events);
    logger.info({ archiveId, file, events: outcome.archived.events }, 'events left the log');
  }
}

/** Runs the archiver where its credential and the folder of archive files are given. */
@Injectable()
class ArchiverHost implements OnApplicationBootstrap, OnModuleDestroy {
  private archiver: Archiver | undefined;
  private pool: pg.Pool | undefined;

  constructor(
    @Inject(ENVIRONMENT) private readonly environment: Environment,
    @Inject(HEALTH) private readonly health: HealthRegistry,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  onApplicationBootstrap(): void {
    const { environment, logger } = this;
    const { ANTIPHON_ARCHIVER_DATABASE_URL: given, ANTIPHON_ARCHIVE_FOLDER: folder } = parseVariables(
      Variables,
      environment,
    );
    this.health.addFact('archiver', () => ({ archives: this.archiver !== undefined }));
    if (folder === undefined) return;
    if (given === undefined) return logger.warn({}, 'archiver credential missing');
    this.pool = createPool({
      url: withDatabaseTls(given, environment),
      applicationName: 'antiphon-archiver',
      workspace: ALL_WORKSPACES,
      max: 2,
      refuseDuringRestore: true,
      logger,
    });
    this.archiver = new Archiver({ pool: this.pool, folder, logger });
  }

  async onModuleDestroy(): Promise<void> {
    await this.archiver?.stop();
    await this.pool?.end();
  }
}

/** Takes archived events out of the log, with a credential of its own. */
@Module({ providers: [ArchiverHost] })
export class ArchiverModule {}
