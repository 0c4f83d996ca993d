import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { checkFigure, measureContention, percentile, report } from '@antiphon/testing/load';
import type { TestStack } from '@antiphon/testing/stack';
import { letTimePass } from '@antiphon/testing/waits';
import { ChatStream, type ChatEvent } from './chat-stream.js';
import { scriptedConfig, startStackWith, waitForValue } from './stack-under-test.js';

jest.setTimeout(1_800_000);

const DROPS = Number(process.env['ANTIPHON_CHAT_DROPS'] ?? 500);
const ACKS = Number(process.env['ANTIPHON_CHAT_ACKS'] ?? 500);
/** Messages before the measurement: services that run for days have compiled what these call. */
const WARM_UP = 300;
const COMMANDS = Number(process.env['ANTIPHON_CHAT_COMMANDS'] ?? 10_000);
/** Chats that share the commands, and commands that are sent at once. */
const CHATS = Math.min(100, Math.ceil(COMMANDS / 10));
const LANES = 24;
/** Number of commands between two kills, of a gateway and of the agent service in turn. */
const COMMANDS_PER_KILL = Math.min(1_000, Math.floor(COMMANDS / 4));
const GATEWAYS = 3;
/** Maximum p50 of an acknowledgement, in requests that the gateway answers alone. */
const ACK_REQUESTS = 12;
/** Promised p50 of an acknowledgement on a fast machine that does nothing else. */
const ACK_P50_MS = 10;
/** Other programs slow the machine by this factor at most: above it the figures show nothing. */
const MAX_CONTENTION = 3;
/** Number of events from which the time of a catch-up is one of events, not of the connection. */
const MIN_CATCH_UP = 2_000;
/** Number of drops between two kills of a gateway. */
const KILL_EVERY = Math.min(100, Math.floor(DROPS / 2));

const CONFIG = scriptedConfig(`
[[agents]]
id = "main"
provider = "scripted"
tools = ["calculator"]
`);

interface Reply {
  readonly turnId: string;
  readonly cursor: string;
  readonly joined: boolean;
}

let stack: TestStack;
beforeAll(async () => {
  stack = await startStackWith(CONFIG, { gateway: GATEWAYS });
}, 120_000);
afterAll(() => stack?.stop());

const urlOf = (path: string, gateway = 0): string =>
  `${stack.wsUrls()[gateway % GATEWAYS]?.replace('ws:', 'http:').replace(/\/ws$/, '') ?? ''}/api/v1/workspaces/default/chats${path}`;
const post = async <T>(path: string, body: object, gateway = 0, key?: string): Promise<T> => {
  const headers = {
    'content-type': 'application/json',
    ...(key === undefined ? {} : { 'idempotency-key': key }),
  };
  const response = await fetch(urlOf(path, gateway), { method: 'POST', headers, body: JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status} ${text}`);
  return JSON.parse(text) as T;
};
const create = async (name: string): Promise<string> => (await post<{ id: string }>('', { name })).id;
const idsOf = (events: readonly ChatEvent[]): string[] =>
  events.flatMap(({ id, event }) => (id !== undefined && event !== 'ready' ? [id] : []));
const textOf = (events: readonly ChatEvent[]): string =>
  events.map(({ event, data }) => (event === 'text' ? String(data['text']) : '')).join('');

/** Sends messages until `isOver`, each at the next gateway, through kills by its key. */
const sendUntil = async (chat: string, isOver: () => boolean): Promise<number> => {
  let sent = 0;
  for (; !isOver(); sent++) {
    const content =
      sent % 3 === 0 ? '/tool calculator {"expression":"6*7"}' : `message ${sent} of a long chat`;
    const key = `${chat}-${sent}`;
    for (let gateway = sent; ; gateway++) {
      const reply = await post<Reply>(`/${chat}`, { command: 'message', content }, gateway, key).catch(
        () => null,
      );
      if (reply === null) continue;
      const stream = await ChatStream.open(urlOf(`/${chat}/events`, gateway), {
        lastEventId: reply.cursor ?? undefined,
      }).catch(() => null);
      const isDone = await stream
        ?.waitFor('done', ({ event, data }) => event === 'done' && data['turnId'] === reply.turnId)
        .then(() => true)
        .catch(() => false);
      stream?.close();
      if (isDone) break;
    }
  }
  return sent;
};

const killOne = async (service: 'gateway' | 'agent', index: number): Promise<void> => {
  const own = () => {
    const all = stack.stackJson().services[service];
    return all[index % all.length];
  };
  const { pid, restarts = 0 } = own() ?? {};
  process.kill(pid as number, 'SIGKILL');
  await waitForValue(`the restart of ${service}`, async () =>
    (own()?.restarts ?? 0) > restarts && own()?.state === 'ready' ? true : undefined,
  );
};
const killGateway = (index: number): Promise<void> => killOne('gateway', index);

describe('the events of a chat', () => {
  // @shows chats-C3 chats-C4
  it(`come once and in order through ${DROPS} drops over ${GATEWAYS} gateways, of which some are killed`, async () => {
    const chat = await create('dropped');
    const events: ChatEvent[] = [];
    let [drops, lastEventId, refused]: [number, string | undefined, number] = [0, undefined, 0];
    let kills = Promise.resolve();
    let seed = 11;
    const random = (): number => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;
    const sending = sendUntil(chat, () => drops >= DROPS);
    let killed = 0;
    const readSome = async (count: number): Promise<boolean> => {
      const stream = await ChatStream.open(urlOf(`/${chat}/events`, drops + refused), { lastEventId }).catch(
        () => null,
      );
      if (!stream) return false;
      await stream.waitForCount(count);
      stream.close();
      // Events that arrived with the last one that was waited for are dropped with the connection.
      const got = stream.events.slice(0, count);
      lastEventId = got.findLast(({ id }) => id !== undefined)?.id ?? lastEventId;
      events.push(...got.filter(({ event, id }) => id !== undefined && event !== 'ready'));
      return true;
    };
    while (drops < DROPS) {
      // A refused connection, as of a killed gateway, is no drop: another gateway is next.
      if (!(await readSome(Math.floor(random() * 6)))) {
        refused++;
        continue;
      }
      if (drops % KILL_EVERY === KILL_EVERY - 1) kills = kills.then(() => killGateway(killed++));
      drops++;
    }
    const turns = await sending;
    await kills;
    const whole = await ChatStream.open(urlOf(`/${chat}/events`));
    await whole.done(turns);
    const rest = await ChatStream.open(urlOf(`/${chat}/events`, 1), { lastEventId });
    const left = turns - events.filter(({ event }) => event === 'done').length;
    if (left > 0) await rest.done(left);
    events.push(...rest.events.filter(({ event, id }) => id !== undefined && event !== 'ready'));
    const expected = idsOf(whole.events);
    const got = idsOf(events);
    report(
      `chat drops: ${drops} drops, ${refused} refused, ${killed} kills, ${turns} turns, ${expected.length} events`,
    );
    expect(killed).toBe(Math.floor(DROPS / KILL_EVERY));
    expect(expected.length).toBeGreaterThan(DROPS);
    expect(whole.events.filter(({ event }) => event === 'done')).toHaveLength(turns);
    checkFigure({ what: 'chat drops: events twice', value: got.length - new Set(got).size, atMost: 0 });
    const lost = expected.filter((id) => !got.includes(id)).length;
    checkFigure({ what: 'chat drops: events lost', value: lost, atMost: 0 });
    expect(got).toEqual(expected);
    expect(textOf(events)).toBe(textOf(whole.events));
    whole.close();
    rest.close();
  });

  // @shows chats-C3
  it('begin within 50 ms', async () => {
    const firsts: number[] = [];
    for (let n = 0; n < 50; n++) {
      const at = performance.now();
      const stream = await ChatStream.open(urlOf('/dropped/events', n));
      await stream.waitForCount(1);
      firsts.push(performance.now() - at);
      stream.close();
    }
    checkFigure({
      what: 'chat events: p50 of the first',
      value: percentile(firsts, 0.5),
      unit: 'ms',
      atMost: 50,
    });
  });
});

/** Returns the p50 of requests that the gateway answers without another service, ms. */
const requestTime = async (): Promise<number> => {
  const times: number[] = [];
  for (let n = 0; n < 50; n++) {
    const at = performance.now();
    await (await fetch(new URL('/health/live', urlOf('')))).text();
    times.push(performance.now() - at);
  }
  return percentile(times, 0.5);
};

/** Waits for the end of a turn on the pipe of its chat. */
const answered = async (chat: string, lastEventId: string, turnId: string): Promise<void> => {
  const stream = await ChatStream.open(urlOf(`/${chat}/events`), { lastEventId });
  await stream.waitFor('done', ({ event, data }) => event === 'done' && data['turnId'] === turnId);
  stream.close();
};

describe('a command to a chat', () => {
  // @shows D1 chats-C2
  it('is acknowledged within milliseconds, and a late reader catches up within a second', async () => {
    const warm = await create('warm');
    for (let n = 0; n < WARM_UP; n++) {
      const { cursor, turnId } = await post<Reply>(`/${warm}`, { command: 'message', content: `m ${n}` });
      await answered(warm, cursor, turnId);
    }
    const chat = await create('acks');
    const times: number[] = [];
    const before = await measureContention();
    const request = await requestTime();
    for (let n = 0; n < ACKS; n++) {
      const at = performance.now();
      const { cursor, turnId } = await post<Reply>(`/${chat}`, { command: 'message', content: `m ${n}` });
      times.push(performance.now() - at);
      await answered(chat, cursor, turnId);
    }
    const contention = Math.min(MAX_CONTENTION, Math.max(before, await measureContention()));
    const [p50, p99] = [0.5, 0.99].map((part) => percentile(times, part)) as [number, number];
    report(
      `chat acknowledgements: p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms of ${ACKS}, contention ${contention.toFixed(1)}, a request alone ${request.toFixed(1)} ms`,
    );
    const atMost = Math.max(ACK_P50_MS, ACK_REQUESTS * request) * contention;
    checkFigure({ what: 'chat: p50 of an acknowledgement', value: p50, unit: 'ms', atMost });
    const { messages } = (await (await fetch(urlOf('/acks?format=json'))).json()) as { messages: unknown[] };
    expect(messages).toHaveLength(2 * ACKS);
    const start = performance.now();
    const stream = await ChatStream.open(urlOf('/acks/events', 1));
    await stream.done(ACKS);
    const ms = performance.now() - start;
    stream.close();
    const { length } = stream.events;
    report(`chat events: catch-up of ${length} in ${ms.toFixed(0)} ms`);
    // Few events take the time of the connection, and have the whole second.
    const value = length >= MIN_CATCH_UP ? (ms * 10_000) / length : ms;
    checkFigure({ what: 'chat events: catch-up of 10,000', value, unit: 'ms', atMost: 1_000 * contention });
  });
});

/** Sends a command until it is accepted, with one key, at the next gateway after each failure. */
const sendOnce = async (chat: string, content: string, nth: number): Promise<number> => {
  for (let tries = 0; ; tries++) {
    const sent = post<Reply>(`/${chat}`, { command: 'message', content }, nth + tries, content);
    if (await sent.catch(() => null)) return tries;
    await letTimePass(50);
  }
};

interface Messages {
  readonly messages: readonly { readonly role: string; readonly text: string }[];
}

describe(`${COMMANDS} commands to ${CHATS} chats by HTTP`, () => {
  // @shows C16 chats-C2
  it('are each in their chat once, and answered once, through kills of gateways and of the agent service', async () => {
    const chats = await Promise.all(Array.from({ length: CHATS }, (_, nth) => create(`command-${nth}`)));
    let [next, tries, killed] = [0, 0, 0];
    let kills = Promise.resolve();
    const lane = async (): Promise<void> => {
      for (let nth = next++; nth < COMMANDS; nth = next++) {
        if (nth % COMMANDS_PER_KILL === COMMANDS_PER_KILL - 1)
          kills = kills.then(() => killOne(killed++ % 2 === 0 ? 'gateway' : 'agent', killed));
        tries += await sendOnce(chats[nth % CHATS] ?? '', `command ${nth}`, nth);
      }
    };
    await Promise.all(Array.from({ length: LANES }, lane));
    await kills;
    const counts = { lost: 0, twice: 0, unanswered: 0 };
    for (const [index, chat] of chats.entries()) {
      const sent = Array.from({ length: COMMANDS }, (_, nth) => nth).filter((nth) => nth % CHATS === index);
      const stream = await ChatStream.open(urlOf(`/${chat}/events`, index));
      const isAnswered = () => stream.events.filter(({ event }) => event === 'done').length >= sent.length;
      await stream.waitFor('the end of each turn', isAnswered, 300_000);
      stream.close();
      const { messages } = (await (await fetch(urlOf(`/${chat}?format=json`, index))).json()) as Messages;
      const asked = messages.filter(({ role }) => role === 'user').map(({ text }) => text);
      for (const nth of sent) if (!asked.includes(`command ${nth}`)) counts.lost++;
      counts.twice += asked.length - new Set(asked).size;
      counts.unanswered += Math.abs(messages.length - 2 * sent.length);
    }
    report(`chat commands: ${COMMANDS} over ${CHATS} chats, ${killed} kills, ${tries} repeated tries`);
    expect(killed).toBeGreaterThan(0);
    checkFigure({ what: 'chat commands: lost', value: counts.lost, atMost: 0 });
    checkFigure({ what: 'chat commands: twice', value: counts.twice, atMost: 0 });
    checkFigure({ what: 'chat commands: without one answer', value: counts.unanswered, atMost: 0 });
  });
});
