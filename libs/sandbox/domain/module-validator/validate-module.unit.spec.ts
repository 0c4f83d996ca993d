import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { EXTISM_FUNCTIONS, MAX_MODULE_BYTES, validateModule } from '@antiphon/sandbox-domain';
import type { ModuleLimits } from '@antiphon/sandbox-domain';
import { engine, tool, wat } from './wat.fixture.spec.js';

const LIMITS: ModuleLimits = { kind: 'tool', memoryMb: 16, http: false };
const HEADER = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];
const bytes = (...values: number[]): Uint8Array => Uint8Array.from([...HEADER, ...values]);
const extism = (name: string, type: string): string => `(import "extism:host/env" "${name}" (func ${type}))`;

const reasonFor = (module: Uint8Array, limits = LIMITS): string => {
  const verdict = validateModule(module, limits);
  return verdict.accepted ? 'accepted' : `${verdict.code} ${verdict.reason}`;
};
const accepted = (module: Uint8Array, limits = LIMITS): Uint8Array => {
  const verdict = validateModule(module, limits);
  if (!verdict.accepted) throw new Error(verdict.reason);
  return verdict.bytes;
};

describe('the module validator', () => {
  it('accepts the smallest tool', () => expect(reasonFor(tool())).toBe('accepted'));

  it('reports whether the tool exports describe()', () => {
    const describing = tool('(func (export "describe") (result i32) i32.const 0)');
    expect(validateModule(describing, LIMITS)).toMatchObject({ accepted: true, describes: true });
    expect(validateModule(tool(), LIMITS)).toMatchObject({ accepted: true, describes: false });
  });

  describe('rejects a file that is not a module', () => {
    it.each([
      ['a shell script', new TextEncoder().encode('#!/bin/sh\necho x'), 'NOT_WASM'],
      ['an empty file', new Uint8Array(0), 'NOT_WASM'],
      ['a version of the future', Uint8Array.from([0, 0x61, 0x73, 0x6d, 2, 0, 0, 0]), 'BAD_VERSION'],
      ['a component', Uint8Array.from([0, 0x61, 0x73, 0x6d, 13, 0, 1, 0]), 'BAD_VERSION'],
      ['a file over 10 MiB', new Uint8Array(MAX_MODULE_BYTES + 1), 'TOO_LARGE'],
    ])('%s', (_, module, code) => expect(reasonFor(module)).toMatch(new RegExp(`^${code} `)));
  });

  describe('rejects a malformed module', () => {
    it.each([
      ['a section that runs past the end', bytes(1, 0xff, 0xff, 0xff, 0xff, 0x0f)],
      ['a vector of four billion entries', bytes(1, 5, 0xff, 0xff, 0xff, 0xff, 0x0f)],
      ['a length that never ends', bytes(1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80)],
      ['a section without its length', bytes(1)],
      ['a missing type', bytes(3, 2, 1, 9)],
      ['bytes after the last entry', bytes(1, 2, 0, 0)],
      ['an unknown section', bytes(99, 0)],
      ['two memory sections', bytes(5, 3, 1, 0, 1, 5, 3, 1, 0, 1)],
      ['a table section after the memory section', bytes(5, 3, 1, 0, 1, 4, 4, 1, 0x70, 0, 1)],
      ['a name that is not UTF-8', bytes(1, 4, 1, 0x60, 0, 0, 2, 7, 1, 1, 0xff, 1, 0x61, 0, 0)],
    ])('%s', (_, module) => expect(reasonFor(module)).toMatch(/^(MALFORMED|TOO_LARGE) /));

    it('leaves only truncations that the engine refuses', () => {
      const whole = tool('(memory (export "memory") 1 2) (table 1 1 funcref)');
      for (let length = 0; length < whole.length; length++) {
        const verdict = validateModule(whole.subarray(0, length), LIMITS);
        expect(verdict.accepted && engine.validate(verdict.bytes)).toBe(false);
      }
    });

    it('rejects a million functions without reading them', () => {
      const million = [0xc0, 0x84, 0x3d];
      const start = bytes(1, 4, 1, 0x60, 0, 0, 3, 0xc3, 0x84, 0x3d, ...million);
      const module = new Uint8Array(start.length + 1_000_000);
      module.set(start);
      expect(reasonFor(module)).toMatch(/^TOO_LARGE a section of 1000000 entries/);
    });
  });

  describe('checks imports by name and type', () => {
    it.each(Object.entries(EXTISM_FUNCTIONS))('accepts %s as %s', (name, signature) => {
      const [parameters, result] = signature.replaceAll(/[()]/g, '').split('->');
      const type = `${parameters ? `(param ${parameters.replaceAll(',', ' ')})` : ''} ${result ? `(result ${result})` : ''}`;
      expect(reasonFor(tool(extism(name, type)))).toBe('accepted');
    });

    it("accepts AssemblyScript's abort", () =>
      expect(reasonFor(tool('(import "env" "abort" (func (param i32 i32 i32 i32)))'))).toBe('accepted'));

    it.each([
      ['an unknown function', '(import "env" "system" (func))', 'import env.system (function) not granted'],
      [
        'WASI',
        '(import "wasi_snapshot_preview1" "path_open" (func (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))',
        'WASI is disabled',
      ],
      [
        'a host function of another type',
        extism('alloc', '(param i32) (result i32)'),
        'expected (i64)->(i64)',
      ],
      ['a name on the prototype', extism('constructor', ''), 'not granted'],
      ['a memory', '(import "env" "memory" (memory 1 2))', '(memory) not granted'],
      ['a table', '(import "env" "table" (table 1 2 funcref))', '(table) not granted'],
      ['a global', '(import "env" "g" (global i32))', '(global) not granted'],
      [
        'a function under the name of a global',
        '(import "env" "abort" (global i32))',
        'expected (i32,i32,i32,i32)',
      ],
    ])('rejects %s', (_, text, reason) => {
      expect(reasonFor(tool(text))).toMatch(/^IMPORT_NOT_GRANTED /);
      expect(reasonFor(tool(text))).toContain(reason);
    });

    it('accepts HTTP functions only with a capability and the right type', () => {
      const asks = tool(extism('http_request', '(param i64 i64) (result i64)'));
      expect(reasonFor(asks)).toMatch(/^IMPORT_NOT_GRANTED .*no capability http:HOST/);
      expect(validateModule(asks, { ...LIMITS, http: true })).toMatchObject({ accepted: true });
      expect(
        validateModule(tool(extism('http_request', '(param i64)')), { ...LIMITS, http: true }),
      ).toMatchObject({
        code: 'IMPORT_NOT_GRANTED',
      });
    });

    it('rejects a shared memory', () =>
      expect(reasonFor(tool('(import "env" "memory" (memory 1 65536 shared))'))).toMatch(/shared memory/));
  });

  describe('limits memory and tables', () => {
    it.each([
      ['a huge initial memory', '(memory 65536)', 'MEMORY_LIMIT'],
      ['a maximum over the limit', '(memory 1 257)', 'MEMORY_LIMIT'],
      ['a second memory', '(memory 1 2) (memory 1 2)', 'MEMORY_LIMIT'],
      ['a shared memory', '(memory 1 2 shared)', 'UNSUPPORTED'],
      ['a memory of 64-bit addresses', '(memory i64 1 2)', 'UNSUPPORTED'],
      ['a huge table', '(table 65537 funcref)', 'TABLE_LIMIT'],
      ['a table that may grow huge', '(table 1 1000000 externref)', 'TABLE_LIMIT'],
      ['many tables', '(table 1 1 funcref)'.repeat(17), 'TABLE_LIMIT'],
    ])('rejects %s', (_, text, code) => expect(reasonFor(tool(text))).toMatch(new RegExp(`^${code} `)));

    it('accepts a memory of exactly the limit', () =>
      expect(reasonFor(tool('(memory 256 256)'))).toBe('accepted'));

    it('rejects garbage-collected types, which no memory limit counts', () =>
      expect(reasonFor(tool('(type $a (array i8)) (global (ref null $a) (ref.null $a))'))).toMatch(
        /^UNSUPPORTED /,
      ));

    it('adds a missing maximum and changes nothing else', () => {
      const open = tool('(memory (export "memory") 1) (table (export "t") 1 externref)', 'memory.size');
      const bounded = tool(
        '(memory (export "memory") 1 256) (table (export "t") 1 65536 externref)',
        'memory.size',
      );
      expect(accepted(open)).toEqual(bounded);
      expect(accepted(bounded)).toBe(bounded);
    });

    it('lets growth beyond the maximum fail in the engine', () => {
      const { exports } = new engine.Instance(new engine.Module(accepted(tool('(memory (export "m") 1)'))));
      const memory = exports['m'] as { grow: (pages: number) => number };
      expect(memory.grow(255)).toBe(1);
      expect(() => memory.grow(1)).toThrow(RangeError);
    });
  });

  describe('requires the exports of the kind', () => {
    it.each([
      ['no handle_tool_call', wat('(module (func (export "nope")))'), 'handle_tool_call missing'],
      [
        'a memory named handle_tool_call',
        wat('(module (memory (export "handle_tool_call") 1 1))'),
        'handle_tool_call missing',
      ],
      [
        'a handle_tool_call of another type',
        wat('(module (func (export "handle_tool_call") (param i32)))'),
        'export handle_tool_call has the type (i32)->()',
      ],
      [
        'a describe of another type',
        tool('(func (export "describe") (param i64))'),
        'export describe has the type',
      ],
    ])('rejects %s', (_, module, reason) => expect(reasonFor(module)).toContain(reason));

    it('checks the exports of a channel adapter', () => {
      const channel = wat(
        '(module (func (export "parse_incoming")) (func (export "format_outgoing") (result i32) i32.const 0))',
      );
      expect(reasonFor(channel, { ...LIMITS, kind: 'channel' })).toBe('accepted');
      expect(reasonFor(tool(), { ...LIMITS, kind: 'channel' })).toContain('parse_incoming missing');
    });
  });
});

describe('the module validator with random input', () => {
  const seeds = [
    tool('(memory (export "memory") 1) (table 1 funcref) (global (mut i32) (i32.const 0))'),
    tool(`${extism('alloc', '(param i64) (result i64)')} (memory 1 4) (data (i32.const 0) "abc")`),
  ];
  const mutated = fc
    .tuple(
      fc.constantFrom(...seeds),
      fc.array(fc.tuple(fc.nat(), fc.nat(255), fc.constantFrom('set', 'cut', 'put'))),
    )
    .map(([seed, edits]) => {
      const list = [...seed];
      for (const [at, value, how] of edits)
        list.splice(at % list.length, how === 'put' ? 0 : 1, ...(how === 'cut' ? [] : [value]));
      return Uint8Array.from(list);
    });

  /** Asserts on an accepted module, by the engine's own view, that all rules hold. */
  const assertRulesHold = (module: Uint8Array): void => {
    const verdict = validateModule(module, LIMITS);
    if (!verdict.accepted) return expect(verdict.reason).not.toBe('');
    // A second validation has nothing left to limit.
    expect(validateModule(verdict.bytes, LIMITS)).toMatchObject({ accepted: true, bytes: verdict.bytes });
    if (!engine.validate(verdict.bytes)) return;
    const compiled = new engine.Module(verdict.bytes);
    for (const { module: from, name, kind } of engine.Module.imports(compiled)) {
      expect(kind).toBe('function');
      expect(from === 'extism:host/env' ? Object.keys(EXTISM_FUNCTIONS) : ['abort']).toContain(name);
    }
    expect(engine.Module.exports(compiled)).toContainEqual({
      name: 'handle_tool_call',
      kind: 'function',
    });
  };

  it('does not throw on random bytes', () =>
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (noise) => assertRulesHold(bytes(...noise))),
      { numRuns: 2_000 },
    ));

  it('accepts no mutated module that breaks a rule', () =>
    fc.assert(fc.property(mutated, assertRulesHold), { numRuns: 5_000 }));
});
