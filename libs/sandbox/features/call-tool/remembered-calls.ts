import { conflict } from '@antiphon/kernel';

export interface RememberedCallsOptions<Answer> {
  readonly maxCalls: number;
  /** Bound on the sum of `sizeOf` over what is remembered. */
  readonly maxBytes: number;
  readonly sizeOf: (answer: Answer) => number;
  /** False for an answer that says that nothing was run: the next call with that id may run. */
  readonly keep: (answer: Answer) => boolean;
}

/** Answers a call id once: again while it runs or is remembered, it joins the first one's answer. */
export interface RememberedCalls<Answer> {
  /** `fingerprint` tells calls apart: the same id with another one is `TOOL.CALL_ID_REUSED` (conflict). */
  readonly once: (callId: string, fingerprint: string, run: () => Promise<Answer>) => Promise<Answer>;
  /** What is known of a call id; null: nothing, or nothing any more. */
  readonly find: (callId: string) => { readonly ended: boolean; readonly answer: Promise<Answer> } | null;
}

interface Entry<Answer> {
  readonly fingerprint: string;
  readonly answer: Promise<Answer>;
  /** Null while it runs; what runs is never forgotten. */
  bytes: number | null;
}

export const createRememberedCalls = <Answer>(
  options: RememberedCallsOptions<Answer>,
): RememberedCalls<Answer> => {
  const calls = new Map<string, Entry<Answer>>();
  let total = 0;
  const forget = (callId: string): void => {
    total -= calls.get(callId)?.bytes ?? 0;
    calls.delete(callId);
  };
  const trim = (): void => {
    for (const [callId, { bytes }] of calls) {
      if (calls.size <= options.maxCalls && total <= options.maxBytes) return;
      if (bytes !== null) forget(callId);
    }
  };
  const start = (callId: string, fingerprint: string, run: () => Promise<Answer>): Promise<Answer> => {
    const entry: Entry<Answer> = { fingerprint, answer: run(), bytes: null };
    calls.set(callId, entry);
    const settle = (answer: Answer): void => {
      if (!options.keep(answer)) return forget(callId);
      entry.bytes = options.sizeOf(answer);
      total += entry.bytes;
      trim();
    };
    entry.answer.then(settle, () => forget(callId));
    return entry.answer;
  };
  return {
    once: async (callId, fingerprint, run) => {
      const known = calls.get(callId);
      if (known === undefined) return start(callId, fingerprint, run);
      if (known.fingerprint !== fingerprint)
        throw conflict('TOOL.CALL_ID_REUSED', 'this call id was used for another call');
      return known.answer;
    },
    find: (callId) => {
      const known = calls.get(callId);
      return known ? { ended: known.bytes !== null, answer: known.answer } : null;
    },
  };
};
