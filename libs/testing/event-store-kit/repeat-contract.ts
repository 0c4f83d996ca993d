import { beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { verifyChain } from '@antiphon/event-store';
import type { AppendRequest, IdempotencyClaim } from '@antiphon/event-store';
import { until } from '../waits.js';
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

const claim = (
  key: string,
  digest = 'd1',
  response: IdempotencyClaim['response'] = { n: 1 },
): IdempotencyClaim => ({
  scope: 'spec/turn.submit',
  key,
  digest,
  response,
});

/**
 * Tests repeated requests by event id and idempotency key, and fences against former lease holders.
 */
export const repeatContract = (opened: OpenedLog): void => {
  let log: LogUnderTest;
  beforeAll(() => {
    log = opened();
  });

  describe('event ids', () => {
    it('returns the first result to a repeated request, even after later appends', async () => {
      const workspace = freshWorkspace();
      const streams = [toStream('session-b', 0, 2), toStream('session-a', 0, 1)];
      const first = await log.agent.append(request(workspace, streams));
      await log.agent.append(request(workspace, [toStream('session-b', 2)]));
      const again = await log.agent.append(request(workspace, streams));
      expect(again).toEqual({ ...first, outcome: 'duplicate' });
      expect(await eventsOf(log.agent, workspace)).toHaveLength(4);
    });

    it('ignores metadata when it compares a repeat', async () => {
      const workspace = freshWorkspace();
      const stream = toStream(freshStream(), 0);
      await log.agent.append(request(workspace, [stream]));
      const events = stream.events.map((event) => ({
        ...event,
        metadata: { correlationId: 'retry', service: 'agent' },
      }));
      expect(await outcomeOf(log.agent.append(request(workspace, [{ ...stream, events }])))).toBe(
        'duplicate',
      );
    });

    it('treats the same JSON in another spelling as equal', async () => {
      const workspace = freshWorkspace();
      const event = newEvent({ a: 1, b: [1, 2], 10: 'x', 9: 'y' });
      const streamId = freshStream();
      await log.agent.append(request(workspace, [{ streamId, expectedVersion: 0, events: [event] }]));
      const other = { ...event, data: { b: [1, 2], 9: 'y', 10: 'x', a: 1.0 } };
      expect(
        await outcomeOf(
          log.agent.append(request(workspace, [{ streamId, expectedVersion: 0, events: [other] }])),
        ),
      ).toBe('duplicate');
    });

    it('rejects a known event id with any other content', async () => {
      const workspace = freshWorkspace();
      const stream = toStream(freshStream(), 0);
      const event = stream.events[0]!;
      await log.agent.append(request(workspace, [stream]));
      const changed: AppendRequest[] = [
        request(workspace, [{ ...stream, events: [{ ...event, data: { text: 'other' } }] }]),
        request(workspace, [{ ...stream, events: [{ ...event, type: 'Other' }] }]),
        request(workspace, [{ ...stream, events: [{ ...event, schemaVersion: 2 }] }]),
        request(workspace, [{ ...stream, streamId: freshStream() }]),
        request(freshWorkspace(), [stream]),
        request(workspace, [{ ...stream, expectedVersion: 1, events: [event, newEvent()] }]),
      ];
      for (const one of changed)
        await expect(log.agent.append(one)).rejects.toMatchObject({
          kind: 'conflict',
          code: 'LOG.EVENT_ID_CONFLICT',
          data: { eventId: event.eventId },
        });
      expect(await eventsOf(log.agent, workspace)).toHaveLength(1);
    });

    it('writes once what two concurrent requests send', async () => {
      const workspace = freshWorkspace();
      const requests = Array.from({ length: 10 }, () => request(workspace, [toStream(freshStream(), 0, 2)]));
      const outcomes = await Promise.all(
        [...requests, ...requests].map((one) => outcomeOf(log.agent.append(one))),
      );
      expect(outcomes.filter((outcome) => outcome === 'appended')).toHaveLength(10);
      expect(outcomes.filter((outcome) => outcome === 'duplicate')).toHaveLength(10);
      expect(await eventsOf(log.agent, workspace)).toHaveLength(20);
    });
  });

  describe('idempotency keys', () => {
    it('returns the first response for the same key and digest, and writes nothing', async () => {
      const workspace = freshWorkspace();
      const key = randomUUID();
      const streams = [toStream('session-z', 0, 2), toStream('session-y', 0)];
      const first = await log.agent.append(
        request(workspace, streams, { idempotency: claim(key, 'd', { turnId: 't1' }) }),
      );
      const again = await log.agent.append(
        request(workspace, [toStream(freshStream(), 0)], { idempotency: claim(key, 'd', { turnId: 't2' }) }),
      );
      expect(again).toEqual({ ...first, outcome: 'joined', response: { turnId: 't1' } });
      expect(await eventsOf(log.agent, workspace)).toHaveLength(3);
    });

    it('rejects the same key with another digest', async () => {
      const workspace = freshWorkspace();
      const key = randomUUID();
      await log.agent.append(request(workspace, [toStream(freshStream(), 0)], { idempotency: claim(key) }));
      await expect(
        log.agent.append(request(workspace, [toStream(freshStream(), 0)], { idempotency: claim(key, 'd2') })),
      ).rejects.toMatchObject({ kind: 'conflict', code: 'LOG.IDEMPOTENCY_CONFLICT', data: { key } });
    });

    it('joins concurrent requests with one key to the first', async () => {
      const workspace = freshWorkspace();
      const key = randomUUID();
      const outcomes = await Promise.all(
        Array.from({ length: 8 }, () =>
          outcomeOf(
            log.agent.append(request(workspace, [toStream(freshStream(), 0)], { idempotency: claim(key) })),
          ),
        ),
      );
      expect(outcomes.toSorted()).toEqual(['appended', ...Array.from({ length: 7 }, () => 'joined')]);
    });

    it('leaves the key of a rejected request unused, and separates keys by workspace and scope', async () => {
      const workspace = freshWorkspace();
      const key = randomUUID();
      const idempotency = claim(key);
      const refused = request(workspace, [toStream(freshStream(), 7)], { idempotency });
      expect(await outcomeOf(log.agent.append(refused))).toBe('LOG.VERSION_CONFLICT');
      for (const [where, scope] of [
        [workspace, 'a/turn.submit'],
        [workspace, 'b/turn.submit'],
        [freshWorkspace(), 'a/turn.submit'],
      ] as const) {
        const one = request(where, [toStream(freshStream(), 0)], { idempotency: { ...idempotency, scope } });
        expect(await outcomeOf(log.agent.append(one))).toBe('appended');
      }
    });

    it('rejects a claim under the scope of another service, and keeps its answer secret', async () => {
      const workspace = freshWorkspace();
      const idempotency = claim(randomUUID());
      const sent = request(workspace, [toStream(freshStream(), 0)], { idempotency });
      expect(await outcomeOf(log.agent.append(sent))).toBe('appended');
      const foreign = request(workspace, [toStream(freshStream('budget'), 0)], { idempotency });
      await expect(log.metering.append(foreign)).rejects.toMatchObject({
        code: 'LOG.NOT_OWNER',
        data: { scope: idempotency.scope },
      });
    });

    it('reports the identical request as a duplicate, so that its sender recognises it', async () => {
      const workspace = freshWorkspace();
      const same = request(workspace, [toStream(freshStream(), 0)], { idempotency: claim(randomUUID()) });
      expect(await outcomeOf(log.agent.append(same))).toBe('appended');
      expect(await outcomeOf(log.agent.append(same))).toBe('duplicate');
    });
  });

  describe('guards', () => {
    it('appends while its guards are at their versions, and leaves their streams as they are', async () => {
      const workspace = freshWorkspace();
      const [guarded, unborn, own] = [freshStream(), freshStream(), freshStream()];
      await log.agent.append(request(workspace, [toStream(guarded, 0, 2)]));
      const guards = [
        { streamId: guarded, version: 2 },
        { streamId: unborn, version: 0 },
      ];
      const result = await log.agent.append({ ...request(workspace, [toStream(own, 0, 2)]), guards });
      expect(result).toMatchObject({ outcome: 'appended', versions: [2] });
      const streams = [guarded, unborn, own];
      const versions = await Promise.all(streams.map((id) => log.agent.streamVersion(workspace, id)));
      expect(versions).toEqual([2, 0, 2]);
      expect(verifyChain(await log.agent.readStream(workspace, guarded))).toMatchObject({ isIntact: true });
    });

    it('rejects an append whose guard has another version, and writes nothing', async () => {
      const workspace = freshWorkspace();
      const [guarded, own] = [freshStream(), freshStream()];
      await log.agent.append(request(workspace, [toStream(guarded, 0, 2)]));
      for (const version of [0, 1, 3]) {
        const guards = [{ streamId: guarded, version }];
        expect(await outcomeOf(log.agent.append({ ...request(workspace, [toStream(own, 0)]), guards }))).toBe(
          'LOG.VERSION_CONFLICT',
        );
      }
      expect(await log.agent.streamVersion(workspace, own)).toBe(0);
      const twice = { ...request(workspace, [toStream(own, 0)]), guards: [{ streamId: own, version: 0 }] };
      expect(await outcomeOf(log.agent.append(twice))).toBe('LOG.INVALID');
    });

    it('rejects a guard of a category of another service', async () => {
      const guards = [{ streamId: freshStream('budget'), version: 0 }];
      const guarded = { ...request(freshWorkspace(), [toStream(freshStream(), 0)]), guards };
      expect(await outcomeOf(log.agent.append(guarded))).toBe('LOG.NOT_OWNER');
    });
  });

  describe('fences', () => {
    const acquire = async (
      workspace: string,
      name: string,
      owner: string,
      ttlMs: number,
    ): Promise<number> => {
      const attempt = await log.leases.acquire(workspace, name, owner, ttlMs);
      return attempt.acquired ? attempt.lease.epoch : 0;
    };

    it('accepts appends of the holder and rejects those of a former holder', async () => {
      const workspace = freshWorkspace();
      const streamId = freshStream();
      const first = await acquire(workspace, 'session/1', 'agent-1', 1);
      const fence = { lease: 'session/1', epoch: first };
      await log.agent.append(request(workspace, [toStream(streamId, 0)], { fence }));
      await until(async () => (await acquire(workspace, 'session/1', 'agent-2', 60_000)) > 0);
      await expect(
        log.agent.append(request(workspace, [toStream(streamId, 1)], { fence })),
      ).rejects.toMatchObject({
        kind: 'conflict',
        code: 'LOG.FENCED',
        data: { lease: 'session/1', epoch: first, actual: first + 1 },
      });
      const current = { lease: 'session/1', epoch: first + 1 };
      expect(
        await outcomeOf(log.agent.append(request(workspace, [toStream(streamId, 1)], { fence: current }))),
      ).toBe('appended');
    });

    it('acquires the lease of a new name in the append, and leaves one that is held to its holder', async () => {
      const workspace = freshWorkspace();
      const streamId = freshStream();
      const fenceOf = (owner: string) => ({
        ...{ lease: 'session/5', epoch: 1 },
        acquire: { owner, ttlMs: 60_000 },
      });
      const append = (owner: string, version: number, epoch = 1) =>
        log.agent.append(
          request(workspace, [toStream(streamId, version)], { fence: { ...fenceOf(owner), epoch } }),
        );
      await append('agent-1', 0);
      expect(await log.leases.acquire(workspace, 'session/5', 'agent-2', 1)).toEqual({
        ...{ acquired: false, owner: 'agent-1', epoch: 1 },
      });
      expect(await outcomeOf(append('agent-1', 1))).toBe('appended');
      await log.leases.release({ workspace, name: 'session/5', owner: 'agent-1', epoch: 1 });
      expect(await outcomeOf(append('agent-2', 2))).toBe('LOG.FENCED');
    });

    it('rejects a fence whose lease was released or never acquired', async () => {
      const workspace = freshWorkspace();
      const epoch = await acquire(workspace, 'session/2', 'agent-1', 60_000);
      await log.leases.release({ workspace, name: 'session/2', owner: 'agent-1', epoch });
      for (const lease of ['session/2', 'session/3']) {
        const fence = { lease, epoch };
        expect(
          await outcomeOf(log.agent.append(request(workspace, [toStream(freshStream(), 0)], { fence }))),
        ).toBe('LOG.FENCED');
      }
      expect(await eventsOf(log.agent, workspace)).toEqual([]);
    });

    it('reports a duplicate to a fenced driver whose event is stored', async () => {
      const workspace = freshWorkspace();
      const epoch = await acquire(workspace, 'session/4', 'agent-1', 60_000);
      const sent = request(workspace, [toStream(freshStream(), 0)], { fence: { lease: 'session/4', epoch } });
      await log.agent.append(sent);
      await log.leases.release({ workspace, name: 'session/4', owner: 'agent-1', epoch });
      expect(await outcomeOf(log.agent.append(sent))).toBe('duplicate');
    });
  });
};
