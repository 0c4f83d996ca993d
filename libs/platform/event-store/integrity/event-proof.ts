import type { KeyObject } from 'node:crypto';
import { invalid } from '@antiphon/kernel';
import type { JsonObject } from '@antiphon/kernel';
import type { RecordedEvent } from '../event-store.port.js';
import { canonicalJson, genesisHash, hashEvent } from './event-hash.js';
import { isPathTo } from './log-tree.js';
import { isTreeRoot, parseSignedRoot, type SignedTreeRoot } from './signed-root.js';
import { isSignedByAny } from './signing-key.js';

/**
 * Proof that an event was in the log when a root was signed. It is verified with the public key
 * alone. Its text is RFC 8785 JSON and a line feed.
 */
export interface EventProof {
  readonly kind: 'antiphon-proof';
  readonly format: 1;
  readonly event: RecordedEvent;
  /** Hash of the event before in its stream, or the first hash of the workspace; hex. */
  readonly previousHash: string;
  /** Hashes next to the path from the event to its subtree in the root, from the event on; hex. */
  readonly path: readonly string[];
  readonly root: SignedTreeRoot;
}

export const renderProof = (proof: EventProof): string =>
  `${canonicalJson(proof as unknown as JsonObject)}\n`;

const refuse = (reason: string, cause?: unknown): never => {
  throw invalid('PROOF.INVALID', `the proof does not hold: ${reason}`, { cause });
};

const EVENT_FIELDS = [
  ...['category', 'data', 'eventId', 'hash', 'metadata', 'position', 'recordedAt', 'schemaVersion'],
  ...['streamId', 'streamVersion', 'type', 'workspace'],
];
const PROOF_FIELDS = ['event', 'format', 'kind', 'path', 'previousHash', 'root'];

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const hasFields = (value: Readonly<Record<string, unknown>>, names: readonly string[]): boolean =>
  Object.keys(value).sort().join() === names.join();
const isHash = (value: unknown): value is string => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value);

const TEXT_FIELDS = ['workspace', 'category', 'streamId', 'eventId', 'type', 'recordedAt'];
const NUMBER_FIELDS = ['position', 'streamVersion', 'schemaVersion'];

const isEvent = (event: unknown): event is RecordedEvent =>
  isObject(event) &&
  hasFields(event, EVENT_FIELDS) &&
  TEXT_FIELDS.every((name) => typeof event[name] === 'string' && !event[name].includes('\n')) &&
  NUMBER_FIELDS.every((name) => Number.isSafeInteger(event[name])) &&
  isObject(event['data']) &&
  isObject(event['metadata']) &&
  isHash(event['hash']);

const parse = (text: string): EventProof => {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (cause) {
    return refuse('the file is not JSON', cause);
  }
  if (!isObject(content) || content['kind'] !== 'antiphon-proof' || content['format'] !== 1)
    return refuse('the file is no proof of this version');
  const { event, previousHash, path, root } = content;
  const isProof = hasFields(content, PROOF_FIELDS) && isEvent(event) && isHash(previousHash);
  const signed = parseSignedRoot(root);
  if (!isProof || !Array.isArray(path) || !path.every(isHash) || signed === null || !isTreeRoot(signed))
    return refuse('a field is missing or has another type');
  const proof = content as unknown as EventProof;
  // One spelling only, so that no byte of the file can change.
  return renderProof(proof) === text ? proof : refuse('the file is not in its canonical form');
};

const checkEvent = ({ event, previousHash }: EventProof): void => {
  const { streamId, streamVersion, category, workspace } = event;
  if (category !== streamId.split('-', 1)[0]) refuse('the category is not that of the event stream');
  if (streamVersion === 1 && previousHash !== genesisHash(workspace).toString('hex'))
    refuse('the event does not begin a chain of its workspace');
  const content = {
    ...event,
    data: canonicalJson(event.data),
    metadata: canonicalJson(event.metadata as JsonObject),
  };
  if (hashEvent(Buffer.from(previousHash, 'hex'), content).toString('hex') !== event.hash)
    refuse('the content of the event does not have its hash');
};

/**
 * Verifies the text of a proof without a database or a network, and returns the proof. Throws
 * `PROOF.INVALID` with the reason.
 */
export const verifyProof = (text: string, publicKeys: readonly KeyObject[]): EventProof => {
  const proof = parse(text);
  const { event, path, root } = proof;
  if (!isSignedByAny(root, publicKeys))
    refuse(`the root was not signed with this key (it names ${root.keyId})`);
  checkEvent(proof);
  if (!isPathTo(root, event, path)) refuse('the path does not lead from the event to the signed root');
  return proof;
};
