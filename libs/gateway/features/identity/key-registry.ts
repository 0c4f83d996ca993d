import type { Principal } from '@antiphon/contracts/identity';
import {
  SESSION_KEY_NAMES,
  type CreateKeyBody,
  type IssuedKey,
  type KeyView,
} from '@antiphon/contracts/keys';
import { conflict, invalid, notFound, rejected, type Clock } from '@antiphon/kernel';
import { inWorkspace, type ApiKeyRow, type OperationalClient } from '@antiphon/prisma-client';
import {
  createKeyId,
  createSecret,
  hashSecret,
  isSameHash,
  keyIdForRequest,
} from '../access/api-key-text.js';
import { assertAdministersInstallation, assertMayRevoke, assertWithinRights } from '../access/key-rights.js';
import type { IdentityLog } from './identity-log.js';
import {
  createdFact,
  isSameKey,
  issuedKey,
  overlapEnd,
  pendingRow,
  revokedFact,
  rightsOf,
  rotatedFact,
  viewOf,
  type NewKey,
} from './key-row.js';

/** Time after which a change that did not finish may be repeated or cleaned up, ms. */
export const UNFINISHED_MS = 60_000;

export interface KeyPage {
  readonly keys: KeyView[];
  readonly nextCursor: string | null;
}

export interface KeyRegistryOptions {
  readonly prisma: OperationalClient;
  readonly log: IdentityLog;
  readonly clock: Clock;
  /** Tells every gateway that a key has changed. */
  readonly notify: (keyId: string) => void;
}

const bytesOf = (hash: Buffer): Uint8Array<ArrayBuffer> => new Uint8Array(hash);

const changing = () =>
  conflict('GATEWAY.KEY_CHANGING', 'another change of this key is in progress: try again in a minute');

/**
 * Creates, lists, revokes and rotates API keys. A change is a row, then a fact in the log, then the
 * next state of the row. `IdentitySweep` finishes a change that a crash left.
 */
export class KeyRegistry {
  constructor(private readonly options: KeyRegistryOptions) {}

  /**
   * Creates a key in the caller's workspace. With an idempotency key, a repeat returns the same key
   * without its secret. Throws `GATEWAY.KEY_EXCEEDS_CALLER`, `GATEWAY.WORKSPACE_NOT_FOUND`,
   * `LOG.IDEMPOTENCY_CONFLICT`.
   */
  async create(caller: Principal, body: CreateKeyBody, idempotencyKey?: string): Promise<IssuedKey> {
    const workspace = body.workspace ?? caller.workspace;
    if (workspace !== caller.workspace) assertAdministersInstallation(caller, 'workspaces:manage');
    const key: NewKey = {
      keyId:
        idempotencyKey === undefined
          ? createKeyId()
          : keyIdForRequest(caller.workspace, caller.caller, idempotencyKey),
      workspace,
      name: body.name,
      role: body.role,
      scopes: body.scopes ?? null,
      agentId: body.agentId ?? null,
      expiresAt: body.expiresAt === undefined ? null : Date.parse(body.expiresAt),
    };
    assertWithinRights(caller, key);
    if (key.expiresAt !== null && key.expiresAt <= this.options.clock.now())
      throw invalid('GATEWAY.INVALID_BODY', 'expiresAt: it is in the past');
    return this.issue(key, createSecret(), caller.caller);
  }

  /** Creates a key with a given secret, unless the same key exists. */
  async issue(key: NewKey, secret: string, createdBy: string): Promise<IssuedKey> {
    const { row, isNew } = await this.#insert(key, secret, createdBy);
    if (!isNew) return issuedKey(row, null, this.options.clock.now());
    await this.recordCreation(row);
    return issuedKey(row, secret, this.options.clock.now());
  }

  /** Appends the fact of a pending key and makes the key valid. */
  async recordCreation(row: ApiKeyRow): Promise<void> {
    const { workspace, keyId } = row;
    await this.options.log.appendKeyFact(workspace, keyId, 'KeyCreated', 1, createdFact(row));
    await this.#update(row, { status: 'pending' }, { status: 'active' });
    this.options.notify(keyId);
  }

  /** Returns a page of the caller's workspace, oldest first. */
  list(
    caller: Principal,
    { limit, cursor }: { limit: number; cursor?: string | undefined },
  ): Promise<KeyPage> {
    const { workspace } = caller;
    return this.#in(workspace, async ({ apiKey }) => {
      const rows = await apiKey.findMany({
        // Sessions of the dashboard end by themselves.
        where: {
          workspace,
          status: { not: 'pending' },
          NOT: Object.values(SESSION_KEY_NAMES).map((prefix) => ({ name: { startsWith: prefix } })),
        },
        orderBy: [{ createdAt: 'asc' }, { keyId: 'asc' }],
        take: limit + 1,
        ...(cursor === undefined
          ? {}
          : { cursor: { workspace_keyId: { workspace, keyId: cursor } }, skip: 1 }),
      });
      const page = rows.slice(0, limit);
      return {
        keys: page.map((row) => viewOf(row, this.options.clock.now())),
        nextCursor: rows.length > limit ? (page.at(-1)?.keyId ?? null) : null,
      };
    });
  }

  /**
   * Revokes a key; a repeat changes nothing. Throws `GATEWAY.KEY_NOT_FOUND` and
   * `GATEWAY.KEY_EXCEEDS_CALLER`.
   */
  async revoke(caller: Principal, keyId: string): Promise<KeyView> {
    const row = await this.#find(caller.workspace, keyId);
    assertMayRevoke(caller, rightsOf(row));
    if (row.status === 'active') {
      const change = { status: 'revoking', ...this.#change(caller) };
      await this.#update(row, { status: 'active' }, change);
      this.options.notify(keyId);
    }
    const revoked = await this.#find(caller.workspace, keyId);
    if (revoked.status === 'revoking') await this.recordRevocation(revoked);
    return viewOf(revoked, this.options.clock.now());
  }

  /** Revokes a key; returns false if it was revoked before, also by a concurrent request. */
  async consume(caller: Principal, keyId: string): Promise<boolean> {
    const row = await this.#find(caller.workspace, keyId);
    const change = { status: 'revoking', ...this.#change(caller) };
    if (!(await this.#update(row, { status: 'active' }, change))) return false;
    this.options.notify(keyId);
    await this.recordRevocation(await this.#find(caller.workspace, keyId));
    return true;
  }

  /** Revokes the oldest valid keys whose names begin with a prefix, all but the newest `keep`. */
  async endOldest(caller: Principal, prefix: string, keep: number): Promise<void> {
    const { workspace } = caller;
    const expiresAt = { gt: new Date(this.options.clock.now()) };
    const rows = await this.#in(workspace, ({ apiKey }) =>
      apiKey.findMany({
        where: { workspace, status: 'active', name: { startsWith: prefix }, expiresAt },
        orderBy: [{ createdAt: 'desc' }, { keyId: 'desc' }],
        skip: keep,
      }),
    );
    for (const { keyId } of rows) await this.consume(caller, keyId);
  }

  /** Appends the fact of a revocation, after which the row stays as it is. */
  async recordRevocation(row: ApiKeyRow): Promise<void> {
    const { workspace, keyId } = row;
    await this.options.log.appendKeyFact(workspace, keyId, 'KeyRevoked', 1, revokedFact(row));
    await this.#update(row, { status: 'revoking' }, { status: 'revoked' });
  }

  /**
   * Gives a key a new secret. The present one ends after the overlap. Throws
   * `GATEWAY.KEY_NOT_FOUND`, `GATEWAY.KEY_REVOKED`, `GATEWAY.KEY_EXCEEDS_CALLER`,
   * `GATEWAY.KEY_CHANGING`.
   */
  async rotate(caller: Principal, keyId: string, overlapSeconds: number): Promise<IssuedKey> {
    const row = await this.#find(caller.workspace, keyId);
    if (row.status !== 'active') throw rejected('GATEWAY.KEY_REVOKED', 'a revoked key cannot be rotated');
    assertWithinRights(caller, rightsOf(row));
    const now = this.options.clock.now();
    if (row.nextHash !== null && now - row.changedAt.getTime() < UNFINISHED_MS) throw changing();
    const secret = createSecret();
    const begun = {
      nextHash: bytesOf(hashSecret(secret)),
      nextOverlapS: overlapSeconds,
      ...this.#change(caller),
    };
    const guard = { status: 'active', version: row.version, changedAt: row.changedAt };
    if (!(await this.#update(row, guard, begun))) throw changing();
    await this.recordRotation({ ...row, ...begun });
    return issuedKey(await this.#find(caller.workspace, keyId), secret, now);
  }

  /** Appends the fact of a rotation that a row has begun, and makes its new secret valid. */
  async recordRotation(row: ApiKeyRow): Promise<void> {
    const { workspace, keyId, version, nextHash } = row;
    if (nextHash === null) return;
    await this.options.log.appendKeyFact(workspace, keyId, 'KeyRotated', version + 1, rotatedFact(row));
    const until = overlapEnd(row);
    await this.#update(
      row,
      { version, nextHash },
      {
        version: version + 1,
        secretHash: nextHash,
        previousHash: until === null ? null : row.secretHash,
        previousUntil: until,
        nextHash: null,
        nextOverlapS: null,
      },
    );
    this.options.notify(keyId);
  }

  #in<T>(workspace: string, work: Parameters<typeof inWorkspace<T>>[2]): Promise<T> {
    return inWorkspace(this.options.prisma, workspace, work);
  }

  #change(caller: Principal) {
    return { changedBy: caller.caller, changedAt: new Date(this.options.clock.now()) };
  }

  async #find(workspace: string, keyId: string): Promise<ApiKeyRow> {
    const where = { workspace_keyId: { workspace, keyId } };
    const row = await this.#in(workspace, ({ apiKey }) => apiKey.findUnique({ where }));
    if (row === null || row.status === 'pending')
      throw notFound('GATEWAY.KEY_NOT_FOUND', 'there is no key with this id');
    return row;
  }

  /** Changes a row that is in the expected state. Returns false if it is in another one. */
  async #update({ workspace, keyId }: ApiKeyRow, expected: object, data: object): Promise<boolean> {
    const where = { workspace, keyId, ...expected };
    const { count } = await this.#in(workspace, ({ apiKey }) => apiKey.updateMany({ where, data }));
    return count > 0;
  }

  #insert(key: NewKey, secret: string, createdBy: string): Promise<{ row: ApiKeyRow; isNew: boolean }> {
    const { workspace, keyId } = key;
    const now = new Date(this.options.clock.now());
    const data = pendingRow(key, bytesOf(hashSecret(secret)), createdBy, now);
    return this.#in(workspace, async ({ apiKey, workspace: workspaces }) => {
      const found = await workspaces.findUnique({ where: { workspace } });
      if (found?.status !== 'active')
        throw notFound('GATEWAY.WORKSPACE_NOT_FOUND', `there is no workspace ${workspace}`);
      const where = { workspace_keyId: { workspace, keyId } };
      // Another gateway may insert the same key now; the insert waits for it.
      const { count } = await apiKey.createMany({ data: [data], skipDuplicates: true });
      const known = await apiKey.findUniqueOrThrow({ where });
      if (count === 1) return { row: known, isNew: true };
      if (!isSameKey(known, key))
        throw conflict('LOG.IDEMPOTENCY_CONFLICT', 'this idempotency key was used for another key');
      if (known.status !== 'pending') return { row: known, isNew: false };
      // Another gateway creates the same bootstrap key.
      if (isSameHash(known.secretHash, data.secretHash)) return { row: known, isNew: true };
      if (now.getTime() - known.changedAt.getTime() < UNFINISHED_MS) throw changing();
      // The first request did not finish, so its caller has no secret.
      const { secretHash } = data;
      return { row: await apiKey.update({ where, data: { secretHash, changedAt: now } }), isNew: true };
    });
  }
}
