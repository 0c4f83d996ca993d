import { describe, expect, it } from '@jest/globals';
import * as bench from '../../benchmarks/lib/call-times.mjs';

interface Logged {
  readonly type: string;
  readonly recordedAt: string;
  readonly data: Readonly<Record<string, unknown>>;
}
const { callTimes } = bench as unknown as {
  readonly callTimes: (events: readonly Logged[]) => Record<string, number[]>;
};

const at = (ms: number): string => new Date(1_800_000_000_000 + ms).toISOString();
const logged = (type: string, ms: number, data: Logged['data'] = {}): Logged => ({
  ...{ type, recordedAt: at(ms), data },
});
/** Events of one step: the answer arrives at `from`, and the next call begins at `to`. */
const step = (name: string, from: number, requested: number, to: number): Logged[] => [
  logged('ModelCallCompleted', requested, { completedAt: at(from) }),
  logged('ToolCallRequested', requested, { callId: name, name }),
  logged('ToolCallCompleted', to, { callId: name }),
  logged('ModelCallStarted', to),
];

describe('the time of a tool call in the benchmark', () => {
  it('is that from the answer to the next model call, whenever the request was recorded', () => {
    const events = [
      logged('ModelCallStarted', 0),
      ...step('echo', 10, 14, 16),
      ...step('edit', 20, 21, 28),
      ...step('echo', 30, 30, 37),
      logged('ModelCallCompleted', 90, { completedAt: at(90) }),
      logged('ModelCallStarted', 200),
    ];
    expect(callTimes(events)).toEqual({ echo: [6, 7], edit: [8] });
  });

  it('is not measured where a call failed', () => {
    const failed = logged('ToolCallFailed', 5, {
      code: 'FILE.STALE',
      cause: { kind: 'text', text: 'it changed' },
    });
    expect(() => callTimes([...step('edit', 0, 1, 2), failed])).toThrow(/FILE\.STALE .*it changed/);
  });
});
