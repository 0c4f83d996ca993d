import type { JsonObject } from '@antiphon/kernel';
import type {
  AppendRequest,
  BlobAppend,
  Fence,
  IdempotencyClaim,
  NewEvent,
  StreamAppend,
  StreamGuard,
} from '../event-store.port.js';

/** Events of one aggregate, with all that is appended or checked in the same transaction. */
export interface AppendDecision<Event> {
  readonly events: readonly Event[];
  /** Appends to other streams; a function gets the stored form of `events`. */
  readonly also?: readonly StreamAppend[] | ((stored: readonly NewEvent[]) => readonly StreamAppend[]);
  /** As `also`, at positions before those of `events`. */
  readonly before?: readonly StreamAppend[];
  /** Bytes of files that the appends cite. */
  readonly blobs?: readonly BlobAppend[] | undefined;
  /** Versions of other streams that the decision relies on. */
  readonly guards?: readonly StreamGuard[] | undefined;
  readonly idempotency?: IdempotencyClaim | undefined;
  /** Lease that the caller must still hold. */
  readonly fence?: Fence | undefined;
  /** Work of another service for the same commit (`AppendRequest.extension`). */
  readonly extension?: object | undefined;
}

/** Returns the append of a decision: `own` is the aggregate's part, null without events of its own. */
export const toAppendRequest = <Event>(
  workspace: string,
  own: StreamAppend | null,
  { also = [], before = [], guards = [], blobs = [], idempotency, fence, extension }: AppendDecision<Event>,
): AppendRequest => ({
  workspace,
  streams: [
    ...before,
    ...(own ? [own] : []),
    ...(typeof also === 'function' ? also(own?.events ?? []) : also),
  ],
  ...(blobs.length > 0 ? { blobs } : {}),
  ...(guards.length > 0 ? { guards } : {}),
  ...(fence ? { fence } : {}),
  ...(idempotency ? { idempotency } : {}),
  ...(extension ? { extension: extension as JsonObject } : {}),
});
