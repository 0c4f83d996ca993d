import { describe, expect, it } from '@jest/globals';
import { createRounds } from './shared-rounds.js';

/** Rounds that end when the spec says so. */
const controlled = () => {
  const begun: { key: string; end: (result: number) => void; fail: (error: Error) => void }[] = [];
  const rounds = createRounds(
    (key) => new Promise<number>((resolve, reject) => begun.push({ key, end: resolve, fail: reject })),
  );
  return { begun, rounds };
};

describe('shared rounds', () => {
  it('run at once for different keys', () => {
    const { begun, rounds } = controlled();
    void rounds('a');
    void rounds('b');
    expect(begun.map(({ key }) => key)).toEqual(['a', 'b']);
  });

  it('let who comes late share the next round, never the one on its way', async () => {
    const { begun, rounds } = controlled();
    const first = rounds('a');
    const late = [rounds('a'), rounds('a')];
    expect(begun).toHaveLength(1);
    begun[0]!.end(1);
    await expect(first).resolves.toBe(1);
    await Promise.resolve();
    expect(begun).toHaveLength(2);
    begun[1]!.end(2);
    await expect(Promise.all(late)).resolves.toEqual([2, 2]);
  });

  it('tell a failure to those of its round alone', async () => {
    const { begun, rounds } = controlled();
    const first = rounds('a');
    const late = rounds('a');
    begun[0]!.fail(new Error('down'));
    await expect(first).rejects.toThrow('down');
    await Promise.resolve();
    begun[1]!.end(3);
    await expect(late).resolves.toBe(3);
  });
});
