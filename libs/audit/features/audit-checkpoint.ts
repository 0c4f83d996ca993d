import type { KeyObject } from 'node:crypto';
import { invalid } from '@antiphon/kernel';
import { isSignedBy } from '@antiphon/event-store';
import type { LogRoot } from '@antiphon/event-store';
import { z } from 'zod';
import type { PassState } from './pass-by-position/pass-by-position.js';
import type { LogBounds } from './read-log/read-log.js';

/** End of an audit without violations: the log's root there, and the state of the checks. */
export interface AuditCheckpoint extends LogRoot {
  readonly kind: 'audit';
  readonly state: PassState;
}
export type SignedAuditCheckpoint = AuditCheckpoint & { readonly keyId: string; readonly signature: string };

const SavedCheckpoint = z.looseObject({
  kind: z.literal('audit'),
  format: z.literal(1),
  epoch: z.int(),
  position: z.int().nonnegative(),
  streams: z.int().nonnegative(),
  root: z.string(),
  at: z.string(),
  keyId: z.string(),
  signature: z.string(),
  state: z.looseObject({ book: z.looseObject({ scopes: z.array(z.any()), known: z.array(z.any()) }) }),
});

const refuse = (reason: string): never => {
  throw invalid('AUDIT.BAD_CHECKPOINT', `${reason}; audit the whole log instead`);
};

/**
 * Parses a checkpoint that was signed with this key. Throws `AUDIT.BAD_CHECKPOINT` for any other.
 */
export const parseCheckpoint = (text: string, publicKey: KeyObject): SignedAuditCheckpoint => {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    return refuse('the checkpoint is not JSON');
  }
  const parsed = SavedCheckpoint.safeParse(content);
  if (!parsed.success) return refuse('the checkpoint is none of this version');
  const checkpoint = parsed.data as unknown as SignedAuditCheckpoint;
  return isSignedBy(checkpoint, publicKey)
    ? checkpoint
    : refuse('the checkpoint was not signed with this key');
};

/** Throws `AUDIT.BAD_CHECKPOINT` for a checkpoint of another history than the log's. */
export const requireSameHistory = ({ epoch, position }: AuditCheckpoint, bounds: LogBounds): void => {
  if (epoch !== bounds.epoch)
    refuse(`the checkpoint is of epoch ${epoch}, the log of ${bounds.epoch} (it was restored since)`);
  if (position < bounds.base) refuse(`events after the checkpoint's position ${position} were archived`);
};
