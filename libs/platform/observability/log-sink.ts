import { writeSync } from 'node:fs';
import { defineCounter } from './metrics.js';

/** Destination of log lines. It loses a line that it cannot write, and never throws. */
export interface LogSink {
  write(line: string): void;
}

const lost = defineCounter('antiphon_log_lines_lost', 'Log lines that could not be written, by reason');

/** Counts a log line that was lost. Never throws. */
export const countLostLine = (reason: 'write' | 'fields'): void => {
  try {
    lost.add(1, { reason });
  } catch {
    // A log line must not fail the work that it reports, and neither must its count.
  }
};

/** Time between two attempts on a pipe that is full, and their number. */
const RETRY_MS = 5;
const RETRIES = 20;
const clock = new Int32Array(new SharedArrayBuffer(4));

/**
 * Writes lines to a file descriptor before it returns: the last line before a crash matters most. A
 * write that fails, on a full disk or a closed pipe, loses its line. A reader that does not read
 * costs one wait, and its next lines are lost without one.
 */
export class DescriptorSink implements LogSink {
  private isWorking = true;
  /** True after the beginning of a line was written and its rest was not. */
  private isTorn = false;

  constructor(
    private readonly descriptor: number,
    private readonly writeBytes: (descriptor: number, bytes: Buffer) => number = writeSync,
  ) {}

  write(line: string): void {
    const bytes = Buffer.from(this.isTorn ? `\n${line}` : line);
    const written = this.writeAll(bytes);
    this.isWorking = written === bytes.length;
    // The line break alone repairs a torn line.
    if (written > 0) this.isTorn = !this.isWorking && bytes[written - 1] !== 0x0a;
    if (!this.isWorking) countLostLine('write');
  }

  /** Returns the number of bytes that were written. */
  private writeAll(bytes: Buffer): number {
    let written = 0;
    for (let retries = this.isWorking ? RETRIES : 0; written < bytes.length;)
      try {
        written += this.writeBytes(this.descriptor, bytes.subarray(written));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || retries-- === 0) break;
        Atomics.wait(clock, 0, 0, RETRY_MS);
      }
    return written;
  }
}

/**
 * Counts failed writes to the standard streams of this process, such as warnings of Node itself. On
 * a closed pipe or a full disk they would end the process.
 */
export const surviveOutputErrors = (): void => {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => countLostLine('write'));
};
