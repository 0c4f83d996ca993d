import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { bug } from '@antiphon/kernel';

/** A master key and its id, which is public. */
export interface MasterKey {
  readonly id: string;
  readonly key: Uint8Array;
}

/** The row that a ciphertext belongs to. In another row it cannot be decrypted. */
export interface CredentialPlace {
  readonly workspace: string;
  readonly provider: string;
  readonly credentialId: string;
}

/** An encrypted secret: the ciphertext, and its data key wrapped by a master key. */
export interface SealedSecret {
  readonly ciphertext: Uint8Array<ArrayBuffer>;
  readonly dataKey: Uint8Array<ArrayBuffer>;
  readonly masterKeyId: string;
}

const ALGORITHM = 'aes-256-gcm';
const FORMAT = 1;
const KEY_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** Length of a master key, bytes. */
export const MASTER_KEY_BYTES = KEY_BYTES;

type Purpose = 'secret' | 'data-key';

const boundData = (purpose: Purpose, { workspace, provider, credentialId }: CredentialPlace): Buffer =>
  Buffer.from(JSON.stringify(['antiphon-credential', FORMAT, purpose, workspace, provider, credentialId]));

const encrypt = (key: Uint8Array, plain: Uint8Array, bound: Buffer): Uint8Array<ArrayBuffer> => {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv(ALGORITHM, key, iv, { authTagLength: TAG_BYTES }).setAAD(bound);
  const encrypted = Buffer.concat([cipher.update(plain), cipher.final()]);
  return new Uint8Array(Buffer.concat([Buffer.from([FORMAT]), iv, cipher.getAuthTag(), encrypted]));
};

const decrypt = (key: Uint8Array, sealed: Uint8Array, bound: Buffer): Buffer => {
  const bytes = Buffer.from(sealed);
  const begin = 1 + IV_BYTES + TAG_BYTES;
  if (bytes[0] !== FORMAT || bytes.length < begin)
    throw bug('CREDENTIAL.UNREADABLE', 'a stored credential has an unknown form');
  const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(1, 1 + IV_BYTES), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(bound).setAuthTag(bytes.subarray(1 + IV_BYTES, begin));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(begin)), decipher.final()]);
  } catch {
    // The cause holds nothing more, and must not hold a part of the secret.
    throw bug(
      'CREDENTIAL.UNREADABLE',
      'a stored credential cannot be decrypted: it was changed, or copied from another row',
    );
  }
};

/** Returns the public id of a master key. */
export const masterKeyIdOf = (key: Uint8Array): string =>
  createHash('sha256').update('antiphon-master-key').update(key).digest('hex').slice(0, 16);

const masterKeyOf = (keys: readonly MasterKey[], masterKeyId: string): MasterKey => {
  const found = keys.find(({ id }) => id === masterKeyId);
  if (found !== undefined) return found;
  const known = keys.map(({ id }) => id).join(', ') || 'none';
  throw bug(
    'CREDENTIAL.MASTER_KEY_UNKNOWN',
    `a credential is encrypted under the master key ${masterKeyId}, and this service has ${known}`,
  );
};

/** Encrypts a secret by a data key of its own, and wraps that key by the master key. */
export const sealSecret = (secret: string, place: CredentialPlace, master: MasterKey): SealedSecret => {
  const dataKey = randomBytes(KEY_BYTES);
  return {
    ciphertext: encrypt(dataKey, Buffer.from(secret, 'utf8'), boundData('secret', place)),
    dataKey: encrypt(master.key, dataKey, boundData('data-key', place)),
    masterKeyId: master.id,
  };
};

const unwrap = (sealed: SealedSecret, place: CredentialPlace, keys: readonly MasterKey[]): Buffer =>
  decrypt(masterKeyOf(keys, sealed.masterKeyId).key, sealed.dataKey, boundData('data-key', place));

/**
 * Decrypts a secret. Throws `CREDENTIAL.MASTER_KEY_UNKNOWN`, or `CREDENTIAL.UNREADABLE` for a
 * ciphertext of another row.
 */
export const openSecret = (
  sealed: SealedSecret,
  place: CredentialPlace,
  keys: readonly MasterKey[],
): string =>
  decrypt(unwrap(sealed, place, keys), sealed.ciphertext, boundData('secret', place)).toString('utf8');

/** Wraps the data key by another master key. The ciphertext stays as it is. */
export const rewrapSecret = (
  sealed: SealedSecret,
  place: CredentialPlace,
  keys: readonly MasterKey[],
  master: MasterKey,
): SealedSecret => ({
  ...sealed,
  dataKey: encrypt(master.key, unwrap(sealed, place, keys), boundData('data-key', place)),
  masterKeyId: master.id,
});
