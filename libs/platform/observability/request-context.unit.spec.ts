import { describe, expect, it } from '@jest/globals';
import {
  addFoundIds,
  contextFrom,
  currentContext,
  keepContext,
  runWithContext,
  runWithContextFields,
  traceHeadersOf,
} from './request-context.js';
import { childTraceparent, newTraceparent, parseTraceparent } from './trace-context.js';

const PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00';

describe('trace context', () => {
  it('keeps the trace and its sampling in a child span', () => {
    const child = parseTraceparent(childTraceparent(PARENT));
    expect(child).toMatchObject({
      traceId: '0af7651916cd43dd8448eb211c80319c',
      sampled: false,
    });
    expect(child?.spanId).not.toBe('b7ad6b7169203331');
  });

  it.each([
    undefined,
    '',
    'nonsense',
    `00-${'0'.repeat(32)}-b7ad6b7169203331-01`,
    `00-0af7651916cd43dd8448eb211c80319c-${'0'.repeat(16)}-01`,
    'ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    '00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01',
    `${PARENT}-extra`,
  ])('starts a new trace for %j', (parent) => {
    expect(parseTraceparent(parent)).toBeNull();
    expect(parseTraceparent(childTraceparent(parent))).not.toBeNull();
  });

  it('reads a later version with appended fields', () => {
    expect(parseTraceparent(`01${PARENT.slice(2)}-extra`)?.spanId).toBe('b7ad6b7169203331');
  });

  it('makes unique ids', () => {
    const all = Array.from({ length: 5_000 }, () => newTraceparent());
    expect(new Set(all).size).toBe(all.length);
  });
});

describe('request context', () => {
  it('has the ids that were found while the request was handled, in all its parts and in no other', () => {
    const [one, two] = [contextFrom('gateway'), contextFrom('gateway')];
    runWithContext(one, () =>
      runWithContextFields({ workspace: 'w' }, () => addFoundIds({ sessionId: 'first' })),
    );
    runWithContext(one, () => addFoundIds({ sessionId: 'second', turnId: 't' }));
    expect([one.found, two.found]).toEqual([{ sessionId: 'first', turnId: 't' }, {}]);
    expect(traceHeadersOf('gateway', one)).not.toHaveProperty('found');
    addFoundIds({ sessionId: 'outside' });
  });

  it('is kept for a callback that runs in another one', () => {
    const inRequest = runWithContext(contextFrom('gateway', { correlationId: 'mine' }), () =>
      keepContext({ sessionId: 's' }),
    );
    const seen = runWithContext(contextFrom('gateway', { correlationId: 'other' }), () =>
      inRequest(() => currentContext()),
    );
    expect(seen).toMatchObject({ correlationId: 'mine', sessionId: 's' });
    expect(keepContext()(() => currentContext())).toBeUndefined();
  });

  it('is separate for concurrent work', async () => {
    const seen = await Promise.all(
      ['a', 'b'].map((correlationId) =>
        runWithContext(contextFrom('memory', { correlationId }), async () => {
          await Promise.resolve();
          return currentContext()?.correlationId;
        }),
      ),
    );
    expect(seen).toEqual(['a', 'b']);
    expect(currentContext()).toBeUndefined();
  });

  it.each(['', 'x'.repeat(201), 'line\r\nbreak', 'ünïcode', 'with space'])(
    'replaces the correlation id %j from outside by a new one',
    (correlationId) => {
      expect(contextFrom('memory', { correlationId }).correlationId).toMatch(/^[0-9a-f-]{36}$/);
    },
  );
});
