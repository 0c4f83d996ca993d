import { Role, type Principal } from '@antiphon/contracts/identity';
import type { IssuedKey, KeyView } from '@antiphon/contracts/keys';
import type { ApiKeyRow } from '@antiphon/prisma-client';
import { formatApiKey } from '../access/api-key-text.js';
import type { KeyRights } from '../access/key-rights.js';
import { parseScopes } from './key-lookup.js';

/** Content of a new key's row. */
export interface NewKey extends KeyRights {
  readonly keyId: string;
  readonly workspace: string;
  readonly name: string;
}

const isoOrNull = (time: Date | null): string | null => time?.toISOString() ?? null;

/** Returns a row of a key that does not authenticate yet. */
export const pendingRow = (
  { keyId, workspace, name, role, scopes, agentId, expiresAt }: NewKey,
  secretHash: Uint8Array<ArrayBuffer>,
  caller: string,
  now: Date,
) => ({
  workspace,
  keyId,
  name,
  role,
  scopes: scopes?.join(' ') ?? null,
  agentId,
  status: 'pending',
  version: 1,
  secretHash,
  createdBy: caller,
  createdAt: now,
  changedBy: caller,
  changedAt: now,
  expiresAt: expiresAt === null ? null : new Date(expiresAt),
});

/** Returns true if a repeated request asks for the key that its first request created. */
export const isSameKey = (row: ApiKeyRow, key: NewKey): boolean =>
  row.workspace === key.workspace &&
  row.name === key.name &&
  row.role === key.role &&
  row.scopes === (key.scopes?.join(' ') ?? null) &&
  row.agentId === key.agentId &&
  (row.expiresAt?.getTime() ?? null) === key.expiresAt;

const statusOf = ({ status, expiresAt }: ApiKeyRow, now: number): KeyView['status'] => {
  if (status === 'revoking' || status === 'revoked') return 'revoked';
  return expiresAt !== null && expiresAt.getTime() <= now ? 'expired' : 'active';
};

/** Returns a key without its secret. */
export const viewOf = (row: ApiKeyRow, now: number): KeyView => ({
  id: row.keyId,
  workspace: row.workspace,
  name: row.name,
  role: Role.parse(row.role),
  scopes: parseScopes(row.scopes),
  agentId: row.agentId,
  status: statusOf(row, now),
  createdBy: row.createdBy,
  createdAt: row.createdAt.toISOString(),
  expiresAt: isoOrNull(row.expiresAt),
  previousValidUntil: isoOrNull(row.previousUntil),
});

/** Returns a key with the text that clients send. */
export const issuedKey = (row: ApiKeyRow, secret: string | null, now: number): IssuedKey => ({
  ...viewOf(row, now),
  token: secret === null ? null : formatApiKey({ keyId: row.keyId, secret }),
});

export const rightsOf = (row: ApiKeyRow): Pick<Principal, keyof KeyRights> => ({
  role: Role.parse(row.role),
  scopes: parseScopes(row.scopes),
  agentId: row.agentId,
  expiresAt: row.expiresAt?.getTime() ?? null,
});

/** Returns the data of `KeyCreated`. It depends on the row alone, so that a repeat is the same. */
export const createdFact = (row: ApiKeyRow) => ({
  keyId: row.keyId,
  name: row.name,
  role: row.role,
  scopes: row.scopes?.split(' ') ?? null,
  agentId: row.agentId,
  expiresAt: isoOrNull(row.expiresAt),
  createdBy: row.createdBy,
  createdAt: row.createdAt.toISOString(),
});

export const revokedFact = (row: ApiKeyRow) => ({
  keyId: row.keyId,
  revokedBy: row.changedBy,
  revokedAt: row.changedAt.toISOString(),
});

/** Returns when the present secret ends after a rotation has begun, or null for at once. */
export const overlapEnd = ({ changedAt, nextOverlapS }: ApiKeyRow): Date | null =>
  nextOverlapS === null || nextOverlapS === 0 ? null : new Date(changedAt.getTime() + nextOverlapS * 1_000);

export const rotatedFact = (row: ApiKeyRow) => ({
  keyId: row.keyId,
  version: row.version + 1,
  previousValidUntil: isoOrNull(overlapEnd(row)),
  rotatedBy: row.changedBy,
  rotatedAt: row.changedAt.toISOString(),
});
