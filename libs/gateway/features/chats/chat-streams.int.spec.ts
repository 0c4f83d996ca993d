import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Frame, SessionEvent } from '@antiphon/contracts/agent';
import { createTestDatabase, startNatsServer } from '@antiphon/testing';
import type { TestNatsServer } from '@antiphon/testing';
import { openPipe, readPipe, readWithDrops, type ReadEvent } from '../testing/chat-drops.js';
import { createResumeWorld, type ResumeGateway, type ResumeWorld } from '../testing/resume-world.js';
import { createSessionScript, type SessionScript } from '../testing/session-script.js';

let server: TestNatsServer;
let world: ResumeWorld;
let gateways: ResumeGateway[];

beforeAll(async () => {
  server = await startNatsServer();
  world = await createResumeWorld(await createTestDatabase(), server.url);
  gateways = [await world.startGateway(), await world.startGateway(), await world.startGateway()];
});
afterAll(async () => {
  await world?.close();
  await server?.remove();
});

const first = (): ResumeGateway => gateways[0] as ResumeGateway;
const lastOf = (script: SessionScript): Frame => script.frames().at(-1) as Frame;
/** Returns the test for the last event of a session, as its script is now. */
const endOf = (script: SessionScript): ((event: ReadEvent) => boolean) => {
  const { offset } = lastOf(script);
  return ({ id, event }) => event !== 'ready' && id?.endsWith(`.${offset}`) === true;
};
const offsetsOf = (events: readonly ReadEvent[]): number[] =>
  events.flatMap(({ id, event }) => (id && event !== 'ready' ? [Number(id.split('.').at(-1))] : []));
const committed = async (turns: number): Promise<SessionScript> => {
  const script = createSessionScript();
  for (let n = 0; n < turns; n++) script.turn('Hello ', `${n}`, '!');
  await world.commit(script.sessionId, script.events);
  return script;
};
const readTo = async (script: SessionScript, lastEventId?: string, from?: 'start' | 'end') => {
  const pipe = await openPipe(first(), script.sessionId, lastEventId, from);
  return readPipe(pipe, endOf(script));
};
const codeOf = (script: SessionScript, id: string, at = first()): Promise<unknown> =>
  openPipe(at, script.sessionId, id).then(
    () => 'opened',
    (error: { code: string }) => error.code,
  );

describe('the events of a chat', () => {
  it('come once and in order through drops over three gateways, while turns continue', async () => {
    const script = createSessionScript();
    await world.commit(script.sessionId, script.events);
    let seed = 7;
    const random = (): number => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;
    const parts: SessionEvent[][] = Array.from({ length: 40 }, (_, n) => script.turn('a', `${n}`, 'c'));
    const write = async (): Promise<void> => {
      for (const part of parts) await world.commit(script.sessionId, part);
    };
    const [result] = await Promise.all([
      readWithDrops(gateways, script.sessionId, lastOf(script), random),
      write(),
    ]);
    expect(result.drops).toBeGreaterThan(40);
    expect(offsetsOf(result.events)).toEqual(script.frames().map(({ offset }) => offset));
    const text = (events: readonly { data: unknown }[], field: (data: never) => unknown): string =>
      events.map(({ data }) => field(data as never) ?? '').join('');
    expect(text(result.events, ({ text: piece }: { text?: string }) => piece)).toBe(
      text(
        script.frames().filter(({ event }) => event === 'text'),
        (piece: string) => piece,
      ),
    );
  });

  it('catch up with 3,000 events within seconds', async () => {
    const script = await committed(510);
    expect(script.frames().length).toBeGreaterThan(2_500);
    const start = performance.now();
    const pipe = await openPipe(first(), script.sessionId);
    const events = await readPipe(pipe, endOf(script));
    // The figure of the criterion is measured in the nightly run, on an idle machine.
    expect(performance.now() - start).toBeLessThan(5_000);
    expect(offsetsOf(events)).toEqual(script.frames().map(({ offset }) => offset));
  });

  // @shows chats-C4
  it('begin at the end on request, and with the answer that is being given', async () => {
    const script = await committed(3);
    const pipe = await openPipe(first(), script.sessionId, undefined, 'end');
    const [request, begin] = [script.request(), script.begin()];
    await world.commit(script.sessionId, [...request, ...begin]);
    const [answer, end] = [script.answer('late'), script.complete()];
    await world.commit(script.sessionId, [...answer, ...end]);
    const { turnId } = lastOf(script);
    await world.send(
      script.sessionId,
      script.frames().filter((frame) => frame.turnId === turnId),
    );
    const events = await readPipe(pipe, ({ event }) => event === 'done');
    expect(events.map(({ event }) => event)).toEqual(['ready', 'accepted', 'text', 'usage', 'done']);
  });

  // @shows chats-C4
  it('have one error and one done of a turn that failed: live, and after each id on each gateway', async () => {
    const script = createSessionScript();
    await world.commit(script.sessionId, [...script.events, ...script.request(), ...script.begin()]);
    const live = await openPipe(first(), script.sessionId, undefined, 'end');
    await world.commit(script.sessionId, [
      ...script.abort('provider_error', 'half of an ', 'answer'),
      ...script.fail('PROVIDER.FAILED'),
    ]);
    await world.commit(script.sessionId, script.turn('next'));
    // The frames also come live, and again from a driver that sends them a second time.
    for (const _ of [1, 2]) await world.send(script.sessionId, script.frames());
    const isLast = endOf(script);
    const ends = (events: readonly ReadEvent[]) =>
      events.flatMap(({ event, data }) =>
        event === 'error' || event === 'done' ? [`${event} ${String(data['code'] ?? data['status'])}`] : [],
      );
    const all = ['error PROVIDER.FAILED', 'done failed', 'done completed'];
    expect(ends(await readPipe(live, isLast))).toEqual(all);
    const events = await readTo(script);
    expect(ends(events)).toEqual(all);
    for (const [index, { id }] of events.entries()) {
      if (index === events.length - 1) break;
      const gateway = gateways[index % gateways.length] ?? first();
      const rest = await readPipe(await openPipe(gateway, script.sessionId, id), isLast);
      expect([id, ends(rest)]).toEqual([id, ends(events.slice(index + 1))]);
    }
  });

  // @shows chats-C4
  it('send an open approval again on each attach, and none that is decided', async () => {
    const script = createSessionScript();
    script.request();
    script.begin();
    script.asks('echo', 'echo');
    const calls = script.events.findLast(({ type }) => type === 'ModelCallCompleted');
    const { turnId, toolCalls } = calls?.data as unknown as {
      turnId: string;
      toolCalls: { callId: string }[];
    };
    const at = '2026-11-22T10:00:00.000Z';
    const approvals = toolCalls.map(({ callId }) => ({ turnId, callId, approvalId: callId }));
    const request = (ids: object): SessionEvent =>
      ({
        type: 'ApprovalRequested',
        schemaVersion: 1,
        data: {
          ...{
            ...ids,
            name: 'echo',
            input: {},
            moduleDigest: '',
            grants: [],
            digest: 'd',
            answerBy: 'member',
          },
          ...{ requestedAt: at, expiresAt: at, escalateAt: null, escalateTo: null },
        },
      }) as unknown as SessionEvent;
    const granted = {
      type: 'ApprovalGranted',
      schemaVersion: 1,
      data: { ...approvals[0], digest: 'd', answeredBy: 'ada', role: 'member', reason: '', answeredAt: at },
    } as unknown as SessionEvent;
    await world.commit(script.sessionId, [...script.events, ...approvals.map(request), granted]);
    const all = await readPipe(
      await openPipe(first(), script.sessionId),
      ({ event }) => event === 'approval_update',
    );
    const lastId = all.at(-1)?.id;
    for (const gateway of gateways) {
      const again = await readPipe(
        await openPipe(gateway, script.sessionId, lastId),
        ({ event }) => event === 'approval',
      );
      expect(again.map(({ event, id }) => [event, id === undefined])).toEqual([
        ['ready', false],
        ['approval', true],
      ]);
      expect(again[1]?.data).toMatchObject({ approvalId: approvals[1]?.approvalId, again: true });
    }
  });

  it('resume after `ready` alone, and refuse ids that are malformed, foreign or ahead', async () => {
    const [script, other] = [await committed(2), await committed(1)];
    const ready = (await readPipe(await openPipe(first(), script.sessionId), () => true))[0]?.id ?? '';
    expect(offsetsOf(await readTo(script, ready))).toEqual(script.frames().map(({ offset }) => offset));
    const foreign = (await readTo(other)).at(-1)?.id ?? '';
    expect(await codeOf(script, 'x')).toBe('CHAT.CURSOR_MALFORMED');
    expect(await codeOf(script, foreign)).toBe('CHAT.CURSOR_FOREIGN');
    expect(await codeOf(script, ready.replace(/\d+$/, '999999999'))).toBe('GATEWAY.OFFSET_AHEAD');
    expect(await codeOf(script, ready.replace(/^\d+/, '9'))).toBe('GATEWAY.EPOCH_CHANGED');
  });

  // @shows chats-C5
  it('lose nothing for a reader that reads late, cut or not, while another one gets every event', async () => {
    const script = createSessionScript();
    await world.commit(script.sessionId, script.events);
    const [deaf, other] = [
      await openPipe(first(), script.sessionId),
      await openPipe(first(), script.sessionId),
    ];
    const parts = Array.from({ length: 20 }, () =>
      script.turn(...Array.from({ length: 10 }, () => 'x'.repeat(8_000))),
    );
    const reading = readPipe(other, endOf(script));
    for (const part of parts) {
      await world.commit(script.sessionId, part);
      const frames = script
        .frames()
        .filter(({ turnId }) => turnId === (part[0]?.data as { turnId: string }).turnId);
      await world.send(script.sessionId, frames);
    }
    expect(offsetsOf(await reading)).toEqual(script.frames().map(({ offset }) => offset));
    expect(deaf.readableLength).toBeLessThan(1_300_000);
    // A reader of live events is cut (chat-pipe.unit.spec.ts). One of past events is not.
    const isLast = endOf(script);
    const got = await readPipe(deaf, (event) => event.event === 'behind' || isLast(event));
    const lastId = got.findLast(({ id }) => id !== undefined)?.id;
    const behind = got.find(({ event }) => event === 'behind');
    if (behind) expect(behind.data['resume']).toBe(lastId);
    const rest = behind ? await readTo(script, lastId) : [];
    expect([...offsetsOf(got), ...offsetsOf(rest)]).toEqual(script.frames().map(({ offset }) => offset));
  });

  // @shows chats-C3
  it('of an archived session are refused as archived', async () => {
    const script = await committed(1);
    const id = (await readTo(script)).at(-1)?.id ?? '';
    // The newest event of the log stays.
    await committed(1);
    await world.archive();
    expect(await codeOf(script, id, await world.startGateway())).toBe('LOG.ARCHIVED');
  });
});
