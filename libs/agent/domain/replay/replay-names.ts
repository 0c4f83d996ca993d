import type { SessionEvent } from '@antiphon/contracts/agent';
import type { JsonValue } from '@antiphon/kernel';

/** Names that follow from what they name, and equality of events: hashing is not this layer's. */
export interface ReplayNames {
  readonly callIdOf: (sessionId: string, attempt: number, index: number) => string;
  readonly toolDigestOf: (name: string, input: JsonValue) => string;
  readonly isSame: (a: SessionEvent, b: SessionEvent) => boolean;
}
