import { describe, expect, it } from '@jest/globals';
import { invalid } from '@antiphon/kernel';
import { createLogger } from './logger.js';
import { contextFrom, runWithContext, runWithContextFields } from './request-context.js';

const recorder = () => {
  const lines: string[] = [];
  const logger = createLogger({
    service: 'agent',
    level: 'debug',
    sink: { write: (line) => void lines.push(line) },
  });
  return {
    logger,
    text: () => lines.join(''),
    last: () => JSON.parse(lines.at(-1) ?? '{}') as Record<string, unknown>,
  };
};

describe('logger', () => {
  it('writes one JSON line with time, level, service and message', () => {
    const { logger, last, text } = recorder();
    logger.info({ position: 7 }, 'caught\nup');
    expect(last()).toMatchObject({
      level: 'info',
      service: 'agent',
      position: 7,
      message: 'caught\nup',
    });
    expect(new Date(last()['time'] as string).getTime()).toBeGreaterThan(0);
    expect(text().trimEnd().split('\n')).toHaveLength(1);
  });

  it('adds the ids of the current request, session, turn and trace', async () => {
    const { logger, last } = recorder();
    const context = contextFrom('agent', {
      correlationId: 'req-1',
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    });
    await runWithContext(context, async () => {
      await Promise.resolve();
      runWithContextFields({ sessionId: 's-1', turnId: 't-1' }, () => logger.warn('slow'));
    });
    expect(last()).toMatchObject({
      correlationId: 'req-1',
      sessionId: 's-1',
      turnId: 't-1',
      traceId: '0af7651916cd43dd8448eb211c80319c',
    });
    expect(last()['spanId']).not.toBe('b7ad6b7169203331');
  });

  it('redacts secrets by key, in text, and in an error and its cause', () => {
    const { logger, text } = recorder();
    const cause = new Error('connect postgresql://agent:hunter2secret@127.0.0.1:5432/x failed');
    logger.error(
      {
        err: invalid('LOG.INVALID', 'bad', {
          cause,
          data: { api_key: 'k-hunter2secret' },
        }),
        headers: {
          Authorization: 'Bearer hunter2secrethunter2secret',
          cookies: 1,
        },
        nested: [{ deep: { clientSecret: 'hunter2secret' } }],
      },
      'calling with Bearer hunter2secrethunter2secret and sk-ant-hunter2secret1234',
    );
    logger.child({ password: 'hunter2secret' }).info('child');
    expect(text()).not.toContain('hunter2secret');
    expect(text()).toContain('LOG.INVALID');
  });

  it('keeps token counts', () => {
    const { logger, last } = recorder();
    logger.info({ inputTokens: 5, tokens: 9, max_output_tokens: 3 }, 'settled');
    expect(last()).toMatchObject({
      inputTokens: 5,
      tokens: 9,
      max_output_tokens: 3,
    });
  });

  it('handles cycles, large values and values that JSON lacks', () => {
    const { logger, last } = recorder();
    const cycle: Record<string, unknown> = {
      big: 1n,
      bytes: new Uint8Array(3),
      at: new Date(0),
    };
    cycle['self'] = cycle;
    logger.info({ cycle, text: 'x'.repeat(100_000) }, 'odd');
    expect(last()['cycle']).toMatchObject({
      big: '1',
      bytes: '[3 bytes]',
      at: '1970-01-01T00:00:00.000Z',
    });
    expect((last()['text'] as string).length).toBeLessThan(9_000);
  });
});
