import { execFile, execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { pluginAt, startSandbox } from './testing/sandbox.fixture.spec.js';
import type { TestSandbox } from './testing/sandbox.fixture.spec.js';

jest.setTimeout(300_000);

const run = promisify(execFile);
const KIT = 'github.com/extism/go-pdk@v1.1.3';
const SOURCE = `package main

import "github.com/extism/go-pdk"

//go:wasmexport describe
func describe() int32 {
	pdk.OutputString(\`{"description":"Greets.","idempotent":true}\`)
	return 0
}

//go:wasmexport handle_tool_call
func handleToolCall() int32 {
	var input struct{ Name string \`json:"name"\` }
	if err := pdk.InputJSON(&input); err != nil {
		pdk.SetError(err)
		return 1
	}
	pdk.Log(pdk.LogInfo, "greeting")
	println("on the standard error")
	pdk.OutputString("hello, " + input.Name)
	return 0
}

func main() {}
`;

const hasGo = (): boolean => {
  try {
    execFileSync('go', ['version']);
    return true;
  } catch {
    return false;
  }
};
const withGo = hasGo() ? describe : describe.skip;

withGo("a module that Extism's kit for Go built for WASI", () => {
  let folder: string;
  let box: TestSandbox;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'antiphon-go-'));
    const go = (args: readonly string[], env = {}) =>
      run('go', [...args], { cwd: folder, env: { ...process.env, ...env } });
    await writeFile(join(folder, 'main.go'), SOURCE);
    await go(['mod', 'init', 'greeter']);
    await go(['get', KIT]);
    await go(['build', '-ldflags=-s -w', '-buildmode=c-shared', '-o', 'greeter.wasm', '.'], {
      ...{ GOOS: 'wasip1', GOARCH: 'wasm' },
    });
    const plugins = [pluginAt(join(folder, 'greeter.wasm'), { name: 'greeter', memoryMb: 64 })];
    box = await startSandbox([], {}, { plugins });
  });
  afterAll(async () => {
    await box?.close();
    await rm(folder, { recursive: true, force: true });
  });

  it('runs unchanged, without a capability', async () => {
    const bytes = await readFile(join(folder, 'greeter.wasm'));
    expect(bytes.includes('wasi_snapshot_preview1')).toBe(true);
    expect(box.view('greeter')).toMatchObject({ status: 'loaded', capabilities: [] });
    for (const name of ['Ada', 'Grace'])
      expect(await box.call('greeter', { name })).toMatchObject({
        content: `hello, ${name}`,
        isError: false,
      });
    expect(box.log).toContainEqual(expect.objectContaining({ line: 'greeting', plugin: 'greeter' }));
  });

  it('reports its own failure', async () =>
    expect(await box.call('greeter', 'no object')).toMatchObject({ outcome: 'completed', isError: true }));
});
