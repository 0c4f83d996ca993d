import { writeFileAtomic } from '@antiphon/bootstrap/files';
import type { ResolvedEngine } from '@antiphon/bootstrap/types';
import type { ServiceName } from '@antiphon/contracts/messaging';
import { withRole } from '@antiphon/database';
import { addressOfUrl, checkExternalDatabase } from '../engines/external-engines.js';
import { DATABASE_OWNER } from '../engines/postgres-data.js';
import { localDatabaseUrl, postgresEngine } from '../engines/postgres.js';
import { superviseProcess } from '../process/supervised-process.js';
import { ensureDatabase, migrateDatabase, setServicePasswords } from '../supervisor/database.js';
import { externalEntry, managedEntry } from './mounted-engine.js';
import type { EngineSource, MountedEngine, MountOptions } from './mounted-engine.js';

export interface MountedDatabase extends MountedEngine {
  /** As the owner of every table. */
  ownerUrl(): string;
  /** As the role of one service. */
  serviceUrl(service: ServiceName): string;
  /** True when no other stack can be using it. */
  readonly isOurs: boolean;
}

type DatabaseMountOptions = MountOptions & { readonly root: string };

const writeUrl = (options: MountOptions, url: string): void =>
  writeFileAtomic(options.context.paths.databaseUrlFile, `${url}\n`);

const mountOurs = (options: DatabaseMountOptions, program: ResolvedEngine): MountedDatabase => {
  const { context, hooks, progress, root } = options;
  const { credentials } = context;
  const engine = postgresEngine(context, program);
  const process = superviseProcess(engine.spec, hooks);
  const urlFor = (user: string, password: string, database?: string): string =>
    localDatabaseUrl(process.status().port ?? 0, user, password, database);
  const ownerUrl = (): string => urlFor(DATABASE_OWNER, credentials.databaseOwner);
  return {
    process,
    isOurs: true,
    ownerUrl,
    serviceUrl: (service) => urlFor(`antiphon_${service}`, credentials.services[service].database),
    entry: () => managedEntry(process, engine.version, ''),
    start: async () => {
      await progress.step('PostgreSQL: starting it', () => process.start());
      writeUrl(options, ownerUrl());
      await progress.step('database: bringing it up to date', async () => {
        await ensureDatabase(urlFor(DATABASE_OWNER, credentials.databaseOwner, 'postgres'));
        await migrateDatabase(ownerUrl(), root);
        await setServicePasswords(ownerUrl(), (service) => credentials.services[service].database);
      });
    },
  };
};

const mountTheirs = (options: DatabaseMountOptions, url: string): MountedDatabase => ({
  process: null,
  isOurs: false,
  ownerUrl: () => url,
  serviceUrl: (service) => withRole(url, `antiphon_${service}`),
  entry: () => externalEntry(addressOfUrl(url, 5432)),
  start: async () => {
    await checkExternalDatabase(url);
    writeUrl(options, url);
    await options.progress.step('database: bringing it up to date', () => migrateDatabase(url, options.root));
  },
});

/** PostgreSQL, migrated, with one role for each service. */
export const mountDatabase = (options: DatabaseMountOptions, source: EngineSource): MountedDatabase =>
  source.program === undefined ? mountTheirs(options, source.external) : mountOurs(options, source.program);
