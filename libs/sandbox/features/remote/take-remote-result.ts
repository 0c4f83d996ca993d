import { readRemoteResult, releaseRemoteResult } from '@antiphon/contracts/sandbox';
import type { RemoteCallEnd } from '@antiphon/contracts/sandbox';
import { isAppError, transient } from '@antiphon/kernel';
import { fetchParts, requestWithRetry } from '@antiphon/messaging';
import type { RequestClient } from '@antiphon/messaging';

/** End of an attempt, with its whole result. */
export type EndedCall = Exclude<RemoteCallEnd, { end: 'held' }>;

interface Holder {
  readonly gateway: string;
  readonly attemptId: string;
}

const lost = (why: string): Error => transient('TOOL.RESULT_LOST', `the result of a program is lost: ${why}`);

/** Takes over a result that a gateway holds. One that is gone counts as a lost program. */
export const takeRemoteResult = async (
  requests: RequestClient,
  { gateway, attemptId }: Holder,
  end: RemoteCallEnd,
  signal: AbortSignal,
): Promise<EndedCall> => {
  if (end.end !== 'held') return end;
  const readPart = async (offset: number): Promise<Buffer> => {
    const { data } = await requestWithRetry((options) =>
      requests.request(readRemoteResult, { attemptId, offset }, { ...options, processId: gateway }),
    );
    return Buffer.from(data, 'base64');
  };
  try {
    const bytes = await fetchParts(end, { readPart, lost }, signal);
    requests.request(releaseRemoteResult, { attemptId }, { processId: gateway }).catch(() => undefined);
    return { end: 'result', content: bytes.toString('utf8'), isError: end.isError };
  } catch (error) {
    if (signal.aborted) return { end: 'cancelled' };
    if (isAppError(error)) return { end: 'lost' };
    throw error;
  }
};
