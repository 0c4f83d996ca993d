import { Permission, Role, type Principal } from '@antiphon/contracts/identity';
import { translatePrismaError, type OperationalClient } from '@antiphon/prisma-client';
import { z } from 'zod';
import { hashSecret, isSameHash, type ApiKeyText } from '../access/api-key-text.js';

const Time = z.date().nullable();
const FoundKey = z.object({
  workspace: z.string(),
  key_id: z.string(),
  name: z.string(),
  role: Role,
  scopes: z.string().nullable(),
  agent_id: z.string().nullable(),
  status: z.string(),
  version: z.int(),
  secret_hash: z.instanceof(Uint8Array),
  previous_hash: z.instanceof(Uint8Array).nullable(),
  previous_until: Time,
  expires_at: Time,
});
/** The columns of a key that authentication compares. */
export type FoundKey = z.output<typeof FoundKey>;

/** Finds keys by id, in any workspace. */
export type FindKeys = (keyIds: readonly string[]) => Promise<FoundKey[]>;

/**
 * Creates the look-up of keys. It calls a function of the database, because row-level security
 * hides keys from a statement that names no workspace. Rejects with `LOG.UNAVAILABLE`.
 */
export const createKeyLookup =
  (prisma: OperationalClient): FindKeys =>
  async (keyIds) => {
    try {
      const rows = await prisma.$queryRaw`select * from antiphon_find_keys(${[...keyIds]}::text[])`;
      return z.array(FoundKey).parse(rows);
    } catch (error) {
      throw translatePrismaError(error);
    }
  };

/** Parses the stored form of scopes; a permission that this version does not know grants nothing. */
export const parseScopes = (stored: string | null): Permission[] | null =>
  stored === null ? null : stored.split(' ').flatMap((scope) => Permission.safeParse(scope).data ?? []);

export const isActive = ({ status, expires_at }: FoundKey, now: number): boolean =>
  status === 'active' && (expires_at === null || expires_at.getTime() > now);

/** A principal, and the version of the secret that it presented. */
export interface KeyProof {
  readonly principal: Principal;
  readonly version: number;
}

const timeOf = (time: Date | null): number => time?.getTime() ?? Infinity;

/** Returns the version of a presented secret and the end of its validity, or null for a wrong one. */
const matchSecret = (
  key: FoundKey,
  secret: string,
  now: number,
): { version: number; until: number } | null => {
  const hash = hashSecret(secret);
  const expiry = timeOf(key.expires_at);
  if (isSameHash(hash, key.secret_hash)) return { version: key.version, until: expiry };
  const { previous_hash, previous_until } = key;
  if (previous_hash === null || previous_until === null || previous_until.getTime() <= now) return null;
  if (!isSameHash(hash, previous_hash)) return null;
  return { version: key.version - 1, until: Math.min(expiry, previous_until.getTime()) };
};

/** Returns the principal of a key if the secret is its own and it is valid, else null. */
export const verifyKey = (key: FoundKey, { secret }: ApiKeyText, now: number): KeyProof | null => {
  const match = isActive(key, now) ? matchSecret(key, secret, now) : null;
  if (match === null) return null;
  const principal: Principal = {
    caller: `key/${key.key_id}`,
    workspace: key.workspace,
    role: key.role,
    scopes: parseScopes(key.scopes),
    keyId: key.key_id,
    name: key.name,
    agentId: key.agent_id,
    expiresAt: match.until === Infinity ? null : match.until,
  };
  return { principal, version: match.version };
};
