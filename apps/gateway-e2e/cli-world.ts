import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import { sleep } from '@antiphon/kernel';
import { CliHosts } from './cli-hosts.js';
import { CLI, runCli, waitForValue, type CliRun } from './stack-under-test.js';

/** Commands that start processes, read their input or take seconds. */
const OWN_PROCESS = new Set(['up', 'down', 'status', 'chat', 'credential', 'audit', 'roots', 'backup']);

/** Message that makes the scripted provider call the calculator. */
export const CALCULATION = '/tool calculator {"expression":"19+23"}';

export interface CliApproval {
  readonly id: string;
  readonly digest: string;
  readonly sessionId: string;
}

/** A command line with a stack of its own, which its first command starts. */
export interface CliWorld {
  readonly folder: string;
  readonly home: string;
  /** Path of the configuration. */
  readonly config: string;
  /** Every command that was called. */
  readonly called: readonly string[];
  cli(...args: string[]): Promise<CliRun>;
  /** Runs a command that must succeed and print nothing on standard error. Returns its output. */
  run(...args: string[]): Promise<string>;
  runJson<T = Record<string, unknown>>(...args: string[]): Promise<T>;
  /** Sends a message and returns the session that answered it. */
  say(content: string, ...options: string[]): Promise<string>;
  /** Starts a chat whose tool call needs an approval, and waits until the approval is listed. */
  startGuardedChat(peer: string): Promise<{ approval: CliApproval; ended: Promise<CliRun> }>;
  /** URL of the gateway. */
  gatewayUrl(): string;
  close(): Promise<void>;
}

/** Returns the names that a help text lists under `Commands:`. */
export const commandsIn = (help: string): string[] =>
  [...(/\nCommands:\n([^]*?)\n(?:\n|$)/.exec(help)?.[1] ?? '').matchAll(/^ {2}([a-z]+)/gm)]
    .map(([, name]) => name ?? '')
    .filter((name) => name !== 'help');

/** Writes a configuration and starts its stack by the command line. */
export const startCliWorld = async (configuration: string): Promise<CliWorld> => {
  const folder = mkdtempSync(join(tmpdir(), 'antiphon-cli-'));
  const [home, config] = [join(folder, 'home'), join(folder, 'antiphon.toml')];
  const called: string[] = [];
  const hosts = new CliHosts();
  const cli = (...args: string[]): Promise<CliRun> => {
    called.push(args.join(' '));
    const env = { ANTIPHON_HOME: home, ANTIPHON_CONFIG: config, ANTIPHON_LOG_ROOT_EVERY_S: '1' };
    if (OWN_PROCESS.has(args[0] ?? '')) return runCli({ home: folder }, args, env);
    return hosts.run(args, { ...process.env, NODE_OPTIONS: '', ...env }, folder);
  };
  const run = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await cli(...args);
    // With --json, an error is on standard output.
    expect([args.join(' '), code, stderr, code === 0 ? '' : stdout]).toEqual([args.join(' '), 0, '', '']);
    return stdout;
  };
  const runJson = async <T>(...args: string[]): Promise<T> => JSON.parse(await run(...args, '--json')) as T;
  const say = async (content: string, ...options: string[]): Promise<string> => {
    const [line = ''] = (await run('chat', content, '--json', ...options)).trim().split('\n');
    return (JSON.parse(line) as { data: { sessionId: string } }).data.sessionId;
  };
  const startGuardedChat: CliWorld['startGuardedChat'] = async (peer) => {
    const ended = cli('chat', CALCULATION, '--agent', 'guarded', '--peer', peer);
    const approval = await waitForValue(`an approval for ${peer}`, async () => {
      const { approvals } = await runJson<{ approvals: CliApproval[] }>('approvals', 'list');
      return approvals[0];
    });
    return { approval, ended };
  };
  const gatewayUrl = (): string =>
    (JSON.parse(readFileSync(join(home, 'stack.json'), 'utf8')) as { urls: { gateway: string } }).urls
      .gateway;
  const close = async (): Promise<void> => {
    await cli('down');
    hosts.close();
    rmSync(folder, { recursive: true, force: true });
  };
  writeFileSync(config, configuration);
  const { code, stdout, stderr } = await cli('up', '--detach');
  expect([code, stderr, stdout]).toEqual([0, expect.any(String), expect.stringContaining('ready')]);
  return { folder, home, config, called, cli, run, runJson, say, startGuardedChat, gatewayUrl, close };
};

/** A running command whose input a spec types. */
export interface TypedCli {
  out(): string;
  err(): string;
  /** Types a line. */
  type(line: string): void;
  /** Waits until the output contains a text that it did not have at the last call. */
  waitFor(text: string): Promise<void>;
  interrupt(): void;
  /** Ends the input. */
  endInput(): void;
  /** Exit code. */
  readonly ended: Promise<number | null>;
}

const TYPED_TIMEOUT_MS = 20_000;

/** Starts a command and leaves its input open. */
export const startTypedCli = (
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  cwd: string,
): TypedCli => {
  const child = spawn(process.execPath, [CLI, ...args], {
    env: { ...process.env, NODE_OPTIONS: '', ...env },
    cwd,
  });
  const shown = { out: '', err: '' };
  let read = 0;
  child.stdout.on('data', (chunk: Buffer) => (shown.out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (shown.err += chunk.toString()));
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
  const waitFor = async (text: string): Promise<void> => {
    for (const end = Date.now() + TYPED_TIMEOUT_MS; Date.now() < end; await sleep(10)) {
      const found = shown.out.indexOf(text, read);
      if (found === -1 && !shown.err.includes(text)) continue;
      if (found !== -1) read = found + text.length;
      return;
    }
    throw new Error(`no "${text}" in ${JSON.stringify(shown)}`);
  };
  return {
    ...{ out: () => shown.out, err: () => shown.err, waitFor, ended },
    type: (line) => void child.stdin.write(`${line}\n`),
    interrupt: () => void child.kill('SIGINT'),
    endInput: () => void child.stdin.end(),
  };
};
