import { expect, it } from '@jest/globals';
import { createLogger } from '@antiphon/observability';
import { ReservationSweep } from './reservation-sweep.js';

it('sweeps again after a failure, logs it, and waits for a running sweep when it stops', async () => {
  const lines: Record<string, unknown>[] = [];
  const sink = { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) };
  const logger = createLogger({ service: 'metering', sink });
  let sweeps = 0;
  let third: () => void = () => undefined;
  const thirdBegun = new Promise<void>((resolve) => (third = resolve));
  let release: (ended: number) => void = () => undefined;
  const sweep = (): Promise<number> => {
    sweeps++;
    if (sweeps === 1) return Promise.reject(new Error('down'));
    if (sweeps === 2) return Promise.resolve(2);
    third();
    return new Promise((resolve) => (release = resolve));
  };
  const runner = new ReservationSweep({ sweep }, logger, 1);
  runner.start();
  await thirdBegun;
  let stopped = false;
  const stopping = runner.stop().then(() => (stopped = true));
  await Promise.resolve();
  expect(stopped).toBe(false);
  release(0);
  await stopping;
  expect(sweeps).toBe(3);
  expect(lines).toMatchObject([
    { level: 'error', err: { message: 'down' } },
    { level: 'info', ended: 2 },
  ]);
});
