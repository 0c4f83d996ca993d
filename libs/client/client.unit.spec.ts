import { afterEach, describe, expect, it } from '@jest/globals';
import { ClientError } from './index.js';
import type { ClientOptions, TurnFrame, TurnStream } from './index.js';
import { ScriptedGateway, type ScriptedSocket } from './testing/scripted-gateway.js';
import { giveTimeToFail, letTimePass, until } from '@antiphon/testing/waits';

const SESSION = '0d6cfc0c-3b39-4b6a-8d1c-6d2cf1f4a111';
const TURN = '0d6cfc0c-3b39-4b6a-8d1c-6d2cf1f4a222';
const MESSAGE = { channel: 'web', account: 'main', peer: 'alice', content: 'hi' };

const opened: ScriptedGateway[] = [];
const script = (options: Partial<ClientOptions> = {}): ScriptedGateway => {
  const gateway = new ScriptedGateway(options);
  opened.push(gateway);
  return gateway;
};
afterEach(() => opened.splice(0).forEach(({ client }) => client.close()));

const accept = (socket: ScriptedSocket, id: number, offset = 10): void =>
  socket.frame(id, 'accepted', { sessionId: SESSION, turnId: TURN, agent: 'main' }, offset);
const end = (socket: ScriptedSocket, id: number, offset: number, status = 'completed'): void =>
  socket.frame(id, 'done', { turnId: TURN, status }, offset);
const readAll = async (turn: TurnStream): Promise<TurnFrame[]> => {
  const frames: TurnFrame[] = [];
  for await (const frame of turn) frames.push(frame);
  return frames;
};
const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'no error',
    (error: ClientError) => error.code,
  );

describe('a message', () => {
  it('is repeated with its key when the connection is lost before it is accepted', async () => {
    const gateway = script();
    const turn = gateway.client.chat(MESSAGE);
    const first = await gateway.accepted(0);
    first.socket.drop();
    const second = await gateway.accepted(1);
    expect(second.requests[0]).toMatchObject({ method: 'chat.send', params: MESSAGE });
    expect(second.requests[0]?.params).toEqual(first.requests[0]?.params);
    const id = second.requests[0]!.id;
    accept(second.socket, id);
    second.socket.frame(id, 'text', 'hello', 11);
    end(second.socket, id, 12);
    expect(await turn.text()).toBe('hello');
    expect(await turn.accepted).toEqual({ sessionId: SESSION, turnId: TURN, agent: 'main' });
  });

  it('resumes its turn at the next gateway after the last offset, and shows each frame once', async () => {
    const gateway = script();
    const turn = gateway.client.chat(MESSAGE);
    const first = await gateway.accepted(0);
    accept(first.socket, 1);
    first.socket.frame(1, 'text', 'one ', 11);
    first.socket.drop();
    const second = await gateway.accepted(1);
    expect(second.socket.url).toBe('ws://two/ws');
    expect(second.requests[0]).toMatchObject({
      method: 'session.resume',
      params: { sessionId: SESSION, turnId: TURN, after: 11 },
    });
    const { id } = second.requests[0]!;
    second.socket.frame(id, 'text', 'one ', 11);
    second.socket.frame(id, 'text', 'two', 12);
    end(second.socket, id, 13);
    const frames = await readAll(turn);
    expect(frames.map(({ event, offset }) => [event, offset])).toEqual([
      ['accepted', 10],
      ['text', 11],
      ['text', 12],
      ['done', 13],
    ]);
    expect(await turn.text()).toBe('one two');
  });

  it('has no text of an attempt that a restart voids', async () => {
    const gateway = script();
    const turn = gateway.client.send({ sessionId: SESSION, content: 'hi' });
    const { socket } = await gateway.accepted(0);
    accept(socket, 1);
    socket.frame(1, 'text', 'kept ', 11);
    socket.frame(1, 'text', 'void', 12);
    socket.frame(1, 'restart', { offset: 12 }, 20);
    socket.frame(1, 'text', 'again', 21);
    end(socket, 1, 22);
    expect(await turn.text()).toBe('kept again');
  });

  it('rejects with the gateway’s code, data and delay when it is refused', async () => {
    const gateway = script();
    const turn = gateway.client.chat(MESSAGE);
    const { socket } = await gateway.accepted(0);
    const data = { code: 'GATEWAY.RATE_LIMITED', retryAfterSeconds: 3 };
    socket.message({ id: 1, error: { code: -32_029, message: 'too fast', data } });
    const error = (await turn.text().catch((thrown: unknown) => thrown)) as ClientError;
    expect(error).toBeInstanceOf(ClientError);
    expect(error).toMatchObject({ code: 'GATEWAY.RATE_LIMITED', retryAfterMs: 3_000, rpc: -32_029 });
    expect(await codeOf(turn.accepted)).toBe('GATEWAY.RATE_LIMITED');
  });

  it('rejects its text with the code of the failure, after a done frame', async () => {
    const gateway = script();
    const turn = gateway.client.chat(MESSAGE);
    const { socket } = await gateway.accepted(0);
    accept(socket, 1);
    socket.frame(1, 'error', { code: 'BUDGET.EXCEEDED', message: 'no money' }, 11);
    end(socket, 1, 12, 'failed');
    expect(await codeOf(turn.text())).toBe('BUDGET.EXCEEDED');
  });

  it('over 1 MiB is refused before it is sent', async () => {
    const gateway = script();
    const turn = gateway.client.chat({ ...MESSAGE, content: 'ä'.repeat(600_000) });
    const { socket } = await gateway.accepted(0, 0);
    expect(await codeOf(turn.text())).toBe('CLIENT.TOO_LARGE');
    expect(socket.requests).toEqual([]);
  });

  it('calls back for each approval, and cancels by its turn', async () => {
    const gateway = script();
    const asked: string[] = [];
    const turn = gateway.client.chat(MESSAGE, { onApproval: ({ approvalId }) => asked.push(approvalId) });
    const { socket, requests } = await gateway.accepted(0);
    accept(socket, 1);
    socket.frame(1, 'approval', { approvalId: 'a1' }, 11);
    const cancelled = turn.cancel();
    await turn.accepted;
    await Promise.resolve();
    expect(asked).toEqual(['a1']);
    expect(requests[1]).toMatchObject({
      method: 'session.cancel',
      params: { sessionId: SESSION, turnId: TURN },
    });
    socket.message({ id: requests[1]?.id, result: { cancelled: true } });
    await cancelled;
  });
});

describe('a slow reader', () => {
  it('buffers up to the limit, then reads the rest from where the buffer ends', async () => {
    const gateway = script({ buffer: { items: 3, length: 1_000_000 } });
    const turn = gateway.client.chat(MESSAGE);
    const { socket, requests } = await gateway.accepted(0);
    accept(socket, 1);
    for (let n = 1; n <= 20; n++) socket.frame(1, 'text', `${n} `, 10 + n);
    end(socket, 1, 31);
    const read = turn.text();
    for (let request = 1; !requests[request - 1]?.params['isLast']; request++) {
      await until(() => requests.length > request);
      const { id, params } = requests[request]!;
      for (let offset = Number(params['after']) + 1; offset <= 30; offset++)
        socket.frame(id, 'text', `${offset - 10} `, offset);
      end(socket, id, 31);
      if (Number(params['after']) >= 28) break;
    }
    expect(await read).toBe(Array.from({ length: 20 }, (_, n) => `${n + 1} `).join(''));
  });
});

describe('a call', () => {
  it('is repeated if it only reads, and fails if it may have been done', async () => {
    const gateway = script();
    const reads = gateway.client.call('ping');
    const changes = gateway.client.call('agent.control', { agentId: 'a', action: 'pause' } as never);
    const first = await gateway.accepted(0, 2);
    first.socket.drop();
    expect(await codeOf(changes)).toBe('CLIENT.DISCONNECTED');
    const second = await gateway.accepted(1);
    expect(second.requests.map(({ method }) => method)).toEqual(['ping']);
    second.socket.message({ id: second.requests[0]?.id, result: 'pong' });
    expect(await reads).toBe('pong');
  });

  it('gets an idempotency key where its method has one', async () => {
    const gateway = script();
    void gateway.client.call('session.new', { sessionId: SESSION }).catch(() => undefined);
    const { requests } = await gateway.accepted(0);
    expect(requests[0]?.params['idempotencyKey']).toMatch(/^[0-9a-f]{32}$/);
  });

  it('never has more than 128 requests without an answer', async () => {
    const gateway = script();
    const calls = Array.from({ length: 200 }, () => gateway.client.call('ping'));
    const { socket, requests } = await gateway.accepted(0, 128);
    expect(requests).toHaveLength(128);
    for (let n = 0; n < 200; n++) socket.message({ id: requests[n]?.id, result: 'pong' });
    expect(await Promise.all(calls)).toHaveLength(200);
  });
});

describe('a subscription to events', () => {
  const log = (position: number) => ({
    event: 'log',
    data: { position, type: 'TurnCompleted' },
    cursor: `c${position}`,
  });

  it('continues after the last cursor and shows each event once', async () => {
    const gateway = script();
    const events = gateway.client.events({ filter: { type: 'TurnCompleted' } });
    const first = await gateway.accepted(0);
    expect(first.requests[0]?.params).toEqual({ filter: { type: 'TurnCompleted' } });
    first.socket.message({ id: 1, event: 'subscribed', data: {}, cursor: 'c0' });
    first.socket.message({ id: 1, ...log(1) });
    first.socket.drop();
    const second = await gateway.accepted(1);
    const { id, params } = second.requests[0]!;
    expect(params['from']).toBe('c1');
    second.socket.message({ id, ...log(1) });
    second.socket.message({ id, ...log(2) });
    expect((await events.next()).value).toMatchObject({ event: { position: 1 }, cursor: 'c1' });
    expect((await events.next()).value).toMatchObject({ event: { position: 2 }, cursor: 'c2' });
    await events.return();
    expect(second.requests.at(-1)).toMatchObject({
      method: 'events.unsubscribe',
      params: { subscription: id },
    });
  });
});

describe('a connection', () => {
  it('sends the token by a header, or by a frame where the runtime has no headers', async () => {
    const byHeader = script({ token: 'ak_1', sendTokenBy: 'header' });
    void byHeader.client.call('ping').catch(() => undefined);
    const { socket } = await byHeader.accepted(0);
    expect(socket.headers).toEqual({ authorization: 'Bearer ak_1' });
    const byFrame = script({ token: () => Promise.resolve('ak_2'), sendTokenBy: 'frame' });
    void byFrame.client.call('ping').catch(() => undefined);
    const { socket: bare, requests } = await byFrame.accepted(0, 2);
    expect(bare.headers).toEqual({});
    expect(requests[0]).toEqual({ id: 'connect', method: 'connect', params: { token: 'ak_2' } });
  });

  it('calls back each time it is accepted, and with each frame that no request asked for', async () => {
    const seen: string[] = [];
    const gateway = script({
      onConnect: () => seen.push('connected'),
      onNotification: ({ type }) => seen.push(String(type)),
    });
    void gateway.client.call('ping').catch(() => undefined);
    const { socket } = await gateway.accepted(0);
    socket.message({ type: 'gateway.degraded', engines: ['nats'] });
    socket.drop();
    await gateway.accepted(1);
    expect(seen).toEqual(['connected', 'gateway.degraded', 'connected']);
  });

  it('fails everything with the gateway’s reason when the token is refused, and does not try again', async () => {
    const gateway = script({ token: 'wrong', sendTokenBy: 'frame' });
    const turn = gateway.client.chat(MESSAGE);
    const socket = await gateway.socket(0);
    await Promise.resolve();
    socket.open();
    socket.message({ id: 'connect', error: { code: -32_001, message: 'the token is not valid', data: {} } });
    socket.drop(4401);
    expect(await codeOf(turn.text())).toBe('RPC.-32001');
    await giveTimeToFail(20);
    expect(gateway.sockets).toHaveLength(1);
  });

  it('tries every gateway once on connect(), then rejects', async () => {
    const gateway = script();
    const connecting = codeOf(gateway.client.connect());
    for (const index of [0, 1]) {
      const socket = await gateway.socket(index);
      await letTimePass(1);
      socket.drop();
    }
    expect(await connecting).toBe('CLIENT.UNREACHABLE');
    await giveTimeToFail(20);
    expect(gateway.sockets).toHaveLength(2);
  });

  it('gives up after its time without a gateway', async () => {
    const gateway = script({ giveUpAfterMs: 20, openWebSocket: undefined as never });
    const turn = codeOf(gateway.client.chat(MESSAGE).text());
    const dropping = setInterval(() => gateway.sockets.at(-1)?.drop(), 1);
    expect(await turn).toBe('CLIENT.UNREACHABLE');
    clearInterval(dropping);
    expect(gateway.sockets.length).toBeGreaterThan(2);
  });

  it('is replaced when it stays silent after a heartbeat', async () => {
    const gateway = script({ heartbeatMs: 5 });
    void gateway.client.call('ping').catch(() => undefined);
    const { socket } = await gateway.accepted(0);
    const next = await gateway.socket(1);
    expect(socket.requests.at(-1)).toMatchObject({ id: 'heartbeat', method: 'ping' });
    expect([socket.isClosed, next.url]).toEqual([true, 'ws://two/ws']);
  });

  it('leaves no timer after close(), and fails what is open', async () => {
    const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = timers();
    const gateway = script();
    const turn = gateway.client.chat(MESSAGE);
    (await gateway.accepted(0)).socket.drop();
    gateway.client.close();
    expect(await codeOf(turn.text())).toBe('CLIENT.CLOSED');
    expect(await codeOf(gateway.client.call('ping'))).toBe('CLIENT.CLOSED');
    // The waits of the scripted gateway end within 5 ms.
    await giveTimeToFail(20);
    expect(timers()).toBeLessThanOrEqual(before);
  });
});
