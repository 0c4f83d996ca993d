import { describe, expect, it, jest } from '@jest/globals';
import type { CallHandler, ExecutionContext } from '@nestjs/common';
import { transient } from '@antiphon/kernel';
import { currentContext, contextFrom, runWithContext } from '@antiphon/observability';
import { firstValueFrom, from, type Observable } from 'rxjs';
import { ReadAfterWriteInterceptor } from './read-after-write.interceptor.js';

const PRINCIPAL = { workspace: 'default', caller: 'key/k' };

/** Positions that the handler's calls demanded, undefined for none. */
const handlerOf = (fails: (after: number | undefined) => boolean) => {
  const demanded: (number | undefined)[] = [];
  const next: CallHandler = {
    handle: () => {
      const after = currentContext()?.after;
      demanded.push(after);
      return from(
        fails(after)
          ? Promise.reject(transient('LOG.PROJECTION_BEHIND', 'not yet'))
          : Promise.resolve({ items: [] }),
      );
    },
  };
  return { next, demanded };
};

const world = (position?: number) => {
  const writes = {
    begin: jest.fn(() => 'write-1'),
    end: jest.fn(() => Promise.resolve(8)),
    positionFor: () => Promise.resolve(position),
    close: () => undefined,
  };
  const store = { headPosition: () => Promise.resolve(9) };
  return { writes, interceptor: new ReadAfterWriteInterceptor(writes as never, store as never) };
};

const httpOf = (method: string, query: Record<string, unknown> = {}) => {
  const headers = new Map<string, string>();
  const request = { principal: PRINCIPAL, method, query, routeOptions: { url: '/api/v1/tasks' } };
  const reply = {
    sent: false,
    hasHeader: (name: string) => headers.has(name),
    header: (name: string, value: string) => headers.set(name, value),
  };
  const context = {
    getType: () => 'http',
    switchToHttp: () => ({ getRequest: () => request, getResponse: () => reply }),
  } as unknown as ExecutionContext;
  return { context, request, headers };
};

const inRequest = <T>(work: () => Promise<Observable<T>>): Promise<T> =>
  runWithContext(contextFrom('gateway'), async () => firstValueFrom(await work()));

describe('ReadAfterWriteInterceptor', () => {
  it('demands the position of the last write of the caller, and none without a write', async () => {
    for (const position of [7, undefined]) {
      const { next, demanded } = handlerOf(() => false);
      const { interceptor } = world(position);
      await inRequest(() => interceptor.intercept(httpOf('GET').context, next));
      expect(demanded).toEqual([position]);
    }
  });

  it('answers with the list as it is when the caller’s write is not in it in time', async () => {
    const { next, demanded } = handlerOf((after) => after !== undefined);
    const { interceptor } = world(7);
    const answer = await inRequest(() => interceptor.intercept(httpOf('GET').context, next));
    expect([answer, demanded]).toEqual([{ items: [] }, [7, undefined]]);
  });

  it('fails for a position of `after` that is not reached in time, and takes it out of the query', async () => {
    const { next, demanded } = handlerOf((after) => after !== undefined);
    const { context, request } = httpOf('GET', { after: '5', limit: '3' });
    const reading = inRequest(() => world(7).interceptor.intercept(context, next));
    await expect(reading).rejects.toMatchObject({ code: 'LOG.PROJECTION_BEHIND' });
    expect([demanded, request.query]).toEqual([[5], { limit: '3' }]);
  });

  it.each([
    ['10', 'LOG.POSITION_AHEAD'],
    ['now', 'GATEWAY.INVALID_QUERY'],
  ])('refuses `after=%s`', async (after, code) => {
    const { next, demanded } = handlerOf(() => false);
    const reading = inRequest(() => world().interceptor.intercept(httpOf('GET', { after }).context, next));
    await expect(reading).rejects.toMatchObject({ code });
    expect(demanded).toEqual([]);
  });

  it('notes a write from its begin, and its response has the position', async () => {
    const { next } = handlerOf(() => false);
    const { writes, interceptor } = world();
    const { context, headers } = httpOf('POST');
    await inRequest(() => interceptor.intercept(context, next));
    expect([writes.begin.mock.calls, writes.end.mock.calls]).toEqual([
      [[PRINCIPAL]],
      [[PRINCIPAL, 'write-1']],
    ]);
    expect(headers.get('antiphon-position')).toBe('8');
  });

  it.each([
    ['task.create', 1],
    ['memory.query', 0],
    ['ping', 0],
  ])('takes the method %s of a socket for a write: %i', async (method, writesBegun) => {
    const { next } = handlerOf(() => false);
    const { writes, interceptor } = world();
    const context = {
      getType: () => 'ws',
      switchToWs: () => ({ getPattern: () => method, getData: () => ({ principal: PRINCIPAL }) }),
    } as unknown as ExecutionContext;
    await inRequest(() => interceptor.intercept(context, next));
    expect(writes.begin).toHaveBeenCalledTimes(writesBegun);
  });
});
