import { describe, expect, it } from '@jest/globals';
import { EXTISM_FUNCTIONS, HTTP_FUNCTIONS, USER_FUNCTIONS, WASI_FUNCTIONS } from '@antiphon/sandbox-domain';
import { ExtismKernel } from './extism-kernel.js';
import type { LogLine } from './protocol.js';

const MIB = 1024 * 1024;
type Functions = Record<string, (...args: (bigint | number)[]) => bigint>;

const begin = (input = '') => {
  const kernel = new ExtismKernel();
  const lines: LogLine[] = [];
  const log = (line: LogLine) => void lines.push(line);
  kernel.begin(new TextEncoder().encode(input), log);
  const call = kernel.functions as unknown as Functions;
  const put = (text: string): bigint => {
    const bytes = new TextEncoder().encode(text);
    const at = call['alloc']!(BigInt(bytes.length));
    bytes.forEach((byte, index) => call['store_u8']!(at + BigInt(index), byte));
    return at;
  };
  const output = () => new TextDecoder().decode(kernel.result().output);
  return { kernel, call, put, lines, output, log };
};

describe('ExtismKernel', () => {
  it('implements exactly the functions that the validator grants', () => {
    const { functions, userFunctions, wasi } = new ExtismKernel();
    const sorted = (...tables: object[]) => tables.flatMap((table) => Object.keys(table)).sort();
    expect(sorted(functions)).toEqual(sorted(EXTISM_FUNCTIONS, HTTP_FUNCTIONS));
    expect(sorted(userFunctions)).toEqual(sorted(...Object.values(USER_FUNCTIONS)));
    expect(sorted(wasi.functions)).toEqual(sorted(WASI_FUNCTIONS));
  });

  it('returns the input by byte and by u64, and zeros beyond it', () => {
    const { call } = begin('ABCDEFGHI');
    expect(call['input_length']!()).toBe(9n);
    expect([0n, 8n, 9n, -1n].map((at) => call['input_load_u8']!(at))).toEqual([0x41, 0x49, 0, 0]);
    expect(call['input_load_u64']!(0n)).toBe(0x4847464544434241n);
    expect([2n, -1n, 1n << 62n].map((at) => call['input_load_u64']!(at))).toEqual([0n, 0n, 0n]);
    expect(call['load_u8']!(call['input_offset']!())).toBe(0x41);
  });

  it('returns the output that was set last', () => {
    const { call, put, output } = begin();
    const first = put('first');
    call['output_set']!(first, 5n);
    const second = put('second');
    call['output_set']!(second, 6n);
    expect(output()).toBe('second');
    call['output_set']!(second, 0n);
    expect(output()).toBe('');
  });

  it('ignores offsets out of bounds', () => {
    const { call, put, output } = begin();
    call['output_set']!(put('kept'), 4n);
    for (const at of [0n, 3n, 1n << 40n, -8n]) {
      call['store_u8']!(at, 1);
      call['store_u64']!(at, 1n);
      expect(call['load_u8']!(at)).toBe(0);
      expect(call['load_u64']!(at)).toBe(0n);
      expect(call['length']!(at)).toBe(0n);
      call['free']!(at);
    }
    expect(output()).toBe('kept');
  });

  it.each([
    ['null', 0n, 4n],
    ['below all blocks', 3n, 4n],
    ['far away', 1n << 40n, 10n],
    ['negative', -8n, 4n],
    ['beyond the end of its block', 16n, 100n],
    ['between two blocks', 21n, 2n],
  ])('throws for an output whose pointer is %s, and retains none', (_, at, size) => {
    const { kernel, call, put, output } = begin();
    put('first');
    put('second');
    expect(() => call['output_set']!(at, size)).toThrow('lies in no block');
    expect(output()).toBe('');
    expect(kernel.result().violation).toMatchObject({ end: 'output' });
  });

  it('returns a part of a block', () => {
    const { call, put, output } = begin();
    call['output_set']!(put('a whole text') + 2n, 5n);
    expect(output()).toBe('whole');
  });

  it('returns an error until it is cleared', () => {
    const { kernel, call, put } = begin();
    call['error_set']!(put('broken'));
    expect(new TextDecoder().decode(kernel.result().error!)).toBe('broken');
    call['error_set']!(0n);
    expect(kernel.result().error).toBeNull();
  });

  it('stores variables within a call and finds none of a prototype', () => {
    const { call, put } = begin();
    call['var_set']!(put('k'), put('value'));
    const found = call['var_get']!(put('k'));
    expect(call['length']!(found)).toBe(5n);
    call['var_set']!(put('k'), 0n);
    expect(call['var_get']!(put('k'))).toBe(0n);
    expect(call['var_get']!(put('constructor'))).toBe(0n);
    expect(call['config_get']!(put('constructor'))).toBe(0n);
    expect(call['config_get']!(put('idempotency_key'))).toBe(0n);
  });

  it('clears all state for the next call', () => {
    const { kernel, call, put, log } = begin('secret');
    call['var_set']!(put('k'), put('value'));
    call['output_set']!(put('out'), 3n);
    call['error_set']!(put('broken'));
    kernel.begin(new Uint8Array(0), log);
    expect(kernel.result()).toEqual({ output: new Uint8Array(0), error: null, violation: null });
    expect(call['input_length']!()).toBe(0n);
    expect(call['var_get']!(put('k'))).toBe(0n);
    for (let at = 32n; at < 65_536n; at += 8n) expect(call['load_u64']!(at)).toBe(0n);
  });

  it('reuses one block for all log lines', () => {
    const { call, put, lines } = begin();
    const first = put('a line');
    call['log_info']!(first);
    for (let i = 0; i < 100; i++) call['log_warn']!(put(`line ${i}`));
    expect(put('next')).toBe(first);
    expect(lines).toHaveLength(101);
    expect(lines[0]).toEqual({ level: 'info', text: 'a line' });
  });

  it('truncates a long log line', () => {
    const { call, put, lines } = begin();
    call['log_error']!(put('x'.repeat(5_000)));
    expect(lines[0]?.text).toHaveLength(1_024);
  });

  it.each([
    ['a block of over 1 MiB', 'output', (call: Functions) => call['alloc']!(BigInt(MIB + 1))],
    ['a block of 2^64 - 1 bytes', 'output', (call: Functions) => call['alloc']!(-1n)],
    ['an output of 512 MiB', 'output', (call: Functions) => call['output_set']!(16n, BigInt(512 * MIB))],
    [
      'over 8 MiB in all',
      'memory',
      (call: Functions) => {
        for (let i = 0; i < 9; i++) call['alloc']!(BigInt(MIB));
      },
    ],
    [
      'over 1 MiB of variables',
      'memory',
      (call: Functions) => {
        const value = call['alloc']!(BigInt(MIB / 2));
        for (const name of [8, 16, 24]) call['var_set']!(call['alloc']!(BigInt(name)), value);
      },
    ],
  ] as const)('throws at %s and records the violation', (_, end, act) => {
    const { kernel, call } = begin();
    expect(() => act(call)).toThrow();
    expect(kernel.result().violation).toMatchObject({ end });
  });
});
