import type { KeyObject } from 'node:crypto';
import { invalid } from '@antiphon/kernel';
import { isSignedBy } from '@antiphon/event-store';
import type { LogRoot } from '@antiphon/event-store';
import { z } from 'zod';
import type { PassState } from './pass-by-position/pass-by-position.js';
import type { LogBounds } from './read-log/log-bounds.js';

/** An audit that found nothing broken: the log's root where it ended, and what its checks have to know to go on. */
export interface AuditCheckpoint extends LogRoot {
  readonly kind: 'audit';
  readonly state: PassState;
}
export type SignedAuditCheckpoint = AuditCheckpoint & { readonly keyId: string; readonly signature: string };

const Saved = z.looseObject({
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

const refuse = (why: string): never => {
  throw invalid('AUDIT.BAD_CHECKPOINT', `${why}; audit the whole log instead`);
};

/** Reads a checkpoint's text and trusts it only if it was signed with this key. Throws `AUDIT.BAD_CHECKPOINT`. */
export const parseCheckpoint = (text: string, publicKey: KeyObject): SignedAuditCheckpoint => {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    return refuse('the checkpoint is not JSON');
  }
  const parsed = Saved.safeParse(content);
  if (!parsed.success) return refuse('the checkpoint is none of this version');
  const checkpoint = parsed.data as unknown as SignedAuditCheckpoint;
  return isSignedBy(checkpoint, publicKey)
    ? checkpoint
    : refuse('the checkpoint was not signed with this key');
};

/** A checkpoint of a history that is not this log's tells nothing about it. Throws `AUDIT.BAD_CHECKPOINT`. */
export const checkFits = ({ epoch, position }: AuditCheckpoint, bounds: LogBounds): void => {
  if (epoch !== bounds.epoch)
    refuse(`the checkpoint is of epoch ${epoch}, the log of ${bounds.epoch} (it was restored since)`);
  if (position < bounds.base) refuse(`what follows the checkpoint's position ${position} was archived`);
};
