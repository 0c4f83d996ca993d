import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { DescriptorSink } from './log-sink.js';
import { createLogger } from './logger.js';
import { renderMetrics } from './metrics.js';

const DIST = fileURLToPath(new URL('dist/index.js', import.meta.url));
/** Logs fifty lines and two warnings of Node, and exits with 0 unless one of them threw. */
const PROGRAM = `
  import { createLogger, renderMetrics, surviveOutputErrors } from '${DIST}';
  surviveOutputErrors();
  process.on('uncaughtException', () => process.exit(9));
  const logger = createLogger({ service: 'agent' });
  for (let i = 0; i < 50; i++) logger.info({ i }, 'still here');
  process.emitWarning('to standard error');
  console.error('to standard error, too');
  await new Promise((resolve) => setTimeout(resolve, 50));
  process.send((await renderMetrics()).text);
  process.disconnect();`;

const lostLines = ({ text }: { readonly text: string }, reason: string): number =>
  Number(
    new RegExp(`^antiphon_log_lines_lost_total\\{reason="${reason}"\\} (\\d+)`, 'm').exec(text)?.[1] ?? 0,
  );

const runProgram = async (output: number | 'closed') => {
  const stdio = output === 'closed' ? 'pipe' : output;
  const child = spawn(process.execPath, ['--input-type=module', '-e', PROGRAM], {
    stdio: ['ignore', stdio, stdio, 'ipc'],
  });
  child.stdout?.destroy();
  child.stderr?.destroy();
  const metrics: string[] = [];
  child.on('message', (text) => void metrics.push(String(text)));
  const [code] = (await once(child, 'exit')) as [number];
  return { code, lost: lostLines({ text: metrics.join('') }, 'write') };
};

const itWithFullDevice = process.platform === 'linux' ? it : it.skip;

describe('a log line that cannot be written', () => {
  itWithFullDevice('does not throw on a full disk, and is counted', async () => {
    const full = openSync('/dev/full', 'w');
    const { code, lost } = await runProgram(full).finally(() => closeSync(full));
    expect([code, lost >= 50]).toEqual([0, true]);
  });

  it('does not end a process whose reader has gone', async () => {
    const { code, lost } = await runProgram('closed');
    expect([code, lost >= 50]).toEqual([0, true]);
  });

  it('leaves the next line whole after a part of it was written', () => {
    const folder = mkdtempSync(join(tmpdir(), 'antiphon-sink-'));
    const file = openSync(join(folder, 'log'), 'w');
    let room = 12;
    const sink = new DescriptorSink(file, (_, bytes) => {
      if (room === 0) throw Object.assign(new Error('full'), { code: 'ENOSPC' });
      const part = bytes.subarray(0, room).toString();
      room -= part.length;
      written.push(part);
      return part.length;
    });
    const written: string[] = [];
    sink.write('first\n');
    sink.write('second, which is too long\n');
    sink.write('lost\n');
    room = 100;
    sink.write('third\n');
    expect(written.join('')).toBe('first\nsecond\nthird\n');
    closeSync(file);
    rmSync(folder, { recursive: true });
  });

  it('waits for a full pipe once, and then loses lines without a wait', () => {
    let attempts = 0;
    const sink = new DescriptorSink(1, () => {
      attempts++;
      throw Object.assign(new Error('full'), { code: 'EAGAIN' });
    });
    sink.write('one\n');
    const waiting = attempts;
    sink.write('two\n');
    expect([waiting, attempts - waiting]).toEqual([21, 1]);
  });

  it('does not throw for fields that throw, of a line or of a child', async () => {
    const lines: string[] = [];
    const logger = createLogger({ service: 'agent', sink: { write: (line) => void lines.push(line) } });
    const hostile = {
      get field(): never {
        throw new Error('hostile');
      },
    };
    const before = lostLines(await renderMetrics(), 'fields');
    logger.info(hostile, 'unreadable');
    logger.child(hostile).info({ i: 1 }, 'of a child');
    const ownKeys = () => {
      throw new Error('hostile');
    };
    logger.info(new Proxy({}, { ownKeys }), 'a proxy');
    const lost = lostLines(await renderMetrics(), 'fields') - before;
    expect(lines.length + lost).toBeGreaterThanOrEqual(3);
    expect(lines.join('')).toContain('of a child');
  });
});
