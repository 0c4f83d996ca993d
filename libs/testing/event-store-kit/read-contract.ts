import { beforeAll, describe, expect, it } from '@jest/globals';
import {
  freshStream,
  freshWorkspace,
  type LogUnderTest,
  type OpenedLog,
  request,
  toStream,
} from './log-under-test.js';

/** Tests reads of streams and of the log. */
export const readContract = (opened: OpenedLog): void => {
  let log: LogUnderTest;
  beforeAll(() => {
    log = opened();
  });

  describe('reading', () => {
    it('reads a stream from a version, in either direction, up to a limit', async () => {
      const workspace = freshWorkspace();
      const streamId = freshStream();
      await log.agent.append(request(workspace, [toStream(streamId, 0, 5)]));
      const versions = async (options: object): Promise<number[]> =>
        (await log.agent.readStream(workspace, streamId, options)).map(({ streamVersion }) => streamVersion);
      expect(await versions({})).toEqual([1, 2, 3, 4, 5]);
      expect(await versions({ fromVersion: 4 })).toEqual([4, 5]);
      expect(await versions({ fromVersion: 2, limit: 2 })).toEqual([2, 3]);
      expect(await versions({ backwards: true, limit: 2 })).toEqual([5, 4]);
      expect(await versions({ fromVersion: 4, backwards: true })).toEqual([5, 4]);
      expect(await versions({ fromVersion: 6 })).toEqual([]);
      expect(await log.agent.readStream(workspace, freshStream())).toEqual([]);
    });

    it('reads the log after a position, in order, by category, up to a limit', async () => {
      const workspace = freshWorkspace();
      const before = await log.agent.headPosition();
      await log.agent.append(request(workspace, [toStream(freshStream(), 0, 2)]));
      await log.metering.append(request(workspace, [toStream(freshStream('budget'), 0, 2)]));
      await log.agent.append(request(workspace, [toStream(freshStream(), 0, 1)]));
      const head = await log.agent.headPosition();
      expect(head).toBe(before + 5);
      const read = async (options: object): Promise<number[]> =>
        (await log.agent.readLog({ after: before, limit: 100, ...options })).map(
          ({ position }) => position - before,
        );
      expect(await read({})).toEqual([1, 2, 3, 4, 5]);
      expect(await read({ after: before + 3 })).toEqual([4, 5]);
      expect(await read({ limit: 2 })).toEqual([1, 2]);
      expect(await read({ categories: ['budget'] })).toEqual([3, 4]);
      expect(await read({ categories: ['session'], limit: 3 })).toEqual([1, 2, 5]);
      expect(await read({ after: head })).toEqual([]);
    });

    it('returns copies that a reader may change', async () => {
      const workspace = freshWorkspace();
      const streamId = freshStream();
      await log.agent.append(request(workspace, [toStream(streamId, 0)]));
      const [event] = await log.agent.readStream(workspace, streamId);
      (event!.data as { text: string }).text = 'changed by a reader';
      expect((await log.agent.readStream(workspace, streamId))[0]?.data).toEqual({ text: 'hello' });
    });
  });
};
