import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { AFTER_LOSS, ATTEMPT_SPAN } from '@antiphon/contracts/agent';
import type { Frame } from '@antiphon/contracts/agent';
import { createTestDatabase, startNatsServer, until } from '@antiphon/testing';
import type { TestNatsServer } from '@antiphon/testing';
import { assembleFrames, connectClient, textOf } from '@antiphon/testing/client';
import type { FrameStream, SocketClient, StreamedFrame } from '@antiphon/testing/client';
import { createResumeWorld } from '../testing/resume-world.js';
import type { ResumeGateway, ResumeWorld } from '../testing/resume-world.js';
import { createSessionScript } from '../testing/session-script.js';
import type { SessionScript } from '../testing/session-script.js';

let server: TestNatsServer;
let world: ResumeWorld;
let gateway: ResumeGateway;
const clients: SocketClient[] = [];

beforeAll(async () => {
  server = await startNatsServer();
  world = await createResumeWorld(await createTestDatabase(), server.url);
  gateway = await world.startGateway();
});
afterEach(() => Promise.all(clients.splice(0).map((client) => client.close())));
afterAll(async () => {
  await world?.close();
  await server?.remove();
});

const resume = async (sessionId: string, after: number, at = gateway): Promise<FrameStream> => {
  const client = await connectClient(at.wsUrl);
  clients.push(client);
  return client.stream('session.resume', { sessionId, after });
};
const shown = (frames: readonly StreamedFrame[]) =>
  frames.map(({ event, data, offset }) => ({ event, data, offset }));
const offsetOf = (frames: readonly Frame[], data: string): number =>
  frames.find((frame) => frame.data === data)?.offset ?? 0;

/** Resumes a session. Resolves once the frame with this offset has arrived. */
const resumedTo = async (script: SessionScript, after: number, last: number, at = gateway) => {
  const stream = await resume(script.sessionId, after, at);
  await stream.waitFor(`offset ${last}`, ({ offset }) => offset >= last);
  return shown(stream.frames);
};
const committed = async (write: (script: SessionScript) => void): Promise<SessionScript> => {
  const script = createSessionScript();
  write(script);
  await world.commit(script.sessionId, script.events);
  return script;
};
const lastOf = (script: SessionScript): number => script.frames().at(-1)?.offset ?? 0;

describe('session.resume of finished turns', () => {
  it('streams the same remaining frames from every offset, at a gateway that never saw the session', async () => {
    const script = await committed((add) => {
      add.turn('Hello ', 'there', '!');
      add.request();
      add.begin();
      add.asks('echo');
      add.begin();
      add.answer('It ', 'says so.');
      add.complete();
    });
    await world.purgeLive();
    const all = shown(script.frames());
    for (const after of [0, 1, ...all.slice(0, -1).map(({ offset }) => offset)])
      expect(await resumedTo(script, after, lastOf(script), gateway)).toEqual(
        all.filter(({ offset }) => offset > after),
      );
    const stranger = await world.startGateway();
    const middle = offsetOf(script.frames(), 'there');
    expect(await resumedTo(script, middle, lastOf(script), stranger)).toEqual(
      all.filter(({ offset }) => offset > middle),
    );
  });

  it('shows void text before the new one to a client that ignores `restart`, and the answer alone to others', async () => {
    const script = await committed((add) => {
      add.request();
      add.begin();
      add.abort('driver_lost', 'The answer ', 'is 4');
      add.begin();
      add.answer('The answer ', 'is 42.');
      add.complete();
    });
    const frames = await resumedTo(script, 0, lastOf(script));
    // A client from before `restart` joins every text.
    const joined = frames.filter(({ event }) => event === 'text').map(({ data }) => data);
    expect(joined.join('')).toBe('The answer is 4The answer is 42.');
    expect(textOf(frames as StreamedFrame[])).toBe('The answer is 42.');
    // Its turn still ends once, and the record of the session never has the void text.
    expect(frames.filter(({ event }) => event === 'done')).toHaveLength(1);
  });

  it('streams the text of an attempt that its provider aborted, and the restart that voids it', async () => {
    const script = await committed((add) => {
      add.request();
      add.begin();
      add.abort('provider_error', 'Hel', 'lo wor');
      add.begin();
      add.answer('Hello world');
      add.complete();
    });
    const frames = await resumedTo(script, 0, lastOf(script));
    expect(frames.map(({ event }) => event)).toEqual([
      'accepted',
      'text',
      'text',
      'restart',
      'text',
      'usage',
      'done',
    ]);
    const middle = offsetOf(script.frames(), 'Hel');
    const rest = await resumedTo(script, middle, lastOf(script));
    expect(assembleFrames([...frames.slice(0, 2), ...rest])).toBe(assembleFrames(frames));
  });

  it('voids the text of a crashed attempt that only the client has, with or without a next attempt', async () => {
    for (const ends of ['answers', 'is cancelled'] as const) {
      const script = await committed((add) => {
        add.request();
        add.begin();
        add.abort('driver_lost');
        if (ends === 'answers') {
          add.begin();
          add.answer('whole');
          add.complete();
        } else add.cancel();
      });
      const whole = await resumedTo(script, 0, lastOf(script));
      const lost: StreamedFrame[] = [1, 2, 3].map((n) => {
        return { event: 'text', data: `lost ${n}`, offset: ATTEMPT_SPAN + n };
      });
      const rest = await resumedTo(script, ATTEMPT_SPAN + 3, lastOf(script));
      expect(rest[0]).toMatchObject({ event: 'restart', data: { offset: ATTEMPT_SPAN + 1 } });
      const accepted = whole.slice(0, 1);
      expect(assembleFrames([...accepted, ...lost, ...rest])).toBe(assembleFrames(whole));
      if (ends === 'is cancelled')
        expect(rest.map(({ offset }) => offset - ATTEMPT_SPAN)).toEqual([AFTER_LOSS, AFTER_LOSS + 1]);
    }
  });

  it('streams the session before `/new`, and nothing of the one after it', async () => {
    const before = await committed((add) => add.turn('old'));
    const after = await committed((add) => add.turn('new'));
    expect(await resumedTo(before, 0, lastOf(before))).toEqual(shown(before.frames()));
    expect(await resumedTo(after, 0, lastOf(after))).toEqual(shown(after.frames()));
  });
});

describe('session.resume of one turn', () => {
  it('streams only that turn, ends with its done, and frees the id', async () => {
    const script = await committed((add) => {
      add.turn('first');
      add.turn('second', ' answer');
      add.turn('third');
    });
    const second = script.frames().filter(({ turnId }) => turnId === script.frames()[4]?.turnId);
    const turnId = second[0]?.turnId;
    const client = await connectClient(gateway.wsUrl);
    clients.push(client);
    for (const after of [0, second[1]?.offset ?? 0]) {
      const stream = client.stream('session.resume', { sessionId: script.sessionId, after, turnId });
      await stream.done();
      // This answer comes after every frame that the gateway sent before.
      expect(await client.call('ping')).toBe('pong');
      expect(shown(stream.frames)).toEqual(shown(second).filter(({ offset }) => offset > after));
    }
  });
});

describe('session.resume of archived turns', () => {
  it('is refused with LOG.ARCHIVED, also by a gateway that has read the session before', async () => {
    const script = await committed((add) => add.turn('old'));
    await resumedTo(script, 0, lastOf(script));
    // The newest event of the log stays.
    await committed((add) => add.turn('newest'));
    await world.archive();
    for (const at of [gateway, await world.startGateway()]) {
      const stream = await resume(script.sessionId, 0, at);
      await expect(stream.waitFor('a frame', () => true)).rejects.toMatchObject({
        rpc: { code: -32004, data: { code: 'LOG.ARCHIVED' } },
      });
    }
  });
});

describe('session.resume of a running turn', () => {
  it('streams text of the running attempt from LIVE, then live frames', async () => {
    const script = await committed((add) => {
      add.request();
      add.begin();
    });
    const whole = createRest(script, ['one ', 'two ', 'three ', 'four']);
    await world.send(script.sessionId, whole.texts.slice(0, 2));
    const stream = await resume(script.sessionId, offsetOf(whole.all, 'one '));
    await stream.waitFor('two', ({ data }) => data === 'two ');
    await world.send(script.sessionId, whole.texts.slice(2));
    await world.commit(script.sessionId, whole.events);
    await world.send(script.sessionId, whole.ends);
    expect(shown(await stream.done())).toEqual(
      shown(whole.all).filter(({ offset }) => offset > offsetOf(whole.all, 'one ')),
    );
  });

  it('waits for the attempt to be committed if LIVE no longer has its text', async () => {
    const script = await committed((add) => {
      add.request();
      add.begin();
    });
    const whole = createRest(script, ['one ', 'two ', 'three ', 'four']);
    await world.send(script.sessionId, whole.texts.slice(0, 2));
    await world.purgeLive();
    const stream = await resume(script.sessionId, 0);
    await stream.waitFor('accepted', ({ event }) => event === 'accepted');
    await world.send(script.sessionId, whole.texts.slice(2));
    await world.commit(script.sessionId, whole.events);
    // No frame and no event is sent, as after a crash of the driver right after its commit while
    // the relay is down.
    expect(shown(await stream.done())).toEqual(shown(whole.all));
  });

  it('drops frames of a driver that lost its session', async () => {
    const script = await committed((add) => {
      add.request();
      add.begin();
      add.abort('driver_lost');
      add.begin();
    });
    const stream = await resume(script.sessionId, 0);
    const restart = await stream.waitFor('restart', ({ event }) => event === 'restart');
    const whole = createRest(script, ['new ', 'words']);
    await world.send(script.sessionId, whole.texts.slice(0, 1), 2);
    const [first] = script.frames();
    const stale = { ...(whole.texts[0] as Frame), data: 'stale', prev: first?.offset ?? 0 };
    await world.send(script.sessionId, [
      { ...stale, offset: ATTEMPT_SPAN + 1 },
      { ...stale, offset: restart.offset + 2, prev: restart.offset + 1 },
    ]);
    await world.send(script.sessionId, whole.texts.slice(1), 2);
    await world.commit(script.sessionId, whole.events);
    await world.send(script.sessionId, whole.ends, 2);
    expect(shown(await stream.done())).toEqual(shown(whole.all));
  });
});

describe('session.resume of an invalid position', () => {
  it('refuses an offset beyond the last attempt, with the last offset', async () => {
    const script = await committed((add) => add.turn('short'));
    const stream = await resume(script.sessionId, 7 * ATTEMPT_SPAN);
    await expect(stream.done()).rejects.toMatchObject({
      rpc: {
        code: -32009,
        message: expect.stringContaining(`it ends at ${lastOf(script)}`),
        data: { code: 'GATEWAY.OFFSET_AHEAD', lastOffset: lastOf(script) },
      },
    });
  });

  it('accepts any offset within the last attempt, because its driver may have been lost', async () => {
    const script = await committed((add) => add.turn('short'));
    const stream = await resume(script.sessionId, ATTEMPT_SPAN + 1_000);
    await world.commit(script.sessionId, script.turn('next'));
    const next = script.frames().filter(({ offset }) => offset >= 2 * ATTEMPT_SPAN);
    await world.send(script.sessionId, next);
    await stream.waitFor('done', ({ event }) => event === 'done');
    expect(shown(stream.frames)).toEqual(
      shown(script.frames()).filter(({ offset }) => offset > 2 * ATTEMPT_SPAN - 1),
    );
  });

  it('refuses an unknown session', async () => {
    const stream = await resume(randomUUID(), 0);
    await expect(stream.done()).rejects.toMatchObject({
      rpc: { code: -32004, data: { code: 'GATEWAY.SESSION_NOT_FOUND' } },
    });
  });
});

describe('session.resume in a long session', () => {
  let script: SessionScript;
  beforeAll(async () => {
    script = await committed((add) => {
      for (let n = 0; n < 1_000; n++) {
        if (n % 10 === 3) {
          add.request();
          add.cancel();
        }
        add.turn(`${n}`);
      }
    });
  });

  it('needs a few short reads for any offset near the end', async () => {
    const all = shown(script.frames());
    for (const back of [1, 10, 400]) {
      const stranger = await world.startGateway();
      const after = all.at(-1 - back)?.offset ?? 0;
      expect(await resumedTo(script, after, lastOf(script), stranger)).toEqual(all.slice(-back));
      expect(stranger.reads()).toBeLessThan(60);
    }
  });

  it('streams the same frames from the middle', async () => {
    const all = shown(script.frames());
    const stranger = await world.startGateway();
    for (const at of [0.1, 0.5]) {
      const index = Math.floor(all.length * at);
      const after = all[index]?.offset ?? 0;
      const rest = await resumedTo(script, after, lastOf(script), stranger);
      expect(assembleFrames(rest) === assembleFrames(all.slice(index + 1))).toBe(true);
    }
  });

  it('reads no faster than its client, so that more than a socket may hold arrives', async () => {
    const big = await committed((add) => {
      for (let n = 0; n < 60; n++) add.turn(`${n} `.repeat(20_000));
    });
    const narrow = await world.startGateway({ socketBytes: 512 * 1024, totalBytes: 1024 * 1024 });
    const stream = await resume(big.sessionId, 0, narrow);
    await stream.waitFor('the end', ({ offset }) => offset === lastOf(big));
    expect(shown(stream.frames)).toEqual(shown(big.frames()));
    await until(() => narrow.heldBytes() === 0);
  });
});

// Last, because `LIVE` is a memory stream and is lost with its server.
describe('session.resume during a NATS outage', () => {
  it('streams the end of a turn that was committed during the outage, once NATS is back', async () => {
    const script = await committed((add) => add.turn('before'));
    const stream = await resume(script.sessionId, lastOf(script));
    const next = [...script.turn('later')];
    await server.kill();
    await world.commit(script.sessionId, next);
    await server.start();
    const done = await stream.waitFor('done', ({ event }) => event === 'done');
    expect(done.offset).toBe(lastOf(script));
  });
});

/** Returns the frames that follow when an attempt returns these pieces and the turn ends. */
function createRest(script: SessionScript, pieces: readonly string[]) {
  const known = script.frames().at(-1)?.offset ?? 0;
  const events = [...script.answer(...pieces), ...script.complete()];
  const all = script.frames();
  const rest = all.filter(({ offset }) => offset > known);
  const texts = rest.filter(({ event }) => event === 'text');
  return { events, all, texts, ends: rest.filter(({ event }) => event !== 'text') };
}
