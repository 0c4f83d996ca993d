import { beforeAll, describe, expect, it } from '@jest/globals';
import { APPEND_LIMITS, verifyChain } from '@antiphon/event-store';
import {
  eventsOf,
  freshStream,
  freshWorkspace,
  type LogUnderTest,
  type OpenedLog,
  newEvent,
  outcomeOf,
  request,
  toStream,
} from './log-under-test.js';

/** Tests versions, atomicity, order, ownership and validation of appends. */
export const appendContract = (opened: OpenedLog): void => {
  let log: LogUnderTest;
  beforeAll(() => {
    log = opened();
  });

  describe('append', () => {
    it('writes events with contiguous versions and gapless positions, and reads them back', async () => {
      const workspace = freshWorkspace();
      const stream = toStream(freshStream(), 0, 3);
      const result = await log.agent.append(request(workspace, [stream]));
      const events = await log.agent.readStream(workspace, stream.streamId);
      expect(result).toEqual({
        outcome: 'appended',
        versions: [3],
        firstPosition: result.firstPosition,
        lastPosition: result.firstPosition + 2,
      });
      expect(events.map(({ position }) => position - result.firstPosition)).toEqual([0, 1, 2]);
      expect(events.map(({ streamVersion }) => streamVersion)).toEqual([1, 2, 3]);
      expect(
        events.map(({ eventId, type, schemaVersion, data, metadata }) => ({
          eventId,
          type,
          schemaVersion,
          data,
          metadata,
        })),
      ).toEqual(stream.events);
      expect(events[0]).toMatchObject({ workspace, category: 'session', streamId: stream.streamId });
      expect(Math.abs(Date.parse(events[0]?.recordedAt ?? '') - Date.now())).toBeLessThan(60_000);
      expect(verifyChain(events)).toEqual({ isIntact: true, version: 3, hash: events[2]?.hash });
    });

    it('continues a chain over several appends', async () => {
      const workspace = freshWorkspace();
      const streamId = freshStream();
      for (const version of [0, 1, 2])
        await log.agent.append(request(workspace, [toStream(streamId, version)]));
      const events = await log.agent.readStream(workspace, streamId);
      expect(verifyChain(events)).toMatchObject({ isIntact: true, version: 3 });
      expect(verifyChain(events.slice(2), { version: 2, hash: events[1]!.hash })).toMatchObject({
        isIntact: true,
      });
    });

    it('rejects an append whose version is stale, reports the actual one, and writes nothing', async () => {
      const workspace = freshWorkspace();
      const streamId = freshStream();
      await log.agent.append(request(workspace, [toStream(streamId, 0, 2)]));
      for (const [expected, stream] of [
        [1, streamId],
        [3, streamId],
        [0, streamId],
      ] as const)
        await expect(
          log.agent.append(request(workspace, [toStream(stream, expected)])),
        ).rejects.toMatchObject({
          kind: 'conflict',
          code: 'LOG.VERSION_CONFLICT',
          data: { streamId, expected, actual: 2 },
        });
      const missing = freshStream();
      await expect(log.agent.append(request(workspace, [toStream(missing, 4)]))).rejects.toMatchObject({
        data: { streamId: missing, expected: 4, actual: 0 },
      });
      expect(await eventsOf(log.agent, workspace)).toHaveLength(2);
      expect(await log.agent.streamVersion(workspace, missing)).toBe(0);
    });

    it('appends at any version on request', async () => {
      const workspace = freshWorkspace();
      const streamId = freshStream();
      const appends = Array.from({ length: 10 }, () =>
        log.agent.append(request(workspace, [toStream(streamId, 'any', 2)])),
      );
      const results = await Promise.all(appends);
      expect(results.map(({ versions }) => versions[0]).sort((a, b) => a! - b!)).toEqual([
        2, 4, 6, 8, 10, 12, 14, 16, 18, 20,
      ]);
      expect(verifyChain(await log.agent.readStream(workspace, streamId))).toMatchObject({
        isIntact: true,
        version: 20,
      });
    });

    it('appends all streams of a request or none, and returns versions in the order of the request', async () => {
      const workspace = freshWorkspace();
      const [a, b] = ['session-b', 'session-a'] as const;
      const first = await log.agent.append(request(workspace, [toStream(a, 0, 2), toStream(b, 0, 1)]));
      expect(first).toMatchObject({ versions: [2, 1], lastPosition: first.firstPosition + 2 });
      await expect(
        log.agent.append(request(workspace, [toStream(a, 2), toStream(b, 0)])),
      ).rejects.toMatchObject({ code: 'LOG.VERSION_CONFLICT', data: { streamId: b, actual: 1 } });
      const events = await eventsOf(log.agent, workspace);
      expect(events.map(({ streamId, streamVersion }) => [streamId, streamVersion])).toEqual([
        [a, 1],
        [a, 2],
        [b, 1],
      ]);
    });

    it('accepts a bulk append up to its limits, and rejects a larger one', async () => {
      const workspace = freshWorkspace();
      const { requestEvents, requestStreams } = APPEND_LIMITS;
      const streams = Array.from({ length: requestStreams }, (_, index) =>
        toStream(freshStream(), 0, index === 0 ? requestEvents - (requestStreams - 1) * 15 : 15),
      );
      const { firstPosition, lastPosition, versions } = await log.agent.append(request(workspace, streams));
      expect(lastPosition - firstPosition + 1).toBe(requestEvents);
      expect(versions).toEqual(streams.map(({ events }) => events.length));
      const written = await log.agent.readStream(workspace, streams[0]!.streamId);
      expect(verifyChain(written)).toMatchObject({ isIntact: true, version: versions[0] });
      const over = [...streams.map(({ streamId }) => toStream(streamId, 'any')), toStream(freshStream(), 0)];
      expect(await outcomeOf(log.agent.append(request(workspace, over)))).toBe('LOG.INVALID');
    });

    it('accepts exactly one of 50 concurrent appends to a version', async () => {
      const workspace = freshWorkspace();
      const streamId = freshStream();
      const outcomes = await Promise.all(
        Array.from({ length: 50 }, () =>
          outcomeOf(log.agent.append(request(workspace, [toStream(streamId, 0)]))),
        ),
      );
      expect(outcomes.filter((outcome) => outcome === 'appended')).toHaveLength(1);
      expect(outcomes.filter((outcome) => outcome === 'LOG.VERSION_CONFLICT')).toHaveLength(49);
    });

    it('fails only the conflicting requests of a batch', async () => {
      const workspace = freshWorkspace();
      const streams = Array.from({ length: 40 }, () => freshStream());
      const results = await Promise.all(
        streams.map((streamId, index) =>
          outcomeOf(
            log.agent.append(
              request(workspace, [toStream(streamId, index % 4 === 0 ? 9 : 0, 1 + (index % 3))]),
            ),
          ),
        ),
      );
      expect(results).toEqual(
        streams.map((_, index) => (index % 4 === 0 ? 'LOG.VERSION_CONFLICT' : 'appended')),
      );
      const events = await eventsOf(log.agent, workspace);
      const positions = events.map(({ position }) => position - events[0]!.position);
      expect(positions).toEqual(positions.map((_, index) => index));
    });

    it('rejects categories of other services, and accepts the rest of the batch', async () => {
      const workspace = freshWorkspace();
      const [foreign, own, mixed] = await Promise.all([
        outcomeOf(log.agent.append(request(workspace, [toStream(freshStream('budget'), 0)]))),
        outcomeOf(log.agent.append(request(workspace, [toStream(freshStream(), 0)]))),
        outcomeOf(
          log.agent.append(
            request(workspace, [toStream(freshStream(), 0), toStream(freshStream('budget'), 'any')]),
          ),
        ),
      ]);
      expect([foreign, own, mixed]).toEqual(['LOG.NOT_OWNER', 'appended', 'LOG.NOT_OWNER']);
      expect(
        await outcomeOf(log.metering.append(request(workspace, [toStream(freshStream('budget'), 0)]))),
      ).toBe('appended');
      expect(await outcomeOf(log.metering.append(request(workspace, [toStream(freshStream(), 0)])))).toBe(
        'LOG.NOT_OWNER',
      );
      expect(
        await outcomeOf(log.agent.append(request(workspace, [toStream(freshStream('unknown'), 0)]))),
      ).toBe('LOG.NOT_OWNER');
    });

    it('isolates workspaces', async () => {
      const [one, other] = [freshWorkspace(), freshWorkspace()];
      const streamId = freshStream();
      await log.agent.append(request(one, [toStream(streamId, 0, 2)]));
      await log.agent.append(request(other, [toStream(streamId, 0, 1)]));
      expect(await log.agent.streamVersion(one, streamId)).toBe(2);
      expect(await log.agent.readStream(other, streamId)).toHaveLength(1);
    });
  });

  describe('validation', () => {
    const deep = JSON.parse('{"a":'.repeat(200) + '1' + '}'.repeat(200)) as { a: never };
    it.each([
      ['U+0000 in a value', { text: 'a\0b' }],
      ['U+0000 in a key', { 'a\0': 1 }],
      ['a lone surrogate', { text: '\ud800' }],
      ['a number that JSON lacks', { n: Number.NaN }],
      ['more than 128 levels', deep],
      ['more than 1 MiB', { text: 'x'.repeat(1024 * 1024) }],
      ['more than 1 MiB in UTF-8', { text: 'é'.repeat(600_000) }],
      ['an array instead of an object', [] as never],
    ])('rejects %s', async (_, data) => {
      const workspace = freshWorkspace();
      const streams = [{ streamId: freshStream(), expectedVersion: 0, events: [newEvent(data)] }];
      await expect(log.agent.append(request(workspace, streams))).rejects.toMatchObject({
        kind: 'invalid',
        code: 'LOG.INVALID',
      });
      expect(await eventsOf(log.agent, workspace)).toEqual([]);
    });

    it('rejects malformed requests', async () => {
      const twice = newEvent();
      const good = toStream(freshStream(), 0);
      const requests = [
        request('UPPER', [good]),
        request('w', []),
        request('w', [good, good]),
        request('w', [{ ...good, events: [] }]),
        request('w', [{ ...good, events: [twice, twice] }]),
        request('w', [{ ...good, streamId: 'nodash' }]),
        request('w', [{ ...good, streamId: 'session-a b' }]),
        request('w', [{ ...good, streamId: 'session-a\nb' }]),
        request('w', [{ ...good, expectedVersion: -1 }]),
        request('w', [{ ...good, expectedVersion: 1.5 }]),
        request('w', [{ ...good, events: [newEvent({}, { eventId: 'not-a-uuid' })] }]),
        request('w', [{ ...good, events: [newEvent({}, { type: 'a\nb' })] }]),
        request('w', [{ ...good, events: [newEvent({}, { schemaVersion: 0 })] }]),
        request('w', [toStream(freshStream(), 0, 1_001)]),
        request('w', [good], { fence: { lease: '', epoch: 1 } }),
        request('w', [good], { fence: { lease: 'a', epoch: 1.5 } }),
        request('w', [good], { idempotency: { scope: 'a\0', key: 'k', digest: 'd', response: {} } }),
      ];
      for (const one of requests) expect(await outcomeOf(log.agent.append(one))).toBe('LOG.INVALID');
    });

    it('stores every valid JSON value unchanged', async () => {
      const workspace = freshWorkspace();
      const streamId = freshStream();
      const data = {
        '': null,
        10: 'ten',
        9: 'nine',
        é: '\u2028\u2029',
        backslash: '\\u0000',
        __proto_: '__proto__',
        numbers: [0, -0, 1e21, 1e-7, 5e-324, 1.7976931348623157e308, 0.1, 123456789012345680000, -1.5],
        emoji: '👩‍👩‍👧‍👦',
        controls: '\u0001\b\t\n\u001f\u007f',
        nested: [[[{ a: [] }]], {}, ''],
      };
      await log.agent.append(
        request(workspace, [{ streamId, expectedVersion: 0, events: [newEvent(data)] }]),
      );
      const events = await log.agent.readStream(workspace, streamId);
      expect(events[0]?.data).toEqual({ ...data, numbers: data.numbers.map((n) => (n === 0 ? 0 : n)) });
      expect(verifyChain(events)).toMatchObject({ isIntact: true });
    });
  });
};
