import { type AppError, bug, conflict, forbidden, type JsonObject } from '@antiphon/kernel';
import type { AppendRequest, AppendResult } from '../event-store.port.js';

/** Outcome of one request of a batch. */
export type AppendOutcome =
  { readonly ok: true; readonly result: AppendResult } | { readonly ok: false; readonly error: AppError };

/** Outcomes of a request whose events are in the log. */
export type AcceptedOutcome = AppendResult['outcome'];

export type RejectedOutcome =
  'not_owner' | 'event_id_conflict' | 'idempotency_conflict' | 'fenced' | 'version_conflict';

/** Outcome of a request as `antiphon_append` names it. */
export type OutcomeName = AcceptedOutcome | RejectedOutcome;

/** Details of a rejected request; its error carries them as data. */
export interface RejectionDetail {
  readonly category?: string;
  /** Scope of an idempotency claim. */
  readonly scope?: string;
  readonly eventId?: string;
  readonly streamId?: string;
  readonly expected?: number;
  readonly actual?: number;
}

/** Creates the typed error of a rejected request (codes: event-store.port.ts). */
export const createRejection = (
  outcome: OutcomeName,
  request: AppendRequest,
  detail: RejectionDetail,
): AppError => {
  switch (outcome) {
    case 'version_conflict': {
      const { streamId, expected, actual } = detail;
      return conflict('LOG.VERSION_CONFLICT', `${streamId} is at version ${actual}, not ${expected}`, {
        data: { streamId, expected, actual },
      });
    }
    case 'event_id_conflict':
      return conflict('LOG.EVENT_ID_CONFLICT', 'an event with this id and other content exists', {
        data: { eventId: detail.eventId },
      });
    case 'idempotency_conflict':
      return conflict('LOG.IDEMPOTENCY_CONFLICT', 'this idempotency key was used for another request', {
        data: { key: request.idempotency?.key },
      });
    case 'fenced': {
      const { lease, epoch } = request.fence ?? {};
      return conflict('LOG.FENCED', `the lease ${lease} is no longer held at epoch ${epoch}`, {
        data: { lease, epoch, actual: detail.actual },
      });
    }
    case 'not_owner':
      if (detail.scope !== undefined)
        return forbidden('LOG.NOT_OWNER', `this service may not claim keys under ${detail.scope}`, {
          data: { scope: detail.scope },
        });
      return forbidden('LOG.NOT_OWNER', `this service may not append to category ${detail.category}`, {
        data: { category: detail.category },
      });
    default:
      return bug('LOG.UNEXPECTED_OUTCOME', `an append returned the unknown outcome ${outcome}`);
  }
};

/** Creates the result of an accepted request. */
export const createAppendResult = (
  outcome: AcceptedOutcome,
  versions: readonly number[],
  firstPosition: number,
  lastPosition: number,
  response?: JsonObject,
  extension?: JsonObject,
): AppendResult => ({
  ...{ versions, firstPosition, lastPosition, outcome },
  ...(response === undefined ? {} : { response }),
  ...(extension === undefined ? {} : { extension }),
});
