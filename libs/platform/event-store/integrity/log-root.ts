import { createHash, createPublicKey, sign, verify } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { canonicalJson } from './event-hash.js';

/** The last event of an event stream at some position of the log; `hash` in hex. */
export interface StreamHead {
  readonly workspace: string;
  readonly streamId: string;
  readonly version: number;
  readonly hash: string;
}

/** One number for the whole log up to a position: SHA-256 over the heads of all event streams as they were there. */
export interface LogRoot {
  readonly format: 1;
  readonly epoch: number;
  /** Of the newest event that it covers; 0 for an empty log. */
  readonly position: number;
  readonly streams: number;
  /** Hex. */
  readonly root: string;
  /** ISO 8601, UTC. */
  readonly at: string;
}

export interface SignedLogRoot extends LogRoot {
  /** Which key signed: the first 16 hex digits of SHA-256 over the public key (SPKI, DER). */
  readonly keyId: string;
  /** Ed25519 over the RFC 8785 text of everything else; base64. */
  readonly signature: string;
}

/** Takes heads in the order of workspace and stream id, as code units sort them. */
export const createRootHasher = () => {
  const hash = createHash('sha256').update('antiphon-root-1\n');
  let streams = 0;
  return {
    add: ({ workspace, streamId, version, hash: head }: StreamHead): void => {
      hash.update(`${workspace}\n${streamId}\n${version}\n${head}\n`);
      streams++;
    },
    /** Ends it. */
    end: (): { readonly streams: number; readonly root: string } => ({ streams, root: hash.digest('hex') }),
  };
};

export const signingKeyId = (publicKey: KeyObject): string =>
  createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('hex')
    .slice(0, 16);

const signedText = (content: object): Buffer => Buffer.from(canonicalJson(content as never));

/** Signs a JSON object with an Ed25519 key: the object with `keyId` and `signature` besides. */
export const signContent = <T extends object>(
  content: T,
  privateKey: KeyObject,
): T & { readonly keyId: string; readonly signature: string } => {
  const keyed = { ...content, keyId: signingKeyId(createPublicKey(privateKey)) };
  return { ...keyed, signature: sign(null, signedText(keyed), privateKey).toString('base64') };
};

/** Whether this very content was signed with the key that belongs to `publicKey`. */
export const isSignedBy = (
  { signature, ...keyed }: { readonly keyId: string; readonly signature: string },
  publicKey: KeyObject,
): boolean =>
  keyed.keyId === signingKeyId(publicKey) &&
  verify(null, signedText(keyed), publicKey, Buffer.from(signature, 'base64'));
