import { describe, expect, it } from '@jest/globals';
import { createLogger } from '@antiphon/observability';
import { createPluginLog } from './plugin-log.js';

describe('createPluginLog', () => {
  const start = () => {
    const lines: Record<string, unknown>[] = [];
    const sink = { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) };
    let now = 0;
    const log = createPluginLog('weather', createLogger({ service: 'sandbox', sink }), () => now);
    return { lines, log, advance: (ms: number) => (now += ms) };
  };

  it('logs a line as a field at the chosen level', () => {
    const { lines, log } = start();
    log.onLog({ level: 'warn', text: 'cloudy' });
    expect(lines).toEqual([
      expect.objectContaining({
        level: 'warn',
        plugin: 'weather',
        line: 'cloudy',
        message: 'plugin log line',
      }),
    ]);
  });

  it('limits the rate over all calls and logs the limit once', () => {
    const { lines, log, advance } = start();
    for (let i = 0; i < 1_000; i++) log.onLog({ level: 'info', text: 'x' });
    expect(lines.filter((line) => 'line' in line)).toHaveLength(100);
    expect(lines.filter((line) => String(line['message']).includes('suppressed'))).toHaveLength(1);
    advance(10_000);
    log.onLog({ level: 'info', text: 'again' });
    expect(lines.at(-1)).toMatchObject({ line: 'again' });
  });
});
