import type { KeyObject } from 'node:crypto';
import { join } from 'node:path';
import { Inject, Injectable, Module } from '@nestjs/common';
import type { OnApplicationBootstrap, OnModuleDestroy } from '@nestjs/common';
import {
  decodeKeyText,
  loadSigningKeys,
  parseSigningKeys,
  readPublicKeys,
  readSigningKeys,
} from '@antiphon/event-store';
import type { LeaseStore, SigningKeys } from '@antiphon/event-store';
import { conflict, invalid } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import type { NatsLink } from '@antiphon/messaging';
import { observeGauges } from '@antiphon/observability';
import type { Logger } from '@antiphon/observability';
import type pg from 'pg';
import { z } from 'zod';
import type { HealthRegistry } from './health-registry.js';
import { optionalVariable, parseVariables } from './service-env.js';
import type { Environment, ServiceIdentity } from './service-env.js';
import { RootSigner } from './sign-log-roots.js';
import {
  CLOCK,
  DATABASE_POOL,
  ENVIRONMENT,
  HEALTH,
  LEASE_STORE,
  LOGGER,
  NATS,
  SERVICE_IDENTITY,
} from './tokens.js';

const Variables = z.object({
  ANTIPHON_HOME: z.string(),
  ANTIPHON_HOME_PERSISTENT: optionalVariable(z.enum(['0', '1'])),
  ANTIPHON_LOG_SIGNING_KEY: optionalVariable(z.string()),
  ANTIPHON_LOG_SIGNING_KEY_FILE: optionalVariable(z.string()),
  ANTIPHON_LOG_ROOTS_FILE: optionalVariable(z.string()),
  ANTIPHON_REPORT_PUBLIC_KEY: optionalVariable(z.string()),
  ANTIPHON_LOG_ROOT_EVERY_S: optionalVariable(z.coerce.number().int().min(1).max(86_400)),
});

export interface LogRootsSettings {
  /** Text of the key as PEM or base64 of a PEM; null if no variable has it. */
  readonly keyText: string | null;
  readonly keyFile: string;
  /** True if a missing key is created. The home must outlive the process then. */
  readonly createsKey: boolean;
  readonly rootsFile: string;
  /** Further public keys of programs that report audits and backups, as PEM or base64 of a PEM. */
  readonly reportKeyText: string | null;
  /** Default: ten minutes. */
  readonly everyMs: number;
}

/** Reads the key, the files and the interval of log roots; throws `SERVICE.BAD_ENVIRONMENT`. */
export const readLogRootsEnv = (env: Environment): LogRootsSettings => {
  const { ANTIPHON_HOME: home, ...variables } = parseVariables(Variables, env);
  const keyFile = variables.ANTIPHON_LOG_SIGNING_KEY_FILE;
  return {
    keyText: variables.ANTIPHON_LOG_SIGNING_KEY ?? null,
    keyFile: keyFile ?? join(home, 'credentials', 'log-signing.key'),
    createsKey: keyFile === undefined && variables.ANTIPHON_HOME_PERSISTENT === '1',
    rootsFile: variables.ANTIPHON_LOG_ROOTS_FILE ?? join(home, 'log-roots.jsonl'),
    reportKeyText: variables.ANTIPHON_REPORT_PUBLIC_KEY ?? null,
    everyMs: (variables.ANTIPHON_LOG_ROOT_EVERY_S ?? 600) * 1_000,
  };
};

/**
 * Returns the signing keys: of the variable, else of the file. Creates a key only in a home that
 * persists. Returns null where there is none; throws `LOG.BAD_SIGNING_KEY`.
 */
export const findSigningKeys = (settings: LogRootsSettings): SigningKeys | null => {
  const { keyText, keyFile, createsKey } = settings;
  if (keyText !== null) return parseSigningKeys(decodeKeyText(keyText), 'ANTIPHON_LOG_SIGNING_KEY');
  try {
    return createsKey ? loadSigningKeys(keyFile) : readSigningKeys(keyFile);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'EACCES' || code === 'EISDIR')
      throw invalid('LOG.BAD_SIGNING_KEY', `${keyFile} cannot be read: ${code}`, { cause });
    throw cause;
  }
};

/** Returns the public keys that verify reports: those of the log, and the one for reports. */
const findReportKeys = ({ reportKeyText }: LogRootsSettings, keys: SigningKeys | null): KeyObject[] => [
  ...(keys?.publicKeys ?? []),
  ...(reportKeyText === null ? [] : readPublicKeys(decodeKeyText(reportKeyText))),
];

/** Signs roots while the service runs. */
@Injectable()
export class LogRootsHost implements OnApplicationBootstrap, OnModuleDestroy {
  private signer: RootSigner | undefined;
  private everyMs = 0;
  private verifying: readonly KeyObject[] = [];
  private unobserve: () => void = () => undefined;

  constructor(
    @Inject(DATABASE_POOL) private readonly pool: pg.Pool,
    @Inject(NATS) private readonly link: NatsLink,
    @Inject(LEASE_STORE) private readonly leases: LeaseStore,
    @Inject(SERVICE_IDENTITY) private readonly identity: ServiceIdentity,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(ENVIRONMENT) private readonly environment: Environment,
    @Inject(HEALTH) private readonly health: HealthRegistry,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  onApplicationBootstrap(): void {
    const { pool, link, leases, clock, logger } = this;
    const settings = readLogRootsEnv(this.environment);
    this.everyMs = settings.everyMs;
    const keys = findSigningKeys(settings);
    this.verifying = findReportKeys(settings, keys);
    this.health.addFact('logRoots', () => ({
      signs: keys !== null,
      position: this.signer?.last()?.position ?? null,
      refusal: this.signer?.refusal() ?? null,
    }));
    if (keys === null) return logger.warn({ file: settings.keyFile }, 'log signing key missing');
    const { rootsFile, everyMs } = settings;
    const owner = this.identity.id;
    const signer = new RootSigner({ pool, link, leases, owner, keys, rootsFile, everyMs, clock, logger });
    this.signer = signer;
    this.health.addCheck('logRoots', () => this.checkSigner(signer));
    this.observe(signer);
    // In the background: a long log takes longer than the start may.
    void signer.signOrWarn();
  }

  /** Returns whether and how often this process signs, and why it refuses to. */
  state(): { readonly signs: boolean; readonly refusal: string | null; readonly everyMs: number } {
    const { signer, everyMs } = this;
    return { signs: signer !== undefined, refusal: signer?.refusal() ?? null, everyMs };
  }

  /** Returns the public keys of which one must have signed a report. */
  reportKeys(): readonly KeyObject[] {
    return this.verifying;
  }

  async onModuleDestroy(): Promise<void> {
    this.unobserve();
    await this.signer?.stop();
  }

  private checkSigner(signer: RootSigner): Promise<void> {
    const refusal = signer.refusal();
    if (refusal === null) return Promise.resolve();
    throw conflict('LOG.ROOT_REFUSED', `the log is not signed: ${refusal}; run \`antiphon audit\``);
  }

  private observe(signer: RootSigner): void {
    const gauges = {
      antiphon_log_root_position: 'Position of the newest signed root, reported by the process that signs',
      antiphon_log_root_refused: '1 while the signer refuses to sign the log, else 0',
    };
    this.unobserve = observeGauges(gauges, (report) => {
      const last = signer.last();
      if (last) report('antiphon_log_root_position', last.position);
      report('antiphon_log_root_refused', signer.refusal() === null ? 0 : 1);
    });
  }
}

/** Signs the log's roots, in one of the processes that import it at a time. */
@Module({ providers: [LogRootsHost], exports: [LogRootsHost] })
export class LogRootsModule {}
