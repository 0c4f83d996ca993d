import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import binaryen from 'assemblyscript/binaryen';
import { describe, expect, it } from '@jest/globals';
import type { CliWorld } from './cli-world.js';
import { waitForValue } from './stack-under-test.js';

/** Assembles a tool that returns a text of five letters. */
const moduleThatSays = (text: string): Uint8Array => {
  const host = (name: string, type: string) => `(import "extism:host/env" "${name}" (func $${name} ${type}))`;
  const module = binaryen.parseText(`(module
    ${host('alloc', '(param i64) (result i64)')} ${host('store_u8', '(param i64 i32)')}
    ${host('output_set', '(param i64 i64)')} (memory 1 1) (data (i32.const 0) "${text}")
    (func (export "handle_tool_call") (result i32) (local $to i64) (local $i i32)
      (local.set $to (call $alloc (i64.const 5)))
      (loop $next
        (call $store_u8 (i64.add (local.get $to) (i64.extend_i32_u (local.get $i))) (i32.load8_u (local.get $i)))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br_if $next (i32.lt_u (local.get $i) (i32.const 5))))
      (call $output_set (local.get $to) (i64.const 5)) (i32.const 0)))`);
  const bytes = module.emitBinary();
  module.dispose();
  return bytes;
};

/** Assembles a tool that sends its input as a request and returns the page. */
const moduleThatRequests = (): Uint8Array => {
  const host = (name: string, type: string) => `(import "extism:host/env" "${name}" (func $${name} ${type}))`;
  const module = binaryen.parseText(`(module
    ${host('http_request', '(param i64 i64) (result i64)')} ${host('input_offset', '(result i64)')}
    ${host('length', '(param i64) (result i64)')} ${host('output_set', '(param i64 i64)')} (memory 1 1)
    (func (export "handle_tool_call") (result i32) (local $page i64)
      (local.set $page (call $http_request (call $input_offset) (i64.const 0)))
      (call $output_set (local.get $page) (call $length (local.get $page))) (i32.const 0)))`);
  const bytes = module.emitBinary();
  module.dispose();
  return bytes;
};

/** Name of the tool, which an agent has by the name greet* of its configuration. */
const ADDED_TOOL = 'greeter';

/** Describes plug-ins that are added at run time by REST and by the command line. */
export const describePluginCommands = (worldOf: () => CliWorld): void => {
  describe('plug-ins at run time', () => {
    const post = (bytes: Uint8Array, query: string) =>
      fetch(`${worldOf().gatewayUrl()}/api/v1/plugins?${query}`, {
        ...{ method: 'POST', headers: { 'content-type': 'application/octet-stream' } },
        body: Uint8Array.from(bytes),
      });
    const ask = () => worldOf().run('chat', `/tool ${ADDED_TOOL} {}`);

    it('adds one by REST, which a turn uses, then a second version, and removes it', async () => {
      const { folder, run, cli, runJson } = worldOf();
      const added = await post(moduleThatSays('hello'), `name=${ADDED_TOOL}&capabilities=log,clock`);
      expect([added.status, await added.json()]).toEqual([
        200,
        expect.objectContaining({ version: 1, origin: 'added', capabilities: ['log', 'clock'] }),
      ]);
      // The agent reads the list of tools again within some seconds.
      await waitForValue('a call of version 1', async () => (await ask()).includes('hello') || undefined);

      const file = join(folder, `${ADDED_TOOL}.wasm`);
      writeFileSync(file, moduleThatSays('again'));
      const add = () => run('plugin', 'add', file, '--capability', 'log');
      expect(await add()).toBe(`${ADDED_TOOL}: added, version 2\n`);
      expect(await add()).toBe(`${ADDED_TOOL}: unchanged, version 2\n`);
      await waitForValue('a call of version 2', async () => (await ask()).includes('again') || undefined);
      expect(await run('plugin', 'call', ADDED_TOOL, '{}')).toBe('again\n');
      expect(await run('plugin', 'list')).toMatch(/greeter +added +2 +loaded +log\n/);
      expect(await run('plugin', 'show', ADDED_TOOL)).toContain('added, version 2');
      expect(await runJson<unknown[]>('plugin', 'versions', ADDED_TOOL)).toHaveLength(2);

      expect(await run('plugin', 'deny', ADDED_TOOL)).toBe(`${ADDED_TOOL}: denied\n`);
      expect(await cli('plugin', 'call', ADDED_TOOL, '{}')).toMatchObject({ code: 1 });
      expect(await run('plugin', 'allow', ADDED_TOOL)).toBe(`${ADDED_TOOL}: allowed\n`);
      expect(await run('plugin', 'remove', ADDED_TOOL)).toBe(`${ADDED_TOOL}: removed\n`);
      expect(await run('plugin', 'remove', ADDED_TOOL)).toBe(`${ADDED_TOOL}: there was none\n`);
      expect(await ask()).not.toContain('again');
    });

    it('reads a stored secret for a request, and shows it nowhere', async () => {
      const { folder, run, cli } = worldOf();
      const [name, secret] = ['requester', 'canary-plugin-4f1d7c20'];
      const [module, file] = [join(folder, `${name}.wasm`), join(folder, 'plugin.secret')];
      writeFileSync(module, moduleThatRequests());
      writeFileSync(file, secret);
      const grants = ['--capability', 'http:api.example.invalid', '--capability', 'secret:weather'];
      expect(await run('plugin', 'add', module, ...grants)).toContain('version 1');
      const input = '{"url":"https://api.example.invalid/?key={secret:weather}"}';
      const before = await cli('plugin', 'call', name, input);
      expect(before.stdout + before.stderr).toContain('the workspace has no secret "weather"');
      await run('secret', 'set', 'weather', '--file', file);
      const after = await cli('plugin', 'call', name, input);
      expect(after.stdout + after.stderr).toContain('api.example.invalid could not be resolved');
      expect(after.stdout + after.stderr).not.toContain(secret);
      await run('secret', 'remove', 'weather');
      await run('plugin', 'remove', name);
    });

    it('refuses what is no module, a grant that is none, and a name of the configuration', async () => {
      const statusOf = async (bytes: Uint8Array, query: string) => {
        const reply = await post(bytes, query);
        const { code, detail } = (await reply.json()) as { code: string; detail: string };
        return [reply.status, code, detail];
      };
      const text = new TextEncoder().encode('#!/bin/sh');
      expect(await statusOf(text, 'name=script')).toEqual([
        ...[422, 'PLUGIN.REJECTED'],
        expect.stringContaining('bad magic'),
      ]);
      const hello = moduleThatSays('hello');
      expect(await statusOf(hello, 'name=script&capabilities=clok')).toEqual([
        ...[422, 'PLUGIN.REJECTED'],
        expect.stringContaining('did you mean clock?'),
      ]);
      expect((await statusOf(hello, 'name=calculator')).slice(0, 2)).toEqual([409, 'PLUGIN.CONFIGURED']);
      expect((await statusOf(hello, 'name=write')).slice(0, 2)).toEqual([409, 'PLUGIN.NAME_TAKEN']);
      expect((await post(hello, 'name=..%2fx')).status).toBe(400);
    });
  });
};
