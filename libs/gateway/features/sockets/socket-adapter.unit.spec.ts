import { Module, type Type } from '@nestjs/common';
import { APP_GUARD, NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { afterEach, describe, expect, it } from '@jest/globals';
import type { Principal } from '@antiphon/contracts/identity';
import { METHODS, SOCKET_METHODS, type SocketMethod } from '@antiphon/contracts/reference';
import { notFound } from '@antiphon/kernel';
import { CONFIG } from '@antiphon/service-host';
import { AccessGuard } from '../access/access-guard.js';
import { LOCAL_OPERATOR } from '../access/authenticator.js';
import { HandleMethod } from './handle-method.js';
import type { MethodCall, RawCall } from './rpc-method.js';
import { SocketAdapter, SocketMethods } from './socket-adapter.js';

const VIEWER: Principal = { ...LOCAL_OPERATOR, role: 'viewer', keyId: 'k', caller: 'key/k' };
const TASK_ID = '01998f42-1b00-7c3d-8e9f-a0b1c2d3e4f5';
const apps: NestFastifyApplication[] = [];
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});

/** Starts Nest with these gateways behind the guard, as the module of the gateway does. */
const start = async (gateways: readonly Type[], features = {}): Promise<SocketMethods> => {
  @Module({
    providers: [
      { provide: CONFIG, useValue: { features: { agentRuntimeV1: true, memoryV1: true, ...features } } },
      { provide: APP_GUARD, useClass: AccessGuard },
      SocketMethods,
      ...gateways,
    ],
  })
  class Gateways {}
  const app = await NestFactory.create<NestFastifyApplication>(Gateways, new FastifyAdapter(), {
    ...{ logger: false, abortOnError: false },
  });
  apps.push(app);
  app.useWebSocketAdapter(new SocketAdapter(app.get(SocketMethods)));
  await app.init();
  return app.get(SocketMethods);
};

const call = (methods: SocketMethods, name: string, principal: Principal, params = {}) =>
  methods.table.get(name)?.({ principal, params, workspace: 'acme' } as RawCall);

@WebSocketGateway()
class Some {
  private readonly workspaces: string[] = [];

  @HandleMethod(METHODS['task.get'])
  async get({ workspace, params }: MethodCall<'task.get'>): Promise<never> {
    this.workspaces.push(workspace);
    throw notFound('TASK.NOT_FOUND', `${params.taskId} after ${this.workspaces.length}`);
  }

  @HandleMethod(METHODS['events.unsubscribe'])
  unsubscribe() {
    return { unsubscribed: false };
  }

  /** Has the name of a method that every role may use, without its contract. */
  @SubscribeMessage('agent.list')
  list() {
    return { agents: 'all of them' };
  }
}

/** Serves all methods of the reference that `Some` does not serve. */
@WebSocketGateway()
class Others {}
const own = ['task.get', 'events.unsubscribe', 'agent.list'];
for (const method of SOCKET_METHODS.filter(({ name }) => !own.includes(name))) {
  const descriptor = { value: () => Promise.resolve(undefined), configurable: true };
  Object.defineProperty(Others.prototype, method.name, descriptor);
  HandleMethod<SocketMethod>(method)(Others.prototype, method.name, descriptor);
}

describe('a method of a Nest gateway', () => {
  it('is called with validated params on its own instance', async () => {
    const methods = await start([Some, Others]);
    for (const count of [1, 2])
      await expect(call(methods, 'task.get', LOCAL_OPERATOR, { taskId: TASK_ID })).rejects.toMatchObject({
        message: `${TASK_ID} after ${count}`,
      });
    await expect(call(methods, 'task.get', LOCAL_OPERATOR, { taskId: '../etc' })).rejects.toMatchObject({
      code: 'GATEWAY.INVALID_PARAMS',
    });
  });

  it('throws its own error, also one of the kernel', async () => {
    const methods = await start([Some, Others]);
    const read = call(methods, 'task.get', LOCAL_OPERATOR, { taskId: TASK_ID });
    await expect(read).rejects.toMatchObject({ code: 'TASK.NOT_FOUND', kind: 'not_found' });
  });

  it('is refused before its params are read without the permission of its contract', async () => {
    const methods = await start([Some, Others]);
    await expect(call(methods, 'task.create', VIEWER)).rejects.toMatchObject({ code: 'GATEWAY.FORBIDDEN' });
    await expect(call(methods, 'events.unsubscribe', VIEWER, { subscription: 1 })).resolves.toEqual({
      unsubscribed: false,
    });
  });

  it('is not called without a contract, even under the name of one', async () => {
    const methods = await start([Some, Others]);
    expect(await call(methods, 'agent.list', LOCAL_OPERATOR)).toBeUndefined();
  });

  it('is refused, and no capability, while its feature is off', async () => {
    const methods = await start([Some, Others], { agentRuntimeV1: false });
    await expect(call(methods, 'task.get', LOCAL_OPERATOR, { taskId: TASK_ID })).rejects.toMatchObject({
      code: 'GATEWAY.FEATURE_OFF',
    });
    expect(methods.capabilities).not.toContain('task.get');
    expect(methods.capabilities).toContain('ping');
  });
});

describe('the start of a gateway', () => {
  it('fails if a method of the reference has no handler', () =>
    expect(start([Others])).rejects.toThrow('no handler serves events.unsubscribe, agent.list, task.get'));

  it('fails if two handlers serve one method', () =>
    expect(start([Some, Others, class Twin extends Some {}])).rejects.toThrow('two handlers serve task.get'));

  it('binds every method of the reference once', async () => {
    const { table } = await start([Some, Others]);
    expect([...table.keys()].sort()).toEqual(SOCKET_METHODS.map(({ name }) => name).sort());
  });
});
