import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { SERVICES } from '@antiphon/contracts/messaging';
import type { ServiceName } from '@antiphon/contracts/messaging';
import { readJson, writeFileAtomic, writeJsonAtomic } from '@antiphon/bootstrap/files';
import type { HomeLayout } from '@antiphon/bootstrap/project';

/** Generated once for each home; every file that holds one has mode 600. */
export interface Credentials {
  /** Names this home in places outside it. */
  readonly homeId: string;
  /** Of PostgreSQL's owner role. */
  readonly databaseOwner: string;
  /** Password of each service at PostgreSQL and NATS. */
  readonly services: Readonly<Record<ServiceName, { readonly database: string; readonly nats: string }>>;
  /** Of the NATS user that may do anything: for operators and this supervisor. */
  readonly natsOperator: string;
}

const secret = (): string => randomBytes(24).toString('base64url');

const generate = (): Credentials => ({
  homeId: randomBytes(6).toString('hex'),
  databaseOwner: secret(),
  services: Object.fromEntries(
    SERVICES.map((name) => [name, { database: secret(), nats: secret() }]),
  ) as unknown as Credentials['services'],
  natsOperator: secret(),
});

/** The home's credentials, made at its first start, and the admin key's file beside them. */
export const ensureCredentials = (paths: HomeLayout): Credentials => {
  if (!existsSync(paths.adminKeyFile))
    writeFileAtomic(paths.adminKeyFile, `antiphon_${randomBytes(32).toString('base64url')}\n`);
  const known = readJson(paths.secretsFile) as Credentials | null;
  if (known !== null) return known;
  const made = generate();
  writeJsonAtomic(paths.secretsFile, made);
  return made;
};
